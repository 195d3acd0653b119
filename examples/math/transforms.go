package main

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"

	"github.com/puregpu/puregpu/runtime/fft"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// tone finds the frequency of the loudest tone in a second of sound. Element k of the transform is
// the strength of the frequency k Hz.
func tone(ctx context.Context, dev *gpu.Device) (string, error) {
	lib, err := fft.Open(dev, fft.Options{})
	if err != nil {
		return "", err
	}
	defer lib.Close() // closes the plan too
	const n, want = 8000, 440
	plan, err := fft.NewRealPlan[float32, complex64](lib, fft.Shape{Dims: []int{n}})
	if err != nil {
		return "", err
	}
	samples, amplitudes := make([]float32, n), make([]complex64, n/2+1)
	for i := range samples {
		t := 2 * math.Pi * float64(i) / n
		samples[i] = float32(math.Sin(want*t) + math.Cos(1000*t)/2)
	}
	s := dev.Queue(0).NewStream()
	sound, _ := gpu.AllocSliceIn[float32](s, nil, n) // if it fails, so does Wait
	spectrum, _ := gpu.AllocSliceIn[complex64](s, nil, n/2+1)
	defer sound.Close()
	defer spectrum.Close()
	s.Do(sound.Upload(samples), plan.Forward(spectrum, sound), spectrum.Download(amplitudes))
	if err := s.Wait(ctx); err != nil {
		return "", err
	}
	loudest := 0
	for k, a := range amplitudes {
		if cmplx.Abs(complex128(a)) > cmplx.Abs(complex128(amplitudes[loudest])) {
			loudest = k
		}
	}
	if loudest != want {
		return "", fmt.Errorf("the tone has %d Hz, want %d", loudest, want)
	}
	return fmt.Sprintf("the tone has %d Hz", loudest), nil
}
