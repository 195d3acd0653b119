package gpu

import (
	"context"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Tracer observes devices. It is a [trace.Tracer] or an [nvtxtrace.Tracer]. Other modules cannot
// implement it, because its method has internal types.
//
// [trace.Tracer]: https://pkg.go.dev/github.com/puregpu/puregpu/runtime/trace#Tracer
// [nvtxtrace.Tracer]: https://pkg.go.dev/github.com/puregpu/puregpu/runtime/trace/nvtxtrace#Tracer
type Tracer interface {
	// Observe returns the observer of a device that is being opened, or nil if the tracer does not
	// observe the device. Observe is called on the pending-queue thread, before the device has
	// events. The function pools returns how many bytes the device's pools have reserved, and how
	// many of these bytes are used. A call of pools blocks while it queries the driver.
	Observe(dev *Device, core *engine.Device, pools func() (reserved, used uint64)) (observe.Device, error)
}

// observe gives the device its observer, if the options have a tracer.
func (d *Device) observe() (err error) {
	if d.opt.Tracer != nil {
		d.memory.Observer, err = d.opt.Tracer.Observe(d, &d.native, d.memory.SamplePools)
	}
	return err
}

// observed begins to observe a submission, for its Timing and for the device's observer. It returns
// an error if the Timing cannot be used.
func (r *record) observed(o *Order) error {
	if o.timing != nil {
		if err := r.time(o); err != nil {
			return err
		}
	}
	if by := r.q.dev.memory.Observer; by != nil {
		if x := by.Submitted(&r.Submission, r.describe()); x != nil {
			r.Observers = append(r.Observers, x)
		}
	}
	return nil
}

// describe returns the description of a submission for an observer.
func (r *record) describe() observe.Description {
	d := observe.Description{Queue: r.q, Label: r.label, Bytes: r.Op.Bytes(), Part: r.recording.Number()}
	switch r.Op.Kind {
	case work.Launch:
		d.Grid, d.Block, d.Bytes = r.launch.Grid, r.launch.Block, 0
	case work.Alloc, work.Free:
		if b := r.memory.Buffer(); b != nil {
			d.Bytes = b.Size()
		}
	}
	if r.kernel != nil {
		d.Kernel = r.kernel.name
	}
	if r.recording.Recording() != nil {
		d.First, d.Commands, d.Graph = r.recording.Commands()
		d.Recording = r.recording.Described()
	}
	return d
}

// noteSignal tells the observer of a semaphore, if there is one, that the host has signalled the
// semaphore with the value, or that the host will fail the semaphore with err.
func noteSignal(s *sema.Semaphore, value uint64, err error) {
	if o := observe.OfSemaphore(s); o != nil {
		o.Signalled(s, value, err)
	}
}

// waits tells the observers of the points' semaphores that the program begins to wait. When an
// observer returns an observe.Wait, waits returns this Wait and tells no further observer. If no
// observer returns an observe.Wait, waits returns nil.
func waits(ctx context.Context, points []Point, all bool) observe.Wait {
	for _, p := range points {
		if o := observe.OfSemaphore(&p.Semaphore.sema); o != nil {
			if w := o.Waits(ctx, all); w != nil {
				return w
			}
		}
	}
	return nil
}
