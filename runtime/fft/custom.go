package fft

import (
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cufft"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A CustomPlan is a plan of cuFFT that the program makes itself, for layouts and types that [Plan]
// and [RealPlan] do not have: strides, half precision, callbacks.
type CustomPlan struct {
	plan
	made made
}

// NewCustomPlan makes a plan by a function, which calls one of cuFFT's functions such as
// cufftMakePlanMany64 or cufftXtMakePlanMany with the handle and returns its work size in work. The
// device is current. cuFFT does not allocate the work area. On a simulated device the error is
// [gpu.ErrUnsupported].
func NewCustomPlan(l *Library, fn func(l *cufft.Library, h cufft.Handle, work []uint64) error) (*CustomPlan, error) {
	if l.dev.Simulated() {
		return nil, fmt.Errorf("fft: a custom plan on a simulated device: %w", gpu.ErrUnsupported)
	}
	if fn == nil {
		return nil, fmt.Errorf("fft: a custom plan without a function: %w", gpu.ErrArgument)
	}
	p := &CustomPlan{plan: plan{lib: l, align: 1}}
	var err error
	if p.made, err = l.make(&p.plan, fn); err != nil {
		return nil, err
	}
	return p, p.opened()
}

// A Call is the argument of a function given to [CustomPlan.Call].
type Call struct {
	Library *cufft.Library
	Plan    cufft.Handle // with the stream and the work area set
	Stream  cuda.Stream
	Ptrs    []driver.Ptr // addresses of the ranges, in order; valid until the function returns
}

// Call returns an Op that calls a function, which calls a function of cuFFT with the plan, such as
// cufftXtExec. name is the operation's label. uses are the memory that it uses. The rules of
// [gpu.Native] hold for the function.
func (p *CustomPlan) Call(name string, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	if fn == nil {
		return gpu.BadOp(fmt.Errorf("fft: call: no function: %w", gpu.ErrArgument))
	}
	n := len(uses)
	return gpu.Native(name, func(v gpu.NativeCall) error {
		return p.made.Use(v, p.made.workspace(v), func(h cufft.Handle) error {
			return fn(Call{p.lib.cufft, h, cudadriver.Stream(v.Stream), v.Ptrs[:n:n]})
		})
	}, uses...).Scratch(p.made.work)
}
