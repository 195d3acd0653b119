package cufft_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cufft"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without cuFFT checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_CUFFT_LIBRARY", "/no/such/libcufft.so.12") // simulates a machine without cuFFT
	defer os.Unsetenv("PUREGPU_CUFFT_LIBRARY")

	l, err := cufft.Open(cufft.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no cuFFT here: transforming on the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("cuFFT", cufft.FormatVersion(l.Version()))
	// Output: no cuFFT here: transforming on the host
}

// forward transforms n complex numbers of float32 in place, in order on a stream. A CUDA context
// must be current.
func forward(l *cufft.Library, stream cuda.Stream, data cuda.DevicePtr, n int32) error {
	plan, err := l.NewPlan()
	if err != nil {
		return err
	}
	defer plan.Close()
	size := make([]uint64, 1) // of the work area on each GPU; cuFFT allocates the work area itself
	if err := l.MakePlan1d(plan.Handle(), n, cufft.C2C, 1, size); err != nil {
		return err
	}
	if err := l.SetStream(plan.Handle(), stream); err != nil {
		return err
	}
	return l.ExecC2C(plan.Handle(), data, data, cufft.Forward)
}

func ExampleLibrary_ExecC2C() {
	l, err := cufft.Open(cufft.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var stream cuda.Stream  // from cuda.Library.StreamCreate
	var data cuda.DevicePtr // from cuda.Library.MemAlloc
	if err := forward(l, stream, data, 1<<20); err != nil {
		fmt.Println(err)
	}
}
