package gpu

import (
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/inside"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Inside returns the parts of a device. Inside is only for packages of this module, such as
// collective and interop: the result has an internal type.
func Inside(d *Device) *inside.Device {
	if d == nil {
		return nil
	}
	return &d.inside
}

// OpOf returns the Op that x describes. OpOf is for packages of this module, such as interop. x has
// an internal type, so other modules cannot call OpOf.
func OpOf(x inside.Op) Op {
	switch x.Kind {
	case work.EventRecord:
		return Op{kind: recordEventOp, obj: x.Event}
	case work.EventWait:
		return Op{kind: waitEventOp, obj: x.Event}
	case work.ValueWrite:
		return valueOp(writeValueOp, x.Range, x.Value)
	case work.ValueWait:
		return valueOp(waitValueOp, x.Range, x.Value)
	case work.Native:
		op := *x.Native.(*Op)
		op.again = op.kind == nativeOp
		return op
	case work.Control:
		return Op{kind: controlOp, obj: &control{x.Range, x.Loop, x.Bodies.([]Op), x.Bounds}}
	}
	return Op{}
}

// OpOfGroup returns an Op with a group of collectives, for package collective. OpOfGroup is
// separate from OpOf, because in OpOf the group would escape to the heap.
func OpOfGroup(g *comm.Group) Op { return groupOp(g) }

// newInside returns the parts of a device, for packages of this module.
func newInside(d *Device) inside.Device {
	return inside.Device{Engine: &d.native, Memory: &d.memory, Comm: &d.comm, Events: &d.events, Faces: &d.faces,
		NewQueue: func(stream driver.Stream, priority int) *engine.Timeline {
			q := newQueue(d, -1)
			q.tl.Stream, q.priority = stream, priority
			return q.tl
		},
		Semaphore: func(s any) *sema.Semaphore {
			if s := s.(*Semaphore); s != nil {
				return &s.sema
			}
			return nil
		}}
}

// Outer returns the *Device. Package inside calls it.
func (o *deviceOwner) Outer() any { return (*Device)(o) }
