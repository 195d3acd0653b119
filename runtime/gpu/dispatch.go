package gpu

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Dispatch is a launch of a kernel. A zero dimension means one, as in a [Grid].
type Dispatch struct {
	Kernel    *Kernel
	Grid      [3]uint32        // blocks
	Block     [3]uint32        // threads
	SharedMem uint32           // dynamic, bytes; with the kernel's own at most what a block of the device has
	Attrs     LaunchAttrs      // none is as any launch
	Begun     *SharedEvent     // recorded when all blocks have begun, as [Grid] says; nil is none
	Args      []unsafe.Pointer // one a parameter, to its value, which is copied by the call
	Sizes     []int            // of the values in bytes; nil where the driver tells them

	// Buffers are the arguments that are addresses of ranges; the pointers in Args for them are nil. The buffers stay until
	// the kernel is done, and may be of memory that is allocated only when the launch is issued.
	Buffers []BufferArg
}

// A BufferArg is a kernel's argument that is the address of a range of a buffer.
type BufferArg struct {
	Index int // of the argument
	Range Range
}

// check checks a launch on a device, and returns its grid and the layout of its arguments.
func (x *Dispatch) check(d *Device) (Grid, work.Layout, error) {
	g := Grid{Blocks: x.Grid, Threads: x.Block, SharedMem: x.SharedMem, Attrs: x.Attrs, Begun: x.Begun}
	if x.Kernel == nil || x.Kernel.exe == nil || x.Kernel.exe.dev != d {
		return g, nil, argument("dispatch", "no kernel, or one of another device")
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
		if err := s.setBuffer(b.Index, b.Range, ended); err != nil {
			s.drop()
			return err
		}
	}
	return q.launch(s, o, d.Kernel, &g, ended)
}

// setBuffer makes the address of a range a kernel's argument, and holds its buffer; but where the device has ended the submission
// fails, whatever has become of what it uses.
func (s *record) setBuffer(index int, r Range, ended bool) error {
	at, err := r.check("dispatch", s.q)
	if err == nil {
		err = r.usable("dispatch", s.q.dev)
	}
	if err != nil {
		return err
	}
	arg := boundArg{index: index, at: at}
	if !ended {
		if err := r.Buffer.hold(); err != nil {
			return fmt.Errorf("gpu: dispatch: %w", err)
		}
		s.keep(r.Buffer)
	}
	s.bound = append(s.bound, arg)
	return nil
}

// launch submits a launch that has its arguments.
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
	launch driver.Launch // Args point into args, by their layout
	args   []uint64
	bound  []boundArg // arguments that are buffers
	kernel *Kernel
}

// A boundArg is an argument of a kernel that is the address of a buffer's range.
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

// kernelName returns the name of the kernel that is launched, or "".
func (p *launchPart) kernelName() string {
	if p.kernel == nil {
		return ""
	}
	return p.kernel.name
}

// setArgs copies kernel arguments. Those that are nil, as all are if there is no data, are left for later.
func (p *launchPart) setArgs(l work.Layout, data []unsafe.Pointer) {
	p.args = work.Align(l.Append(p.args[:0], data))
	p.launch.Args = l.Point(p.launch.Args[:0], p.args)
}

// resolveArgs puts the addresses of buffers into the arguments.
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
