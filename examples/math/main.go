// Math shows the packages above NVIDIA's libraries, each by a function that can be copied. The
// functions compute a line through points, the frequency of a tone, π by random points, the ranks
// of web pages, the temperatures of a rod, a blurred picture, and attention. The program checks
// each result. It runs on the GPU, or on a simulated one if the machine has none, and says which
// libraries are missing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// An example computes something on a device, and returns its result in words.
type example struct {
	name string
	run  func(context.Context, *gpu.Device) (string, error)
}

var examples = []example{
	{"matrices", line},
	{"transforms", tone},
	{"numbers", pi},
	{"sparse", pageRank},
	{"systems", rod},
	{"networks", blur},
	{"networks", attend},
}

func main() {
	require := flag.Bool("require-gpu", false, "fail without a GPU")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	var opts []drivers.Option
	if *require {
		opts = append(opts, drivers.WithoutSim())
	}
	d, err := drivers.Best(opts...)
	if err == nil {
		err = run(ctx, d, os.Stdout, examples)
	}
	if err != nil {
		log.Fatalf("math: %v", err)
	}
}

// run runs examples on the first device of a driver, and prints a line for each. A library that the
// machine does not have is no error.
func run(ctx context.Context, d driver.Driver, w io.Writer, examples []example) (err error) {
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	fmt.Fprintf(w, "on %s (%s)\n", d.Name(), dev.Info().Name)
	var errs []error
	for _, e := range examples {
		text, err := profiled(ctx, dev, e)
		switch {
		case errors.Is(err, dl.ErrNotFound), errors.Is(err, gpu.ErrUnsupported):
			fmt.Fprintf(w, "%s: not run: %v\n", e.name, err)
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", e.name, err))
		default:
			fmt.Fprintf(w, "%s: %s\n", e.name, text)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	fmt.Fprintln(w, "math: ok")
	return nil
}
