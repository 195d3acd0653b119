// Package simtest is a part of a program that uses a GPU. The package's tests show how to test such
// a part on the simulated GPU, without a GPU. The simulated GPU runs Go functions as kernels, fails
// where a test says so, and takes as long as the test says. Under testing/synctest this time passes
// at once.
package simtest

import (
	"context"
	"errors"

	"github.com/puregpu/puregpu/runtime/gpu"
)

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -name scale kernel.cu kernel.ptx

// A Scaler computes a*x + b on a device. It may be used concurrently.
type Scaler struct {
	dev  *gpu.Device
	code *ScaleCode
}

// New loads the kernel. Closing the device unloads it.
func New(dev *gpu.Device) (*Scaler, error) {
	code, err := LoadScale(dev)
	if err != nil {
		return nil, err
	}
	return &Scaler{dev, code}, nil
}

// Scale returns a*x + b for each x. If the device has too little memory for all numbers at once,
// Scale splits the work in two, repeatedly. It blocks until the result is complete or the context
// ends.
func (s *Scaler) Scale(ctx context.Context, a, b float32, xs []float32) ([]float32, error) {
	ys := make([]float32, len(xs))
	err := s.part(ctx, a, b, xs, ys)
	if err != nil {
		return nil, err
	}
	return ys, nil
}

func (s *Scaler) part(ctx context.Context, a, b float32, xs, ys []float32) error {
	err := s.once(ctx, a, b, xs, ys)
	if n := len(xs) / 2; n > 0 && errors.Is(err, gpu.ErrOutOfMemory) {
		if err := s.part(ctx, a, b, xs[:n], ys[:n]); err != nil {
			return err
		}
		return s.part(ctx, a, b, xs[n:], ys[n:])
	}
	return err
}

func (s *Scaler) once(ctx context.Context, a, b float32, xs, ys []float32) error {
	st := s.dev.Queue(0).NewStream() // keeps the first error
	mem, err := gpu.AllocSliceIn[float32](st, nil, len(xs))
	if err != nil {
		return err
	}
	defer mem.Close() // frees the memory if the stream fails before Free
	st.Do(
		mem.Upload(xs),
		s.code.Scale.Launch(gpu.GridFor(len(xs), 256), uint64(len(xs)), a, b, mem, mem),
		mem.Download(ys),
		mem.Free(),
	)
	if err := st.Wait(ctx); err != nil {
		st.Fail(err) // drops work that has not been issued
		return err
	}
	return nil
}
