package nccl_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can use one GPU continues without NCCL.
func ExampleOpen() {
	os.Setenv("PUREGPU_NCCL_LIBRARY", "/no/such/libnccl.so.2") // simulates a machine without NCCL
	defer os.Unsetenv("PUREGPU_NCCL_LIBRARY")

	l, err := nccl.Open(nccl.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no NCCL here: using one GPU")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("NCCL", nccl.FormatVersion(l.Version()))
	// Output: no NCCL here: using one GPU
}

func ExampleResult_Error() {
	err := fmt.Errorf("allreduce: %w", nccl.ErrorInProgress)
	fmt.Println(err)
	fmt.Println(errors.Is(err, nccl.ErrorInProgress))
	// Output:
	// allreduce: nccl: ncclInProgress (7): not finished yet; ask the communicator's state again
	// true
}

// A new config leaves the choice of every field to the library. CheckConfig finds fields that the
// library is too old to know.
func ExampleLibrary_NewConfig() {
	var l nccl.Library // a program gets it from Open
	config := l.NewConfig()
	config.Blocking = 0
	if err := l.CheckConfig(&config); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(config.MinCTAs == nccl.ConfigUndefInt, config.Blocking)
	// Output: true 0
}

// join makes a nonblocking communicator as one of several ranks, on the thread's current CUDA
// device.
func join(l *nccl.Library, ranks, rank int32, id nccl.UniqueID) (nccl.Comm, error) {
	config := l.NewConfig()
	config.Blocking = 0
	comm := new(nccl.Comm)
	err := l.CommInitRankConfig(comm, ranks, id, rank, &config)
	for errors.Is(err, nccl.ErrorInProgress) {
		runtime.Gosched()
		var state nccl.Result
		if state, err = l.CommGetAsyncError(*comm); err == nil && state != nccl.Success {
			err = state
		}
	}
	return *comm, err
}

// A program polls a nonblocking communicator until it is ready.
func ExampleLibrary_CommInitRankConfig() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l, err := nccl.Open(nccl.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := l.GetUniqueID() // only one rank does this, and sends the id to the others
	if err != nil {
		fmt.Println(err)
		return
	}
	comm, err := join(l, 1, 0, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.CommDestroy(comm)
}
