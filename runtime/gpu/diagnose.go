package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A ParkedOperation is an operation that has not been issued yet. Usually it waits for a point, and
// no work that signals this point has been issued. An operation that the host runs, such as a
// [HostCall], waits until its points are reached. A [Free] may wait for uses of its memory: it then
// has a wait for a semaphore of the runtime.
type ParkedOperation struct {
	Op     string        // for example "fill"
	Kernel string        // the name of the kernel to launch; "" for other operations
	Label  string        // the label of the Op
	Queue  string        // as in [Queue.String]
	Age    time.Duration // how long ago it was parked
	Waits  []ParkedWait  // the unmet waits; none if the operation is about to be issued
}

// A ParkedWait is an unmet wait of a parked operation.
type ParkedWait struct {
	Semaphore *Semaphore
	Value     uint64 // the value that the operation waits for
	Current   uint64 // the value reached, as far as the host knows

	// Producer describes the operation that will signal the value or a higher value, for example
	// "copy on queue 1 of H200, parked". Producer is empty if no device has issued such an
	// operation and the device whose Parked was called has none either. Then there are three
	// possibilities: the operation is parked on another device, it was never submitted, or the host
	// must signal the value.
	Producer string
}

// String describes the operation on one line.
func (p ParkedOperation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s, parked for %v", operation(p.Op, p.Kernel, p.Label), p.Queue, p.Age)
	for i, w := range p.Waits {
		if i == 0 {
			b.WriteString(", waits for ")
		} else {
			b.WriteString("; for ")
		}
		b.WriteString(w.String())
	}
	return b.String()
}

// String describes the wait.
func (w ParkedWait) String() string {
	by := w.Producer
	if by == "" {
		by = "nothing that was submitted here"
	}
	return fmt.Sprintf("%v to reach %d, which is at %d (to be signalled by: %s)", w.Semaphore, w.Value, w.Current, by)
}

// Parked lists the device's parked operations, oldest first, with their unmet waits. Use it to find
// out why an operation does not run. Parked does not wait for the device, but is too slow to be
// called often. The result may be outdated when Parked returns.
func (d *Device) Parked() (list []ParkedOperation) {
	if d.isZero() {
		return nil
	}
	open := d.openOperations()
	producers := map[*sema.Semaphore][]*openOperation{}
	for i := range open {
		for _, p := range open[i].signals {
			producers[p.Semaphore] = append(producers[p.Semaphore], &open[i])
		}
	}
	asked := engine.Now()
	for i := range open {
		o := &open[i]
		if o.how != engine.IsParked {
			continue
		}
		p := ParkedOperation{Op: o.op.String(), Kernel: o.kernel, Label: o.label, Queue: o.q.String(), Age: time.Duration(asked - o.since)}
		for _, w := range o.waits {
			value, at, issued := w.Semaphore.Outlook(w.Value)
			if value >= w.Value || issued && !o.hostly {
				// The point is reached, the semaphore has failed, or the work that signals the
				// point is issued.
				continue
			}
			wait := ParkedWait{Semaphore: outer(w.Semaphore), Value: w.Value, Current: value}
			if issued {
				wait.Producer = producerOf(at).String()
			}
			for _, by := range producers[w.Semaphore] {
				if wait.Producer == "" && by != o && by.reaches(w) {
					wait.Producer = by.String()
				}
			}
			p.Waits = append(p.Waits, wait)
		}
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b ParkedOperation) int { return cmp.Compare(b.Age, a.Age) })
	return list
}

// An openOperation describes a submission that is neither in a stream nor done.
type openOperation struct {
	op             work.Kind
	kernel, label  string
	q              *Queue
	since          engine.Moment
	how            engine.OpenState
	hostly         bool // it is parked until its waits are reached, like a host call
	waits, signals []sema.Point
}

func (o *openOperation) String() string {
	return fmt.Sprintf("%s on %v, %s", operation(o.op.String(), o.kernel, o.label), o.q, o.how)
}

// reaches reports whether the operation will signal the point or a higher value.
func (o *openOperation) reaches(p sema.Point) bool {
	for _, s := range o.signals {
		if s.Semaphore == p.Semaphore && s.Value >= p.Value {
			return true
		}
	}
	return false
}

// openOperations returns the device's parked submissions, the operations that run on the host (host
// calls, transfers in pieces and control operations), and the groups of collectives that wait for
// earlier groups of their lane. EachOpen keeps the lists of points from changing while they are
// copied.
func (d *Device) openOperations() (open []openOperation) {
	d.native.EachOpen(func(s *engine.Submission, how engine.OpenState) {
		r := recordOf(s)
		open = append(open, openOperation{s.Op.Kind, r.kernelName(), r.label, r.q, s.Since(), how, s.Mode == engine.UntilReached,
			slices.Clone(s.Waits), slices.Clone(s.Signals)})
	})
	return open
}

// A producer is work in flight that will signal a point.
type producer struct {
	tl    *engine.Timeline
	op    string
	known bool // op is set; if not, the operation is being issued, or is done
	late  bool // a barrier behind the work signals the point
}

// producerOf returns the work that will signal a point.
func producerOf(p sema.Signal) producer {
	by := producer{late: p.ByBarrier}
	by.tl = engine.FindProducer(p, func(s *engine.Submission) {
		r := recordOf(s)
		by.op, by.known = operation(s.Op.Kind.String(), r.kernelName(), r.label), true
	})
	return by
}

func (p producer) String() string {
	op, on := "work", p.tl.Device.Info.Name
	if p.known {
		op = p.op
	}
	if p.late {
		op = "barrier behind " + op
	}
	if p.tl.IsListed() {
		on = p.tl.Queue.String()
	}
	return fmt.Sprintf("%s on %s, in flight", op, on)
}

// A contextError is the error of a wait whose context has ended, with the state of the points at
// that time. waitEnded does not format the text, but Error does: a program that polls with ended
// contexts makes many of these errors and seldom reads their text.
type contextError struct {
	err, cause error      // the context's error and its cause
	point      sema.Point // the first point that had been neither reached nor failed
	now        uint64     // the value of the point's semaphore
	by         producer   // the work that will signal the point; by.tl is nil if none is in flight
	more       int        // how many further points had been neither reached nor failed
}

// waitEnded returns the error of a wait whose context has ended.
func waitEnded(ctx context.Context, points []sema.Point) error {
	e := &contextError{err: ctx.Err(), cause: context.Cause(ctx), more: -1}
	for _, p := range points {
		if p.Over() {
			continue
		}
		if e.more++; e.more > 0 {
			continue
		}
		now, at, issued := p.Semaphore.Outlook(p.Value)
		if e.point, e.now = p, now; issued {
			e.by = producerOf(at)
		}
	}
	return e
}

func (e *contextError) Error() string {
	var b strings.Builder
	b.WriteString("gpu: wait")
	if s := e.point.Semaphore; s != nil { // nil if all points have been reached or have failed meanwhile
		fmt.Fprintf(&b, " for %v to reach %d, which is at %d, ", s, e.point.Value, e.now)
		if e.by.tl != nil {
			fmt.Fprintf(&b, "to be signalled by: %v", e.by)
		} else {
			b.WriteString("and nothing that was issued signals it (Device.Parked lists what was not)")
		}
		if e.more > 0 {
			fmt.Fprintf(&b, ", and for %d points more", e.more)
		}
	}
	fmt.Fprintf(&b, ": %v", e.err)
	if !errors.Is(e.cause, e.err) {
		fmt.Fprintf(&b, ": %v", e.cause)
	}
	return b.String()
}

func (e *contextError) Unwrap() []error { return []error{e.err, e.cause} }

// ObjectStats counts the objects of an internal pool.
type ObjectStats struct {
	Made int // made since the device was opened
	Held int // existing now, in use or not
	Free int // existing now and not in use; Device.Trim may drop them
}
