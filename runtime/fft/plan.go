package fft

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cufft"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// Complex is the constraint for the complex numbers of a transform.
type Complex interface{ complex64 | complex128 }

// Real is the constraint for the real numbers of a transform.
type Real interface{ float32 | float64 }

// A Plan does transforms of complex numbers, forward and inverse. It may be used concurrently, in
// several queues and recordings.
type Plan[T Complex] struct{ plan plan }

// NewPlan makes a plan for complex numbers (C: cufftMakePlanMany64). It blocks until cuFFT has
// chosen its kernels. Close the plan when it is not used any more.
func NewPlan[T Complex](l *Library, s Shape) (*Plan[T], error) {
	if l.isZero() {
		return nil, errZero
	}
	x := &Plan[T]{plan{lib: l, shape: s}}
	p := &x.plan
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.Padded {
		return nil, fmt.Errorf("fft: a plan of complex numbers with padded rows: only real numbers have them: %w", gpu.ErrArgument)
	}
	p.shape.Dims = slices.Clone(s.Dims)
	p.inPlace = true
	var one T
	p.align = sizeOf(one)
	n := uint64(s.Points()*s.batch()) * p.align
	p.size = [2]uint64{n, n}
	if l.dev.Simulated() {
		p.forward = p.stands("complex forward", 0, complexStandIn[T](p.shape, -1))
		p.inverse = p.stands("complex inverse", 1, complexStandIn[T](p.shape, +1))
		return x, p.opened()
	}
	kind, name, exec := cufft.C2C, "cufftExecC2C", l.cufft.ExecC2C
	if p.align == 16 {
		kind, name, exec = cufft.Z2Z, "cufftExecZ2Z", l.cufft.ExecZ2Z
	}
	h, err := p.make(kind, 0, 0)
	if err != nil {
		return nil, err
	}
	p.forward = p.calls(name, 0, h, func(c cufft.Handle, dst, src cuda.DevicePtr) error { return exec(c, src, dst, cufft.Forward) })
	p.inverse = p.calls(name, 1, h, func(c cufft.Handle, dst, src cuda.DevicePtr) error { return exec(c, src, dst, cufft.Inverse) })
	return x, p.opened()
}

// Forward returns the Op that transforms src to dst (C: cufftExecC2C, cufftExecZ2Z). dst and src
// each have Shape.Points elements for each transform of the batch. They must be the same memory, or
// must not overlap.
func (p *Plan[T]) Forward(dst, src gpu.Slice[T]) gpu.Op {
	if p == nil {
		return gpu.BadOp(errZeroPlan)
	}
	n := p.plan.shape.Points() * p.plan.shape.batch()
	return p.plan.op("forward", &p.plan.forward, dst.Range(), src.Range(), dst.Len(), n, src.Len(), n)
}

// Inverse returns the Op that transforms src to dst in the other direction, without dividing by the
// number of points. See [Plan.Forward] for its arguments.
func (p *Plan[T]) Inverse(dst, src gpu.Slice[T]) gpu.Op {
	if p == nil {
		return gpu.BadOp(errZeroPlan)
	}
	n := p.plan.shape.Points() * p.plan.shape.batch()
	return p.plan.op("inverse", &p.plan.inverse, dst.Range(), src.Range(), dst.Len(), n, src.Len(), n)
}

// Close destroys the plan (C: cufftDestroy). It blocks until the device is done with the plan's
// work. Operations and recordings that use the plan fail from then on. Graphs that recordings have
// already made do not fail on a GPU, but read tables that cuFFT has freed. So close the recordings
// first. Closing again does nothing.
func (p *Plan[T]) Close() error {
	if p == nil {
		return nil
	}
	return p.plan.Close()
}

// A RealPlan does transforms of real numbers to complex numbers, and back. The transform of a row
// of n real numbers consists of n/2+1 complex numbers, because the remaining numbers are conjugates
// of these. So the arrays of complex numbers have the sizes Dims, but with n/2+1 in place of the
// last size. A RealPlan may be used concurrently, in several queues and recordings.
type RealPlan[R Real, C Complex] struct{ plan plan }

// NewRealPlan makes a plan for real numbers R: float32 with complex64, or float64 with complex128
// (C: cufftMakePlanMany64, once for each direction). It blocks until cuFFT has chosen its kernels.
// Close the plan when it is not used any more.
func NewRealPlan[R Real, C Complex](l *Library, s Shape) (*RealPlan[R, C], error) {
	if l.isZero() {
		return nil, errZero
	}
	x := &RealPlan[R, C]{plan{lib: l, shape: s}}
	p := &x.plan
	var r R
	var c C
	p.align = sizeOf(c)
	if p.align != 2*sizeOf(r) {
		return nil, fmt.Errorf("fft: a plan for %T and %T: float32 goes with complex64, and float64 with complex128: %w", r, c, gpu.ErrArgument)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	p.shape.Dims = slices.Clone(s.Dims)
	p.inPlace = s.Padded
	p.size = [2]uint64{uint64(s.rows()*s.pitch()) * sizeOf(r), uint64(s.rows()*s.half()) * p.align}
	if l.dev.Simulated() {
		p.forward = p.stands("real forward", 0, realForward[R, C](p.shape))
		p.inverse = p.stands("real inverse", 1, realInverse[R, C](p.shape))
		return x, p.opened()
	}
	from, to := cufft.R2C, cufft.C2R
	fromName, toName := "cufftExecR2C", "cufftExecC2R"
	execFrom, execTo := l.cufft.ExecR2C, l.cufft.ExecC2R
	if p.align == 16 {
		from, to = cufft.D2Z, cufft.Z2D
		fromName, toName = "cufftExecD2Z", "cufftExecZ2D"
		execFrom, execTo = l.cufft.ExecD2Z, l.cufft.ExecZ2D
	}
	pitch, half := p.shape.pitch(), p.shape.half()
	h, err := p.make(from, pitch, half)
	if err != nil {
		return nil, err
	}
	p.forward = p.calls(fromName, 0, h, func(c cufft.Handle, dst, src cuda.DevicePtr) error { return execFrom(c, src, dst) })
	if h, err = p.make(to, half, pitch); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.inverse = p.calls(toName, 1, h, func(c cufft.Handle, dst, src cuda.DevicePtr) error { return execTo(c, src, dst) })
	return x, p.opened()
}

// Forward returns the Op that transforms real numbers to complex ones (C: cufftExecR2C,
// cufftExecD2Z). dst and src must not overlap, except that they may begin at the same address if
// the shape is padded. The address of src must be a multiple of the size of a complex number.
func (p *RealPlan[R, C]) Forward(dst gpu.Slice[C], src gpu.Slice[R]) gpu.Op {
	if p == nil {
		return gpu.BadOp(errZeroPlan)
	}
	rows := p.plan.shape.rows()
	return p.plan.op("forward", &p.plan.forward, dst.Range(), src.Range(), dst.Len(), rows*p.plan.shape.half(), src.Len(), rows*p.plan.shape.pitch())
}

// Inverse returns the Op that transforms complex numbers to real ones, without dividing by the
// number of points (C: cufftExecC2R, cufftExecZ2D). Inverse assumes that numbers of a transform
// that must equal their own conjugates, such as the first number, are real. The contents of src are
// undefined afterwards, because cuFFT may use the memory; on a simulated device they are NaN. The
// rules of [RealPlan.Forward] hold, with dst and src exchanged.
func (p *RealPlan[R, C]) Inverse(dst gpu.Slice[R], src gpu.Slice[C]) gpu.Op {
	if p == nil {
		return gpu.BadOp(errZeroPlan)
	}
	rows := p.plan.shape.rows()
	return p.plan.op("inverse", &p.plan.inverse, dst.Range(), src.Range(), dst.Len(), rows*p.plan.shape.pitch(), src.Len(), rows*p.plan.shape.half())
}

// Close destroys the plan: see [Plan.Close].
func (p *RealPlan[R, C]) Close() error {
	if p == nil {
		return nil
	}
	return p.plan.Close()
}

var errZeroPlan = fmt.Errorf("fft: a nil or zero plan: use NewPlan, NewRealPlan or NewCustomPlan: %w", gpu.ErrArgument)

// A plan is the part that Plan, RealPlan and CustomPlan share.
type plan struct {
	lib              *Library
	shape            Shape
	align            uint64    // alignment of addresses: the size of a complex number; 1 for a CustomPlan
	inPlace          bool      // the source may be the destination
	size             [2]uint64 // bytes of the source and of the destination of a forward transform
	forward, inverse direction
	handles          []*libcall.Handle[cufft.Handle]
	closed           atomic.Bool
}

// A direction is the forward or the inverse transform of a plan. gpu.Native gets fn and the
// ranges of the destination and of the source.
type direction struct {
	name string
	fn   func(gpu.NativeCall) error
	work uint64 // size of the scratch memory in bytes
}

// A cufftPlan is a plan of cuFFT with the size of its work area.
type cufftPlan struct {
	*libcall.Handle[cufft.Handle]
	work uint64
}

// Close destroys the plan's handles.
func (p *plan) Close() error {
	if p.closed.Swap(true) || p.lib == nil {
		return nil
	}
	p.lib.plans.Remove(p)
	var errs []error
	for _, h := range p.handles {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}

// opened adds the plan to the library's plans.
func (p *plan) opened() error { return p.lib.plans.Add(p.lib.dev, p) }

// make makes a plan of cuFFT. in is the distance between the starts of two rows in the source,
// counted in numbers, and out is the distance in the destination. If in is 0, rows have no gaps.
func (p *plan) make(kind cufft.Type, in, out int) (cufftPlan, error) {
	s := p.shape
	n, inembed, onembed := s.sizes(s.row()), []int64(nil), []int64(nil)
	var idist, odist int64
	if in > 0 {
		inembed, onembed = s.sizes(in), s.sizes(out)
		rows := s.rows() / s.batch()
		idist, odist = int64(rows*in), int64(rows*out)
	}
	return p.lib.make(p, func(l *cufft.Library, h cufft.Handle, work []uint64) error {
		return l.MakePlanMany64(h, n, inembed, 1, idist, onembed, 1, odist, kind, int64(s.batch()), work)
	})
}

// make makes a handle of cuFFT that does not allocate its work area, and calls fn to make the plan.
func (l *Library) make(p *plan, fn func(*cufft.Library, cufft.Handle, []uint64) error) (cufftPlan, error) {
	work := make([]uint64, 1)
	create := func() (h cufft.Handle, err error) {
		if h, err = l.cufft.Create(); err != nil {
			return 0, err
		}
		if err = l.cufft.SetAutoAllocation(h, 0); err == nil {
			err = fn(l.cufft, h, work)
		}
		if err != nil {
			return 0, errors.Join(err, l.cufft.Destroy(h))
		}
		return h, nil
	}
	set := func(h cufft.Handle, stream cuda.Stream, workspace cuda.DevicePtr) error {
		err := l.cufft.SetStream(h, stream)
		if err == nil && workspace != 0 {
			err = l.cufft.SetWorkArea(h, workspace)
		}
		return err
	}
	h, err := libcall.NewHandle(l.dev, create, set, l.cufft.Destroy)
	if err != nil {
		return cufftPlan{}, err
	}
	p.handles = append(p.handles, h)
	return cufftPlan{h, work[0]}, nil
}

// calls returns a direction that calls cuFFT.
func (p *plan) calls(name string, inverse int, h cufftPlan, exec func(h cufft.Handle, dst, src cuda.DevicePtr) error) direction {
	return direction{name, func(v gpu.NativeCall) error {
		if err := p.ready(v, inverse); err != nil {
			return err
		}
		return h.Use(v, h.workspace(v), func(c cufft.Handle) error { return exec(c, cuda.DevicePtr(v.Ptrs[0]), cuda.DevicePtr(v.Ptrs[1])) })
	}, h.work}
}

// workspace returns the address of a call's scratch memory, or 0 if the plan needs none.
func (h cufftPlan) workspace(v gpu.NativeCall) driver.Ptr {
	if h.work == 0 {
		return 0
	}
	return v.Ptrs[len(v.Ptrs)-1]
}

// stands returns a direction for a simulated device: the Go function fn computes the transform.
func (p *plan) stands(name string, inverse int, fn func(m standin.Memory, dst, src driver.Ptr) error) direction {
	return direction{name, func(v gpu.NativeCall) error {
		if err := p.ready(v, inverse); err != nil {
			return err
		}
		dst, src := v.Ptrs[0], v.Ptrs[1]
		open := func() error { return p.open(directions[inverse]) }
		return p.lib.dev.StandIn(v, name, open, func(m standin.Memory) error { return fn(m, dst, src) })
	}, 0}
}

// directions names the directions, for errors.
var directions = [...]string{"forward", "inverse"}

// open returns an error if the plan is closed. direction is for the error.
func (p *plan) open(direction string) error {
	if p.closed.Load() {
		return fmt.Errorf("fft: %s: the plan: %w", direction, gpu.ErrClosed)
	}
	return nil
}

// ready returns an error for a call with a closed plan, or with addresses that cuFFT refuses.
// inverse is 1 for an inverse transform, and 0 for a forward one.
func (p *plan) ready(v gpu.NativeCall, inverse int) error {
	if err := p.open(directions[inverse]); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("fft: %s: %s: %w", directions[inverse], fmt.Sprintf(format, args...), gpu.ErrArgument)
	}
	for _, at := range v.Ptrs[:2] {
		if uint64(at)%p.align != 0 {
			return bad("memory at %#x, which is not a multiple of %d, the size of a complex number", uint64(at), p.align)
		}
	}
	// op cannot check a recording's bindings.
	switch dst, src := uint64(v.Ptrs[0]), uint64(v.Ptrs[1]); {
	case dst != src && libcall.Overlap(dst, p.size[1-inverse], src, p.size[inverse]):
		return bad("dst and src overlap")
	case dst == src && !p.inPlace:
		return bad("dst and src are the same memory: only a plan with padded rows transforms real numbers in place")
	}
	return nil
}

// op returns the operation of a direction.
func (p *plan) op(name string, d *direction, dst, src gpu.Range, dstLen, dstWant, srcLen, srcWant int) gpu.Op {
	bad := func(format string, args ...any) gpu.Op {
		return gpu.BadOp(fmt.Errorf("fft: %s: %s: %w", name, fmt.Sprintf(format, args...), gpu.ErrArgument))
	}
	switch {
	case p.lib == nil:
		return gpu.BadOp(errZeroPlan)
	case p.closed.Load():
		return gpu.BadOp(p.open(name))
	case dstLen != dstWant:
		return bad("dst has %d elements, and the plan writes %d", dstLen, dstWant)
	case srcLen != srcWant:
		return bad("src has %d elements, and the plan reads %d", srcLen, srcWant)
	case dst.Offset%p.align != 0 || src.Offset%p.align != 0:
		return bad("memory at offsets %d and %d; these must be multiples of %d, the size of a complex number", dst.Offset, src.Offset, p.align)
	case dst.Buffer != src.Buffer || !libcall.Overlap(dst.Offset, dst.Size, src.Offset, src.Size):
	case dst.Offset != src.Offset:
		return bad("dst and src overlap")
	case !p.inPlace:
		return bad("dst and src are the same memory: only a plan with padded rows transforms real numbers in place")
	}
	return gpu.Native(d.name, d.fn, dst, src).Scratch(d.work)
}

func sizeOf(v any) uint64 {
	switch v.(type) {
	case float32:
		return 4
	case complex128:
		return 16
	}
	return 8
}
