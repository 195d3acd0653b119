package cupti_test

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/puregpu/puregpu/cupti"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without CUPTI checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_CUPTI_LIBRARY", "/no/such/libcupti.so.12") // simulates a machine without CUPTI
	defer os.Unsetenv("PUREGPU_CUPTI_LIBRARY")

	l, err := cupti.Open(cupti.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no CUPTI here: nothing is profiled")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("CUPTI", cupti.FormatVersion(l.Version()))
	// Output: no CUPTI here: nothing is profiled
}

// profile calls the function work and prints the time of each kernel that the function starts. The
// function must not return before the device has completed these kernels.
func profile(l *cupti.Library, work func() error) error {
	err := l.CollectActivities(1<<20, func(records []byte) {
		for r, err := range l.Records(records) {
			if err != nil {
				fmt.Println(err)
				return
			}
			if k := r.Kernel(); k != nil {
				fmt.Printf("%s: %v\n", r.Name(), time.Duration(k.End-k.Start))
			}
		}
	})
	if err != nil {
		return err
	}
	if err := l.ActivityEnable(cupti.ActivityKindConcurrentKernel); err != nil {
		return err
	}
	defer l.ActivityDisable(cupti.ActivityKindConcurrentKernel)
	if err := work(); err != nil {
		return err
	}
	return l.ActivityFlushAll(uint32(cupti.ActivityFlagFlushForced))
}

func ExampleLibrary_CollectActivities() {
	l, err := cupti.Open(cupti.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := profile(l, func() error { return nil }); err != nil {
		fmt.Println(err)
	}
}
