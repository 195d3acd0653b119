package main

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// A callGPU is a device with the objects for the calls to time.
type callGPU struct {
	l      *cuda.Library
	dev    cuda.Device
	stream cuda.Stream
	event  cuda.Event
	mod    cuda.Module
	fn     cuda.Function
	arg    *uint64
	params []unsafe.Pointer
}

// newCallGPU makes a callGPU. It makes the device's context current on the calling thread.
func newCallGPU(l *cuda.Library, index int) (*callGPU, error) {
	g := &callGPU{l: l, arg: new(uint64)}
	g.params = []unsafe.Pointer{unsafe.Pointer(g.arg)}
	var err error
	if g.dev, err = l.DeviceGet(int32(index)); err != nil {
		return nil, err
	}
	ctx, err := l.DevicePrimaryCtxRetain(g.dev)
	if err != nil {
		return nil, err
	}
	if err := l.CtxSetCurrent(ctx); err != nil {
		return nil, err
	}
	if g.stream, err = l.StreamCreate(cuda.StreamNonBlocking); err != nil {
		return nil, err
	}
	if g.event, err = l.EventCreate(cuda.EventDisableTiming); err != nil {
		return nil, err
	}
	if g.mod, err = l.ModuleLoadData(unsafe.Pointer(&kernels.Empty[0])); err != nil {
		return nil, err
	}
	g.fn, err = l.ModuleGetFunction(g.mod, "empty")
	return g, err
}

func (g *callGPU) close() error {
	return errors.Join(g.l.ModuleUnload(g.mod), g.l.EventDestroy(g.event), g.l.StreamDestroy(g.stream), g.l.DevicePrimaryCtxRelease(g.dev))
}

func (g *callGPU) settle() error { return g.l.StreamSynchronize(g.stream) }

// A pairing is one call on both sides, c and g. Each side makes the call n times and returns the
// time that this took.
type pairing struct {
	n      uint64
	c, g   func(n uint64) (time.Duration, error)
	settle func() error // waits for the device, outside of the time
}

// callNames are the names of the cases, in the order of callGPU.cases.
var callNames = []string{"a C function", "cuLaunchKernel, burst", "cuLaunchKernel", "cuEventRecord", "cuEventQuery"}

// cases pairs each call of the bindings with a call in C of the same function.
func (g *callGPU) cases(c *loop) ([]pairing, error) {
	addr := map[string]uintptr{}
	for i, name := range []string{"cuLaunchKernel", "cuEventRecord", "cuEventQuery"} {
		a, err := address(g.l, name)
		if err != nil {
			return nil, fmt.Errorf("case %d: %w", i, err)
		}
		addr[name] = a
	}
	if err := g.l.EventRecord(g.event, g.stream); err != nil {
		return nil, err
	}
	return []pairing{
		{
			n: 20000, settle: g.settle,
			c: func(n uint64) (time.Duration, error) { return c.two(c.Addr(loopNothing), 0, 0, n) },
			g: func(n uint64) (time.Duration, error) {
				start := time.Now()
				for range n {
					if err := c.nothing(0, 0); err != nil {
						return 0, err
					}
				}
				return time.Since(start), nil
			},
		},
		{ // few enough launches for the device's queue: no call waits for the device
			n: 500, settle: g.settle,
			c: func(n uint64) (time.Duration, error) {
				return c.launch(addr["cuLaunchKernel"], g.fn, g.stream, &g.params[0], n)
			},
			g: g.launch,
		},
		{ // more launches than the device's queue holds
			n: 20000, settle: g.settle,
			c: func(n uint64) (time.Duration, error) {
				return c.launch(addr["cuLaunchKernel"], g.fn, g.stream, &g.params[0], n)
			},
			g: g.launch,
		},
		{
			n: 5000, settle: g.settle,
			c: func(n uint64) (time.Duration, error) {
				return c.two(addr["cuEventRecord"], uintptr(g.event), uintptr(g.stream), n)
			},
			g: func(n uint64) (time.Duration, error) {
				start := time.Now()
				for range n {
					if err := g.l.EventRecord(g.event, g.stream); err != nil {
						return 0, err
					}
				}
				return time.Since(start), nil
			},
		},
		{
			n: 5000, settle: g.settle,
			c: func(n uint64) (time.Duration, error) { return c.two(addr["cuEventQuery"], uintptr(g.event), 0, n) },
			g: func(n uint64) (time.Duration, error) {
				start := time.Now()
				for range n {
					if err := g.l.EventQuery(g.event); err != nil {
						return 0, err
					}
				}
				return time.Since(start), nil
			},
		},
	}, nil
}

func (g *callGPU) launch(n uint64) (time.Duration, error) {
	start := time.Now()
	for range n {
		if err := g.l.LaunchKernel(g.fn, 1, 1, 1, 1, 1, 1, 0, g.stream, g.params, nil); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// address asks the driver for the address of a core function of CUDA 11.2.
func address(l *cuda.Library, name string) (uintptr, error) {
	p, _, err := l.GetProcAddress(name, 11020, cuda.GetProcAddressLegacyStream)
	if err != nil {
		return 0, err
	}
	if p == nil {
		return 0, fmt.Errorf("the driver has no %s", name)
	}
	return uintptr(p), nil
}
