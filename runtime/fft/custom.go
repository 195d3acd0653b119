package fft

import (
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cufft"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
)

// A CustomPlan is a plan of cuFFT that the program makes itself, for layouts and types that [Plan]
// and [RealPlan] do not have: strides, half precision, callbacks.
type CustomPlan struct {
	plan plan
	made cufftPlan
}

// NewCustomPlan makes a plan with fn. fn calls a function of cuFFT, such as cufftMakePlanMany64 or
// cufftXtMakePlanMany, with the handle, and stores the size of the work area in work. The device is
// current on the thread that runs fn. cuFFT does not allocate the work area, which is scratch
// memory of each Op. On a simulated device the error is [gpu.ErrUnsupported].
func NewCustomPlan(l *Library, fn func(l *cufft.Library, h cufft.Handle, work []uint64) error) (*CustomPlan, error) {
	switch {
	case l.isZero():
		return nil, errZero
	case fn == nil:
		return nil, fmt.Errorf("fft: a custom plan without a function: %w", gpu.ErrArgument)
	case l.dev.Simulated():
		return nil, libcall.Simulated("fft", "cuFFT")
	}
	p := &CustomPlan{plan: plan{lib: l, align: 1}}
	var err error
	if p.made, err = l.make(&p.plan, fn); err != nil {
		return nil, err
	}
	return p, p.plan.opened()
}

// A Call is the argument of a function given to [CustomPlan.Call]: the library, the plan and the
// memory.
type Call struct {
	*cufft.Library
	Plan   cufft.Handle // its stream and its work area are set
	Stream cuda.Stream  // the stream of Plan
	Ptrs   []driver.Ptr // addresses of the ranges in uses, in order; valid until the function returns
}

// Call returns an Op that runs fn, which calls functions of cuFFT such as cufftXtExec. These
// functions put their work into the stream of Plan. name is the Op's label, and uses are the ranges
// of memory that the work touches. The documentation of gpu.Native says what fn may do.
func (p *CustomPlan) Call(name string, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	switch {
	case p == nil || p.plan.lib == nil:
		return gpu.BadOp(errZeroPlan)
	case fn == nil:
		return gpu.BadOp(fmt.Errorf("fft: call: no function: %w", gpu.ErrArgument))
	}
	n := len(uses)
	return gpu.Native(name, func(v gpu.NativeCall) error {
		return p.made.Use(v, p.made.workspace(v), func(h cufft.Handle) error {
			return fn(Call{p.plan.lib.cufft, h, cudadriver.Stream(v.Stream), v.Ptrs[:n:n]})
		})
	}, uses...).Scratch(p.made.work)
}

// Close destroys the plan: see [Plan.Close].
func (p *CustomPlan) Close() error {
	if p == nil {
		return nil
	}
	return p.plan.Close()
}
