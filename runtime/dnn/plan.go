package dnn

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
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
	steps     []step // none on a simulated device
	workspace uint64 // the largest workspace of the steps, which share it
	run       func(gpu.NativeCall) error
	closed    atomic.Bool
}

// newPlan makes a plan from the steps that the function make returns. On a simulated device inGo
// does the work.
func newPlan(l *Library, name string, make func(h cudnn.Handle) ([]step, error), inGo func(m standin.Memory, p []driver.Ptr) error) (*plan, error) {
	p := &plan{lib: l, name: name}
	if l.in.Dev.Simulated() {
		p.run = func(n gpu.NativeCall) error {
			if err := p.ready(); err != nil {
				return err
			}
			at := append([]driver.Ptr(nil), n.Ptrs...)
			return l.in.Handle.StandIn(n, name, func(m standin.Memory) error { return inGo(m, at) })
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

// A tensor is an argument of an operation.
type tensor struct {
	name      string
	memory    gpu.Range
	len, want int
}

// tensorOf makes s an argument of a plan. want is the number of elements that s must have.
func tensorOf[T any](name string, s gpu.Slice[T], want int) tensor {
	return tensor{name, s.Range(), s.Len(), want}
}

// op returns the Op that runs the plan with these arguments. The first argument is the result.
func (p *plan) op(name string, tensors ...tensor) gpu.Op {
	if p == nil {
		return gpu.BadOp(fmt.Errorf("dnn: %s: a zero plan, which was not made: %w", name, gpu.ErrArgument))
	}
	if err := p.ready(); err != nil {
		return gpu.BadOp(err)
	}
	var room [6]gpu.Range
	uses := room[:0]
	for i, t := range tensors {
		if t.len != t.want {
			return gpu.BadOp(fmt.Errorf("dnn: %s: %s has %d elements, and the plan's has %d: %w", p.name, t.name, t.len, t.want, gpu.ErrArgument))
		}
		if t.memory.Offset%alignment != 0 {
			return gpu.BadOp(fmt.Errorf("dnn: %s: %s is at offset %d, which is not a multiple of %d: %w", p.name, t.name, t.memory.Offset, alignment, gpu.ErrArgument))
		}
		if i > 0 && overlap(t.memory, tensors[0].memory) {
			return gpu.BadOp(fmt.Errorf("dnn: %s: %s and %s overlap: %w", p.name, tensors[0].name, t.name, gpu.ErrArgument))
		}
		uses = append(uses, t.memory)
	}
	return gpu.Native(p.name, p.run, uses...).Scratch(p.workspace)
}

func overlap(a, b gpu.Range) bool {
	return a.Buffer == b.Buffer && a.Offset < b.Offset+b.Size && b.Offset < a.Offset+a.Size
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
