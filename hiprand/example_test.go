package hiprand_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hiprand"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without hipRAND checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_HIPRAND_LIBRARY", "/no/such/libhiprand.so.1") // simulates a machine without hipRAND
	defer os.Unsetenv("PUREGPU_HIPRAND_LIBRARY")

	l, err := hiprand.Open(hiprand.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no hipRAND here: drawing on the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("hipRAND", hiprand.FormatVersion(l.Version()))
	// Output: no hipRAND here: drawing on the host
}

// normal writes n normally distributed numbers to device memory, in order on a stream. A device
// must be current.
func normal(l *hiprand.Library, stream hip.Stream, data hip.DevicePtr, n, seed uint64) error {
	g, err := l.NewGenerator(hiprand.RNGPseudoPhilox4_32_10)
	if err != nil {
		return err
	}
	defer g.Close()
	if err := l.SetPseudoRandomGeneratorSeed(g.Handle(), seed); err != nil {
		return err
	}
	if err := l.SetStream(g.Handle(), stream); err != nil {
		return err
	}
	return l.GenerateNormal(g.Handle(), data, n, 0, 1)
}

func ExampleLibrary_GenerateNormal() {
	l, err := hiprand.Open(hiprand.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var stream hip.Stream  // from package hip
	var data hip.DevicePtr // from hip.Library.Malloc
	if err := normal(l, stream, data, 1<<20, 42); err != nil {
		fmt.Println(err)
	}
}
