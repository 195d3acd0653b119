package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/events"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// setBuffer makes the address of the range r the kernel argument with this index, and holds the
// range's buffer. The caller sets ended if the device is lost or closed. In that case the
// submission will fail with the device's error, and setBuffer does not hold the buffer: holding a
// closed buffer would fail with another error.
func (s *record) setBuffer(index int, r memory.Range, ended bool) error {
	at, err := r.Check("launch", s.q.dev.mem())
	if err == nil {
		err = r.Usable("launch", s.q.dev.mem())
	}
	if err != nil {
		return err
	}
	arg := boundArg{index: index, at: at}
	if !ended {
		if err := s.hold(r.Buffer); err != nil {
			return fmt.Errorf("gpu: launch: %w", err)
		}
	}
	s.bound = append(s.bound, arg)
	return nil
}

// holdCode holds the kernel's module until the record is released. If the launch records an event
// when the kernel has begun, holdCode also holds this event: it is the argument begun, which is
// otherwise nil. If holdCode returns an error, it has dropped the record.
func (s *record) holdCode(k *Kernel, begun *events.Event) error {
	if err := k.exe.hold(); err != nil {
		s.drop()
		return fmt.Errorf("gpu: launch: %w", err)
	}
	s.kernel = k
	s.Holds = append(s.Holds, (*codeUse)(k.exe))
	if begun != nil {
		if err := begun.Hold(); err != nil {
			s.drop()
			return fmt.Errorf("gpu: launch: %w", err)
		}
		s.shared = begun
	}
	return nil
}

// launchPart has the fields of a record that a launch uses.
type launchPart struct {
	launch driver.Launch // launch.Args[i] points to argument i in args
	args   []uint64      // the values of the arguments
	bound  []boundArg    // the arguments that are addresses of buffers
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

// setLayout makes room in p.args for kernel arguments with the layout l, sets them to zero, and
// makes p.launch.Args point to them.
func (p *launchPart) setLayout(l work.Layout) {
	p.args = work.Align(l.Append(p.args[:0], nil))
	p.launch.Args = l.Point(p.launch.Args[:0], p.args)
}

// resolveArgs stores the addresses of buffers in the kernel arguments. It returns an error if a
// buffer has no address.
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
