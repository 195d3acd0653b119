// Package simtest is a piece of a program that uses a GPU, and shows in its test how such a piece is tested on machines without one: on
// the simulated GPU, which computes with Go functions in place of kernels, fails where it is told to, and takes the time that it
// is told to, which testing/synctest lets pass at once.
package simtest

import (
	"context"
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -name scale kernel.cu kernel.ptx

// A Scaler computes a*x + b on a device. It may be used concurrently.
type Scaler struct {
	dev  *gpu.Device
	code *ScaleCode
}

// New loads the kernel. What it loads is closed with the device.
func New(dev *gpu.Device) (*Scaler, error) {
	code, err := LoadScale(dev)
	if err != nil {
		return nil, err
	}
	return &Scaler{dev, code}, nil
}

// Scale returns a*x + b for each x. If the device has too little memory for all at once it takes them in two parts, and so on. It waits
// until the context ends.
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
	if n := len(xs) / 2; n > 0 && errors.Is(err, driver.ErrOutOfMemory) {
		if err := s.part(ctx, a, b, xs[:n], ys[:n]); err != nil {
			return err
		}
		return s.part(ctx, a, b, xs[n:], ys[n:])
	}
	return err
}

func (s *Scaler) once(ctx context.Context, a, b float32, xs, ys []float32) error {
	st := s.dev.Queue(0).NewStream() // it keeps the first error
	mem, err := gpu.AllocaSlice[float32](st, nil, len(xs))
	if err != nil {
		return err
	}
	defer mem.Close() // if the stream fails before Dealloca
	mem.Upload(st, xs)
	s.code.Scale.Launch(st, gpu.GridFor(len(xs), 256), uint64(len(xs)), a, b, mem, mem)
	mem.Download(st, ys)
	mem.Dealloca(st)
	if err := st.Wait(ctx); err != nil {
		st.Fail(err) // what has not begun does not begin
		return err
	}
	return nil
}
