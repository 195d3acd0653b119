package gpu

import (
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/inside"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Inside returns the parts of a device. It is for packages of this module: collective and interop.
// Other modules cannot use the result.
func Inside(d *Device) *inside.Device {
	if d == nil {
		return nil
	}
	return &d.inside
}

// OpOf returns an Op for packages of this module, which make Ops of their own. Other modules cannot
// make its argument.
func OpOf(x inside.Op) Op {
	if x.Kind == work.Collect {
		return groupOp(x.Group)
	}
	return Op{}
}

// newInside makes the parts of a device.
func newInside(d *Device) inside.Device {
	return inside.Device{Engine: &d.native, Memory: &d.memory, Comm: &d.comm, Faces: &d.faces,
		NewQueue: func(stream driver.Stream, priority int) *engine.Timeline {
			q := newQueue(d, -1)
			q.tl.Stream, q.priority = stream, priority
			return q.tl
		}}
}

// Outer returns the Device, for package inside.
func (o *deviceOwner) Outer() any { return (*Device)(o) }
