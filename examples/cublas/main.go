// Cublas multiplies matrices of bfloat16 with NVIDIA's cuBLAS and cuBLASLt, in order on a queue. It
// checks each way of multiplying against the host. It times products in a queue, and compares the
// times with the times of a loop of plain calls and of PyTorch. The product must have the same bits
// as PyTorch's. Without a GPU, cuBLAS or PyTorch it reports what is missing.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var (
	side    = flag.Int("n", 4096, "rows and columns of the `matrices` that are timed")
	rounds  = flag.Int("rounds", 15, "how often each is timed, in turns")
	each    = flag.Int("each", 100, "products that are submitted ahead of each wait")
	python  = flag.String("python", "python3", "`interpreter` that has PyTorch; empty for none")
	file    = flag.String("lib", "", "`file` of cuBLAS; else PyTorch's, what PUREGPU_CUBLAS_LIBRARY names, or the system's")
	require = flag.Bool("require-gpu", false, "fail without a GPU")
	slower  = flag.Float64("slower", 1.02, "how many times PyTorch's time a product may take")
)

// errMissing is the error if this machine lacks something. The program then ends without failing.
// But with -require-gpu it fails if there is no GPU.
var (
	errMissing = errors.New("not run")
	errNoGPU   = fmt.Errorf("%w: no GPU", errMissing)
)

func main() {
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	switch err := run(ctx); {
	case errors.Is(err, errNoGPU) && *require:
		log.Fatalf("cublas: %v", err)
	case errors.Is(err, errMissing):
		fmt.Printf("cublas: %v\n", err)
	case err != nil:
		log.Fatalf("cublas: %v", err)
	}
}

func run(ctx context.Context) (err error) {
	driver, err := drivers.Open(drivers.CUDA)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoGPU, err)
	}
	if infos, err := driver.Devices(); err != nil || len(infos) == 0 {
		return errors.Join(errNoGPU, err)
	}
	dev, err := gpu.Open(driver, 0, gpu.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()

	a, b := random(*side, 1), random(*side, 2)
	torch, missing := startTorch(ctx, *python, *side, gpu.BytesOf(slices.Concat(a, b)))
	if missing == nil {
		defer func() { err = errors.Join(err, torch.close()) }()
		if *file == "" {
			*file = torch.CuBLAS // with the same library the results must be identical
		}
		fmt.Printf("PyTorch %s with %s on %s\n", torch.Version, torch.CuBLAS, torch.Device)
	}
	lib, err := blas.Open(dev, libraries(*file))
	if errors.Is(err, dl.ErrNotFound) {
		return fmt.Errorf("%w: %w", errMissing, err)
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.Close()) }() // runs before the device is closed
	x := &multiplier{dev, lib, dev.Queue(0).NewStream()}
	if err := x.check(ctx); errors.Is(err, dl.ErrNotFound) {
		return fmt.Errorf("%w: %w", errMissing, err)
	} else if err != nil {
		return err
	}
	p, err := x.newProduct(ctx, *side, a, b)
	if err != nil {
		return err
	}
	c, err := p.result(ctx)
	if err != nil {
		return err
	}
	if missing == nil && !bytes.Equal(gpu.BytesOf(c), torch.result) {
		return fmt.Errorf("the product of %d × %d is not PyTorch's: %s", *side, *side, difference(c, torch.result))
	}
	var times [3][]float64 // times of the queue, of the loop and of PyTorch
	for range *rounds {
		for i, time := range []func(context.Context, int) (float64, error){p.queue, p.loop, torch.time} {
			if i == 2 && missing != nil {
				continue
			}
			ns, err := time(ctx, *each)
			if err != nil {
				return err
			}
			times[i] = append(times[i], ns)
		}
	}
	fmt.Printf("product of %d × %d bfloat16: queue %.1f µs, loop of plain calls %.1f µs (%.3f ×)\n", *side, *side,
		median(times[0])/1000, median(times[1])/1000, ratio(times[0], times[1]))
	if missing != nil {
		return missing
	}
	behind := ratio(times[0], times[2])
	fmt.Printf("PyTorch: %.1f µs; the results are equal\n", median(times[2])/1000)
	if behind > *slower {
		return fmt.Errorf("a product takes %.3f × PyTorch's time, more than %.2f", behind, *slower)
	}
	fmt.Printf("cublas: %d × %d on %s: equal to PyTorch's, in %.3f × its time: ok\n", *side, *side, dev.Info().Name, behind)
	return nil
}

// libraries returns the paths of cuBLAS, if a file is named, and of cuBLASLt, if it is in the same
// folder.
func libraries(file string) (o blas.Options) {
	o.CuBLAS.Path = file
	for _, version := range []string{"13", "12", "11"} {
		beside := filepath.Join(filepath.Dir(file), "libcublasLt.so."+version)
		if _, err := os.Stat(beside); file != "" && err == nil {
			o.CuBLASLt.Path = beside
			break
		}
	}
	return o
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// ratio returns the median of a[i]/b[i], the ratios of the rounds. Changes of the device's clock
// between rounds do not affect the median.
func ratio(a, b []float64) float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] / b[i]
	}
	return median(all)
}
