package gpu

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
)

// A Timing tells how long the device took for an operation that it was given with, by [Order]: between two timing events, one in front of
// the operation's work and one behind it, so without what it waited for. It can be given with one operation after the other, each of which
// begins it anew, and not before the signals of the one before have been reached. To give it allocates nothing. The events may keep
// kernels apart that would overlap else, and there is more between them than the kernel: the device
// also begins it and records the second event. A kernel's Timing is therefore longer than what a profiler says for the kernel alone, by
// 1.4 microseconds on an H200 and 2.7 on an H100.
//
// Where the stream has no other work, a Timing includes the time that the host takes to give the device the operation: with [Queue.Native] all the
// time that the function takes.
//
// Make one with [Device.NewTiming]; all methods may be called concurrently.
type Timing struct {
	dev    *Device
	self   *Timing
	before driver.Event // the work
	behind driver.Event
	refs   atomic.Int32
	closed atomic.Bool
	noted  atomic.Int32 // of what follows: a bit each
	host   atomic.Int64 // how long a function of the program took, in nanoseconds
}

// What is noted.
const (
	notedBegin  = 1 << iota // the event in front of the work is recorded
	notedEnd                // and the one behind it
	notedHost               // the operation was a function of the program, which has returned
	notedGiven              // an operation has been given
	notedNone               // which gives no stream work, or the driver has refused to record an event
	notedFailed             // which has failed
)

// timingEdges say what a part of an operation does not note: another part is the first, or the last, whose time counts.
type timingEdges uint8

const (
	noBegin timingEdges = 1 << iota
	noEnd
)

// NewTiming makes what tells how long operations of the device's queues and channels take. It blocks while the driver makes two events.
// Where events note no times ([driver.Caps].Timers) the error is [driver.ErrUnsupported].
func (d *Device) NewTiming() (*Timing, error) {
	const op = "make a timing"
	if err := d.failed(); err != nil {
		return nil, err
	}
	if d.faces.timers == nil {
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
	}
	t := &Timing{dev: d}
	t.self = t
	t.refs.Store(1)
	err := d.native.Do(func() (err error) {
		if t.before, err = d.faces.timers.NewTimer(); err != nil {
			return err
		}
		if t.behind, err = d.faces.timers.NewTimer(); err != nil {
			return errors.Join(err, d.native.Native.DestroyEvent(t.before))
		}
		d.mu.Lock()
		d.timings[t] = struct{}{}
		d.mu.Unlock()
		return nil
	})
	if err != nil {
		d.native.Check(err)
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, err)
	}
	return t, nil
}

// begin holds the timing for an operation of a device.
func (t *Timing) begin(d *Device, edges timingEdges) error {
	switch {
	case t.dev != d || t.self != t:
		return fmt.Errorf("a timing of another device, a copy, or one that was not made: %w", ErrArgument)
	case t.closed.Load() || !holdLive(&t.refs, 1):
		return fmt.Errorf("timing: %w", ErrClosed)
	}
	if edges&noBegin == 0 {
		t.host.Store(0)
		t.noted.Store(notedGiven)
	}
	return nil
}

// note notes something, unless there is no timing.
func (t *Timing) note(bit int32) {
	if t != nil {
		t.noted.Or(bit)
	}
}

// record records one of the events, and notes that.
func (t *Timing) record(tl *engine.Timeline, e driver.Event, bit int32) {
	if tl.Device.Native.Record(e, tl.Stream) != nil {
		bit = notedNone
	}
	t.note(bit)
}

// hostly notes how long a function took that was the operation, or one of those that it consists of.
func (t *Timing) hostly(took time.Duration, edges timingEdges) {
	if t.host.Add(int64(took)); edges&noEnd == 0 {
		t.note(notedHost)
	}
}

// Duration returns how long the device took for the last operation that it was given with, whose signals have been reached. Before that,
// of an operation that has failed, and if there was none, the error is [ErrArgument]. If the operation gave no stream work, as a barrier may
// not, or if the driver did not record an event, it is [driver.ErrUnsupported].
//
// Of a host call it is how long the function took. Of a recording it is the time from the first work of a stream to the last, with the host
// calls between them; if there are only host calls, it is the sum of theirs. CUDA's and HIP's times have seven digits, and CUDA's are of half
// a microsecond. It neither blocks nor allocates.
func (t *Timing) Duration() (took time.Duration, err error) {
	if t == nil || t.dev == nil {
		return 0, errZero
	}
	if t.closed.Load() || !holdLive(&t.refs, 1) {
		return 0, fmt.Errorf("gpu: timing: %w", ErrClosed)
	}
	defer t.release()
	switch noted := t.noted.Load(); {
	case noted&notedHost != 0:
		return time.Duration(t.host.Load()), nil
	case noted&(notedBegin|notedEnd) == notedBegin|notedEnd:
		if took, err = t.ask(); err != nil {
			err = fmt.Errorf("gpu: timing: %w", err)
		}
		return took, err
	case noted == 0:
		return 0, errNotGiven
	case noted&notedFailed != 0:
		return 0, errTimedFailed
	case noted&notedNone != 0:
		return 0, errUntimed
	}
	return 0, errTimedEarly
}

func (t *Timing) ask() (took time.Duration, err error) {
	d := t.dev
	if err := d.native.Stay(); err != nil {
		return 0, err
	}
	defer d.native.Leave()
	return d.elapsed(t.before, t.behind)
}

// elapsed returns the time from one event's last record to another's.
func (d *Device) elapsed(from, to driver.Event) (time.Duration, error) {
	took, err := d.faces.timers.Elapsed(from, to)
	if err == nil || errors.Is(err, driver.ErrLost) {
		return took, err
	}
	for _, e := range []driver.Event{from, to} {
		if done, failed := d.native.Native.Query(e); !done && failed == nil {
			return 0, fmt.Errorf("the work is not done: wait for a signal of it first: %w: %w", ErrArgument, err)
		}
	}
	return 0, err
}

var (
	errNotGiven    = argument("timing", "it has been given with no operation: name it in an Order")
	errTimedEarly  = argument("timing", "the operation is not done: wait for a signal of it first")
	errTimedFailed = argument("timing", "the operation has failed: its signals say why")
	errUntimed     = fmt.Errorf("gpu: timing: the operation gave no stream work, or the driver did not record its events: %w", driver.ErrUnsupported)
)

// Close lets go of the timing, and returns nil; an operation that is under way still uses it. Closing again does nothing.
func (t *Timing) Close() error {
	if t != nil && t.dev != nil && t.closed.CompareAndSwap(false, true) {
		t.release()
	}
	return nil
}

func (t *Timing) release() {
	if t.refs.Add(-1) > 0 {
		return
	}
	d := t.dev
	d.native.Reclaim(func() {
		d.mu.Lock()
		_, ok := d.timings[t]
		delete(d.timings, t)
		d.mu.Unlock()
		if ok {
			d.native.NotTaken(t.destroy())
		}
	})
}

// destroy gives the events back. It runs on a bound thread.
func (t *Timing) destroy() error {
	return errors.Join(t.dev.native.Native.DestroyEvent(t.before), t.dev.native.Native.DestroyEvent(t.behind))
}
