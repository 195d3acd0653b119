package main

import (
	"context"
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -name dense kernel.cu kernel.ptx

// A model is a network in device memory. It may be used concurrently.
type model struct {
	dev    *gpu.Device
	pool   *gpu.Pool // for the memory of requests
	code   *DenseCode
	layers []onDevice
}

// onDevice is a layer in device memory.
type onDevice struct {
	in, out uint64
	w, b    gpu.Slice[float32]
}

// newModel opens the first device of a driver and uploads the network.
func newModel(ctx context.Context, d driver.Driver, o gpu.Options, layers []layer) (_ *model, err error) {
	dev, err := gpu.Open(d, 0, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			dev.Close()
		}
	}()
	m := &model{dev: dev}
	if m.code, err = LoadDense(dev); err != nil {
		return nil, err
	}
	if m.pool, err = dev.NewPool(gpu.PoolOptions{}); err != nil {
		return nil, err
	}
	s := dev.Queue(0).NewStream()
	for _, l := range layers {
		w, err1 := gpu.AllocSlice[float32](dev, gpu.DeviceMem, len(l.w))
		b, err2 := gpu.AllocSlice[float32](dev, gpu.DeviceMem, len(l.b))
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		s.Do(w.Upload(l.w), b.Upload(l.b))
		m.layers = append(m.layers, onDevice{uint64(l.in), uint64(l.out), w, b})
	}
	return m, s.Wait(ctx)
}

func (m *model) inputs() int { return int(m.layers[0].in) }

// infer runs one input through the network. If the context ends first, infer returns at once, and
// work that has not been issued to the device is dropped. The memory returns to the pool when the
// issued work is complete.
func (m *model) infer(ctx context.Context, input []float32) ([]float32, error) {
	q, err := m.dev.Pick(0)
	if err != nil {
		return nil, err
	}
	s := q.NewStream() // Wait returns its first error
	x, _ := gpu.AllocSliceIn[float32](s, m.pool, len(input))
	defer x.Close() // frees the memory if the stream fails before Free
	s.Do(x.UploadCopy(input))
	for _, l := range m.layers {
		y, _ := gpu.AllocSliceIn[float32](s, m.pool, int(l.out))
		defer y.Close()
		s.Do(m.code.Dense.Launch(gpu.GridFor(y.Len(), 64), l.in, l.out, 1, l.w, l.b, x, y), x.Free())
		x = y
	}
	output := make([]float32, x.Len()) // may still be written to after the context has ended
	s.Do(x.Download(output), x.Free())
	if err := s.Wait(ctx); err != nil {
		s.Fail(err)
		return nil, err
	}
	return output, nil
}

// ready returns nil, or an error that says why the device takes no work.
func (m *model) ready() error { return m.dev.Queue(0).Flush() }

// close closes the device, and frees everything on it.
func (m *model) close(ctx context.Context) error { return m.dev.Shutdown(ctx) }
