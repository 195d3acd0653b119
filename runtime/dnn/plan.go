package dnn

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
	"github.com/puregpu/puregpu/runtime/internal/standin"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// A step is a part of a plan. Its methods may be called only while the library's handle is held.
type step interface {
	// run puts the step's work into the handle's stream. at has the addresses of the call's
	// tensors.
	run(h cudnn.Handle, at []driver.Ptr, workspace driver.Ptr) error
	scratch() uint64 // size of the step's workspace in bytes
	destroy() error  // destroys the step's objects of cuDNN
}

// A plan is the part that Attention, Conv and Norm share: steps that run one after the other.
type plan struct {
	lib       *Library
	name      string
	tensors   []spec // the result first
	steps     []step // none on a simulated device
	workspace uint64 // the largest workspace of the steps, which share it
	run       func(gpu.NativeCall) error
	closed    atomic.Bool
}

// newPlan makes a plan from the steps that the function make returns. On a simulated device inGo
// does the work.
func newPlan(l *Library, name string, tensors []spec, make func(h cudnn.Handle) ([]step, error), inGo func(m standin.Memory, p []driver.Ptr) error) (*plan, error) {
	p := &plan{lib: l, name: name, tensors: tensors}
	if l.in.Dev.Simulated() {
		p.run = func(n gpu.NativeCall) error {
			if err := p.check(n.Ptrs); err != nil {
				return err
			}
			at := append([]driver.Ptr(nil), n.Ptrs...)
			return l.in.Handle.StandIn(n, name, p.ready, func(m standin.Memory) error { return inGo(m, at) })
		}
		return p, nil
	}
	err := l.in.Handle.With(func(h cudnn.Handle) (err error) {
		p.steps, err = make(h)
		for _, x := range p.steps {
			l.steps[x] = true
			p.workspace = max(p.workspace, x.scratch())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dnn: %s: %w", name, err)
	}
	p.run = func(n gpu.NativeCall) error {
		return l.in.Handle.Use(n, 0, func(h cudnn.Handle) error {
			if err := p.ready(); err != nil {
				return err
			}
			if err := p.check(n.Ptrs); err != nil {
				return err
			}
			var workspace driver.Ptr
			if p.workspace > 0 {
				workspace = n.Ptrs[len(n.Ptrs)-1]
			}
			for _, x := range p.steps {
				if err := x.run(h, n.Ptrs, workspace); err != nil {
					return fmt.Errorf("dnn: %s: %w", name, err)
				}
			}
			return nil
		})
	}
	return p, nil
}

// ready returns an error if the plan is closed.
func (p *plan) ready() error {
	if p.closed.Load() {
		return fmt.Errorf("dnn: %s: the plan: %w", p.name, gpu.ErrClosed)
	}
	return nil
}

// A spec describes a tensor of a plan.
type spec struct {
	name string
	len  int    // number of elements
	size uint64 // number of bytes
}

func specOf[T any](name string, n int) spec {
	var zero T
	return spec{name, n, uint64(n) * uint64(unsafe.Sizeof(zero))}
}

// check returns an error for addresses that cuDNN refuses or that overlap: op cannot check a
// recording's bindings.
func (p *plan) check(at []driver.Ptr) error {
	for i, t := range p.tensors {
		if err := libcall.Aligned(t.name, "address %#x", uint64(at[i]), alignment); err != nil {
			return fmt.Errorf("dnn: %s: %w", p.name, err)
		}
		if i > 0 && libcall.Overlap(uint64(at[0]), p.tensors[0].size, uint64(at[i]), t.size) {
			return fmt.Errorf("dnn: %s: %s and %s overlap: %w", p.name, p.tensors[0].name, t.name, gpu.ErrArgument)
		}
	}
	return nil
}

// A tensor is an argument of an operation.
type tensor struct {
	memory gpu.Range
	len    int
}

func tensorOf[T any](s gpu.Slice[T]) tensor { return tensor{s.Range(), s.Len()} }

// op returns the Op that runs the plan with these arguments. The first argument is the result.
func (p *plan) op(name string, tensors ...tensor) gpu.Op {
	if p == nil {
		return gpu.BadOp(fmt.Errorf("dnn: %s: a zero plan, which was not made: %w", name, gpu.ErrArgument))
	}
	if err := p.ready(); err != nil {
		return gpu.BadOp(err)
	}
	bad := func(err error) gpu.Op { return gpu.BadOp(fmt.Errorf("dnn: %s: %w", p.name, err)) }
	if len(tensors) > len(p.tensors) {
		return bad(fmt.Errorf("the shape has no bias: pass the zero Slice: %w", gpu.ErrArgument))
	}
	var room [6]gpu.Range
	uses := room[:0]
	for i, t := range tensors {
		want := &p.tensors[i]
		if t.len != want.len {
			return bad(fmt.Errorf("%s has %d elements, and the plan's %s has %d: %w", want.name, t.len, want.name, want.len, gpu.ErrArgument))
		}
		if err := libcall.Aligned(want.name, "offset %d", t.memory.Offset, alignment); err != nil {
			return bad(err)
		}
		if i > 0 && overlap(t.memory, tensors[0].memory) {
			return bad(fmt.Errorf("%s and %s overlap: %w", p.tensors[0].name, want.name, gpu.ErrArgument))
		}
		uses = append(uses, t.memory)
	}
	return gpu.Native(p.name, p.run, uses...).Scratch(p.workspace)
}

func overlap(a, b gpu.Range) bool {
	return a.Buffer == b.Buffer && libcall.Overlap(a.Offset, a.Size, b.Offset, b.Size)
}

// close waits for the device's work and destroys the steps.
func (p *plan) close() error {
	if p == nil || p.closed.Swap(true) || p.lib.in.Dev.Simulated() {
		return nil
	}
	// The device's work may depend on a call that needs the handle, so wait for the work before
	// taking the handle.
	idle := p.lib.in.Dev.Current(p.lib.in.Dev.Idle)
	err := p.lib.in.Handle.With(func(cudnn.Handle) error {
		errs := []error{idle}
		for _, x := range p.steps {
			errs = append(errs, x.destroy())
			delete(p.lib.steps, x)
		}
		return errors.Join(errs...)
	})
	if errors.Is(err, gpu.ErrClosed) || errors.Is(err, gpu.ErrLost) { // closing the library or losing the device has ended the steps
		return nil
	}
	return err
}

// Half is the constraint for floats of 16 bits.
type Half interface {
	smallfloat.Float16 | smallfloat.BFloat16
}

// Element is the constraint for the types of a tensor's elements.
type Element interface{ float32 | Half }

// kindOf returns cuDNN's constant for the type T.
func kindOf[T Element]() cudnn.DataType {
	switch any(*new(T)).(type) {
	case smallfloat.Float16:
		return cudnn.DataHalf
	case smallfloat.BFloat16:
		return cudnn.DataBfloat16
	}
	return cudnn.DataFloat
}
