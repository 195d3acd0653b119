package gpu

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Dispatch is a launch of a kernel. A zero dimension means one, as in a [Grid].
type Dispatch struct {
	Kernel    *Kernel
	Grid      [3]uint32        // blocks
	Block     [3]uint32        // threads
	SharedMem uint32           // dynamic, bytes; the device limits it plus the kernel's own
	Attrs     LaunchAttrs      // the zero value is a usual launch
	Begun     *SharedEvent     // recorded when all blocks have begun, as in [Grid]; nil is none
	Args      []unsafe.Pointer // pointers to the parameters' values, which the call copies
	Sizes     []int            // of the values in bytes; nil if the driver knows them

	// Buffers are the arguments that are addresses of ranges. Their pointers in Args are nil. The
	// buffers are held until the kernel is done. Their memory may be allocated only when the launch
	// is issued.
	Buffers []BufferArg
}

// A BufferArg is a kernel argument that is the address of a range of a buffer.
type BufferArg struct {
	Index int // of the argument
	Range Range
}

// check checks a launch on a device, and returns its grid and the layout of its arguments.
func (x *Dispatch) check(d *Device) (Grid, work.Layout, error) {
	g := Grid{Blocks: x.Grid, Threads: x.Block, SharedMem: x.SharedMem, Attrs: x.Attrs, Begun: x.Begun}
	if x.Kernel == nil || x.Kernel.exe == nil || x.Kernel.exe.dev != d {
		return g, nil, errs.Argument("dispatch", "no kernel, or one of another device")
	}
	layout, err := x.Kernel.layout(x.Args, x.Sizes, x.Buffers)
	if err == nil {
		err = g.check(x.Kernel)
	}
	return g, layout, err
}

// Dispatch launches a kernel.
func (q *Queue) Dispatch(o Order, d Dispatch) error {
	g, layout, err := d.check(q.dev)
	if err != nil {
		return err
	}
	s := q.get(work.Dispatch)
	s.setArgs(layout, d.Args)
	ended := q.dev.failed() != nil
	for _, b := range d.Buffers {
		if err := s.setBuffer(b.Index, b.Range.in(), ended); err != nil {
			s.drop()
			return err
		}
	}
	return q.launch(s, o, d.Kernel, &g, ended)
}

// setBuffer makes the address of a range a kernel argument, and holds its buffer. If the device has
// ended, it holds nothing: the submission fails anyway, whatever the state of its buffers.
func (s *record) setBuffer(index int, r memory.Range, ended bool) error {
	at, err := r.Check("dispatch", s.q.dev.mem())
	if err == nil {
		err = r.Usable("dispatch", s.q.dev.mem())
	}
	if err != nil {
		return err
	}
	arg := boundArg{index: index, at: at}
	if !ended {
		if err := r.Buffer.Hold(); err != nil {
			return fmt.Errorf("gpu: dispatch: %w", err)
		}
		s.keep(r.Buffer)
	}
	s.bound = append(s.bound, arg)
	return nil
}

// launch submits a launch whose arguments have been set.
func (q *Queue) launch(s *record, o Order, k *Kernel, g *Grid, ended bool) error {
	if !ended {
		if err := k.exe.hold(); err != nil {
			s.drop()
			return fmt.Errorf("gpu: dispatch: %w", err)
		}
		s.kernel = k
		s.Holds = append(s.Holds, (*codeUse)(k.exe))
		if g.Begun != nil {
			if err := g.Begun.hold(); err != nil {
				s.drop()
				return fmt.Errorf("gpu: dispatch: %w", err)
			}
			s.shared = g.Begun
		}
	}
	args := s.launch.Args
	s.launch = g.launch(k)
	s.launch.Args = args
	if s.shared != nil {
		s.launch.Begun = s.shared.h
	}
	if g.nothing() {
		if s.Op.Kind = work.Barrier; s.shared != nil {
			s.Op.Kind = work.EventRecord
		}
	}
	return q.submit(s, o)
}

// launchPart is the part of a submission's record for a launch.
type launchPart struct {
	launch driver.Launch // launch.Args point into args, as the layout says
	args   []uint64
	bound  []boundArg // arguments that are buffers
	kernel *Kernel
}

// A boundArg is a kernel argument that is the address of a range of a buffer.
type boundArg struct {
	index int // of the argument
	at    engine.Address
}

func (p *launchPart) reset() {
	ptrs := p.launch.Args
	clear(ptrs)
	clear(p.bound)
	*p = launchPart{launch: driver.Launch{Args: ptrs[:0]}, args: p.args[:0], bound: p.bound[:0]}
}

// kernelName returns the name of the launched kernel, or "".
func (p *launchPart) kernelName() string {
	if p.kernel == nil {
		return ""
	}
	return p.kernel.name
}

// setArgs copies kernel arguments. Nil arguments are set later. Without data, all are nil.
func (p *launchPart) setArgs(l work.Layout, data []unsafe.Pointer) {
	p.args = work.Align(l.Append(p.args[:0], data))
	p.launch.Args = l.Point(p.launch.Args[:0], p.args)
}

// resolveArgs stores the addresses of buffers in the arguments.
func (p *launchPart) resolveArgs() error {
	for i := range p.bound {
		b := &p.bound[i]
		ptr, err := b.at.Resolve()
		if err != nil {
			return err
		}
		*work.Address(p.launch.Args[b.index]) = ptr
	}
	return nil
}
