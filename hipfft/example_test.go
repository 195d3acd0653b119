package hipfft_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hipfft"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without hipFFT checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_HIPFFT_LIBRARY", "/no/such/libhipfft.so.0") // simulates a machine without hipFFT
	defer os.Unsetenv("PUREGPU_HIPFFT_LIBRARY")

	l, err := hipfft.Open(hipfft.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no hipFFT here: transforming on the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("hipFFT", hipfft.FormatVersion(l.Version()))
	// Output: no hipFFT here: transforming on the host
}

// forward transforms n complex numbers of float32 in place, on a stream. A device must be current.
func forward(l *hipfft.Library, stream hip.Stream, data hip.DevicePtr, n int32) error {
	plan, err := l.NewPlan()
	if err != nil {
		return err
	}
	defer plan.Close()
	size := make([]uint64, 1) // of the work area on each GPU; hipFFT allocates the work area itself
	if err := l.MakePlan1d(plan.Handle(), n, hipfft.C2C, 1, size); err != nil {
		return err
	}
	if err := l.SetStream(plan.Handle(), stream); err != nil {
		return err
	}
	return l.ExecC2C(plan.Handle(), data, data, hipfft.Forward)
}

func ExampleLibrary_ExecC2C() {
	l, err := hipfft.Open(hipfft.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var stream hip.Stream  // from package hip
	var data hip.DevicePtr // from hip.Library.Malloc
	if err := forward(l, stream, data, 1<<20); err != nil {
		fmt.Println(err)
	}
}
