package fft_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"math/cmplx"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/fft"
	"github.com/puregpu/puregpu/runtime/gpu"
)

func check(errs ...error) {
	for _, err := range errs {
		if err != nil {
			log.Fatal(err)
		}
	}
}

// This example finds the loudest frequency of a signal. The simulated GPU stands for a GPU with
// CUDA.
func Example() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	check(err)
	defer dev.Close()
	lib, err := fft.Open(dev, fft.Options{})
	check(err)
	defer lib.Close()

	const n = 100
	plan, err := fft.NewRealPlan[float32, complex64](lib, fft.Shape{Dims: []int{n}})
	check(err)
	signal, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, n)
	check(err)
	spectrum, err := gpu.AllocSlice[complex64](dev, gpu.DeviceMem, n/2+1)
	check(err)
	in, out := make([]float32, n), make([]complex64, n/2+1)
	for i := range in {
		in[i] = float32(math.Sin(2*math.Pi*7*float64(i)/n) + 0.5*math.Cos(2*math.Pi*20*float64(i)/n))
	}
	s := dev.Queue(0).NewStream()
	check(s.Do(signal.Upload(in), plan.Forward(spectrum, signal), spectrum.Download(out)), s.Wait(context.Background()))

	loudest := 0
	for k, v := range out {
		if cmplx.Abs(complex128(v)) > cmplx.Abs(complex128(out[loudest])) {
			loudest = k
		}
	}
	fmt.Println(loudest, "turns")
	// Output: 7 turns
}
