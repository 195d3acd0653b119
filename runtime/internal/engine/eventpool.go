package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// An Event is a native event of its device's pool, with a reference count. A submission has at most
// one event of its own, which is recorded right behind that submission or not at all. A stream that
// waits for a submission waits for the first event recorded behind that submission: the
// submission's own event, or the event of a later submission. A recycled Submission keeps its event
// and uses it again, unless somebody else still has a reference to the event.
type Event struct {
	pool   *EventPool
	Handle driver.Event
	refs   atomic.Int32 // 1 while the event is free
	next   *Event       // the next free event

	// Since caches a result of the driver for the tracer: the time from a reference point of the
	// device's clock to this event. SinceRef is the number of that reference point. SinceRef is 0
	// if the driver has not been queried since the event was recorded.
	SinceRef int
	Since    time.Duration
}

// Hold adds a reference.
func (e *Event) Hold() { e.refs.Add(1) }

// alone reports whether the caller has the only reference. The caller must make sure that no other
// goroutine takes a reference meanwhile.
func (e *Event) alone() bool { return e.refs.Load() == 1 }

// Drop releases a reference. After the last reference the event goes back to the pool.
func (e *Event) Drop() {
	if e.refs.Add(-1) == 0 {
		e.refs.Store(1)
		e.pool.put(e)
	}
}

// An EventPool holds the events of a device. When few are free, a refiller goroutine makes more in
// advance (see Device.Refill).
type EventPool struct {
	dev    *Device
	first  int           // the method begin makes at least this many events
	batch  int           // the method grow makes min(batch, 1024) events or more
	timers driver.Timers // makes events that record times; nil if the device needs none

	// mu protects the following fields, and Event.next of free events. No other lock is taken while
	// it is held.
	mu      sync.Mutex
	free    *Event
	all     []driver.Event
	stats   sema.PoolStats
	growing bool // a refiller goroutine is making events
}

// Configure sets the fields first and batch. It must be called before the method begin.
func (p *EventPool) Configure(first int) { p.first, p.batch = first, first }

// RecordTimes makes the events of the pool record times, as far as the driver can make such events.
// RecordTimes also raises EventPool.first, the number of events that the method begin makes, to
// times*first, or to most if that is less. RecordTimes must be called before the method begin.
func (p *EventPool) RecordTimes(timers driver.Timers, times, most int) {
	p.timers, p.first = timers, max(p.first, min(times*p.first, most))
}

// mostLeft limits when a pool is refilled. A pool is refilled when at most half of its events are
// free, and a large pool only when at most mostLeft are free.
const mostLeft = 512

// take returns a free event, with one reference, or nil if none is free. If few are left, it starts
// a refiller.
func (p *EventPool) take() *Event { return p.takeOne(false) }

// MostInUse is the number of events in use at which Spare begins to return nil.
const MostInUse = 1 << 15

// Spare is like take, for callers that can do without an event. If few events are free, or
// MostInUse or more are in use, Spare returns nil and leaves the free events for submissions.
func (p *EventPool) Spare() *Event { return p.takeOne(true) }

func (p *EventPool) takeOne(spare bool) *Event {
	p.mu.Lock()
	e := p.free
	if n := &p.stats; spare && (n.Free <= min(n.Held/4, mostLeft/2) || n.Held-n.Free >= MostInUse) {
		e = nil
	}
	if e != nil {
		p.free = e.next
		p.stats.Free--
	}
	low := !p.growing && p.stats.Free <= min(p.stats.Held/2, mostLeft)
	if low {
		p.growing = true
	}
	p.mu.Unlock()
	if low {
		p.dev.Refill(p.grow, p.grown)
	}
	if e != nil {
		e.next = nil
	}
	return e
}

// grown notes that no refiller is making events any more. A call of Refill that cannot start a
// refiller calls grown too.
func (p *EventPool) grown() {
	p.mu.Lock()
	p.growing = false
	p.mu.Unlock()
}

// get returns a free event, or makes one if none is free. It runs on a thread bound to the device.
func (p *EventPool) get() (*Event, error) {
	if e := p.take(); e != nil {
		return e, nil
	}
	return p.make()
}

// await returns a free event. If none is free, it blocks until a thread bound to the device has
// made one.
func (p *EventPool) await() (*Event, error) {
	if e := p.take(); e != nil {
		return e, nil
	}
	var made *Event
	err := p.dev.Do(func() (err error) {
		made, err = p.get()
		return err
	})
	return made, err
}

// make creates an event and returns it with one reference. It runs on a thread bound to the device.
func (p *EventPool) make() (*Event, error) {
	h, err := p.native()
	if err != nil {
		return nil, err
	}
	e := &Event{pool: p, Handle: h}
	e.refs.Store(1)
	p.mu.Lock()
	p.all = append(p.all, h)
	p.stats.Made++
	p.stats.Held++
	p.mu.Unlock()
	return e, nil
}

// native creates a native event. The event records times if EventPool.timers is set and can make an
// event that records times.
func (p *EventPool) native() (driver.Event, error) {
	if p.timers != nil {
		if h, err := p.timers.NewTimer(); err == nil {
			return h, nil
		}
	}
	return p.dev.Native.NewEvent()
}

func (p *EventPool) put(e *Event) {
	p.mu.Lock()
	e.next, p.free = p.free, e
	p.stats.Free++
	p.mu.Unlock()
}

// begin makes the first events. It runs on a thread bound to the device.
func (p *EventPool) begin() error {
	for p.statistics().Held < p.first {
		if err := p.grow(); err != nil {
			return err
		}
	}
	return nil
}

// grow makes as many new events as the pool has, or batch events if that is more. grow never makes
// more than 1024. It runs on a thread bound to the device.
func (p *EventPool) grow() error {
	for range min(max(p.batch, p.statistics().Held), 1024) {
		e, err := p.make()
		if err != nil {
			return err
		}
		p.put(e)
	}
	return nil
}

// Trim destroys free events until only batch of them are left. If the driver returns ErrBusy for an
// event, because something still waits for it, the event stays in the pool. Trim runs on a thread
// bound to the device.
func (p *EventPool) Trim() (err error) {
	p.mu.Lock()
	first, gone := p.free, make(map[driver.Event]struct{})
	end := &first
	for p.stats.Free > p.batch {
		e := p.free
		p.free, *end, end = e.next, e, &e.next
		p.stats.Free--
		gone[e.Handle] = struct{}{}
	}
	*end = nil
	// Remove the handles from p.all before destroying the events: as soon as an event is destroyed,
	// the driver may use its handle for a new one.
	p.all = slices.DeleteFunc(p.all, func(h driver.Event) bool { _, ok := gone[h]; return ok })
	p.stats.Held -= len(gone)
	p.mu.Unlock()
	for e := first; e != nil; {
		next := e.next
		switch e2 := p.dev.Native.DestroyEvent(e.Handle); {
		case errors.Is(e2, driver.ErrBusy):
			p.mu.Lock()
			p.all = append(p.all, e.Handle)
			p.stats.Held++
			p.mu.Unlock()
			p.put(e)
		default:
			err = cmp.Or(err, e2) // no second try: perhaps the event is destroyed
		}
		e = next
	}
	return err
}

// close destroys all events. If the driver returns ErrBusy, close tries again until the context
// ends. The method close runs on the pending-queue thread. Submissions of other devices may still
// have references to some of the events, but those devices' streams do not use the events any more.
func (p *EventPool) close(ctx context.Context) error {
	p.mu.Lock()
	all := p.all
	p.all, p.free = nil, nil
	p.stats.Held, p.stats.Free = 0, 0
	p.mu.Unlock()
	var errs []error
	for _, h := range all {
		errs = append(errs, p.dev.Insist(ctx, func() error { return p.dev.Native.DestroyEvent(h) }))
	}
	return errors.Join(errs...)
}

func (p *EventPool) statistics() sema.PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}
