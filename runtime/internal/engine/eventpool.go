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

// An Event is a native event on loan from its device's pool, with a reference count. A submission
// has at most one. The event is recorded behind that submission or never, and all streams that wait
// for the submission wait for this event. When the submission's record is recycled, it keeps the event
// for its next use, unless somebody else still holds a reference.
type Event struct {
	pool   *EventPool
	Handle driver.Event
	refs   atomic.Int32 // 1 in the pool
	next   *Event

	// Since is a cached result: the time from a reference point of the device's clock to this
	// event. AskedBy is the number of that reference point, or 0 if the driver has not been queried
	// since the event was recorded. Both belong to the tracer.
	AskedBy int
	Since   time.Duration
}

func (e *Event) Hold() { e.refs.Add(1) }

// alone reports whether the caller holds the only reference. The caller must know that no other
// goroutine is about to take one.
func (e *Event) alone() bool { return e.refs.Load() == 1 }

func (e *Event) Drop() {
	if e.refs.Add(-1) == 0 {
		e.refs.Store(1)
		e.pool.put(e)
	}
}

// An EventPool holds a device's events. The refiller makes more before the pool is empty.
type EventPool struct {
	dev    *Device
	first  int           // how many events begin makes
	batch  int           // the least number of events made at a time
	timers driver.Timers // makes events that record times; nil if no times are wanted

	// mu protects the following fields, and next of free events. It is a leaf.
	mu      sync.Mutex
	free    *Event
	all     []driver.Event
	stats   sema.PoolStats
	growing bool // the refiller is making more
}

// Configure sets how many events begin makes. It is also the least number made at a time. It must
// be called before begin.
func (p *EventPool) Configure(first int) { p.first, p.batch = first, first }

// RecordTimes makes all events record times, and has begin make times as many as Configure said,
// but at most most. It must be called before begin.
func (p *EventPool) RecordTimes(timers driver.Timers, times, most int) {
	p.timers, p.first = timers, max(p.first, min(times*p.first, most))
}

// mostLeft is when a pool is refilled: at mostLeft free events in a large pool, and at half of all
// events in a small one.
const mostLeft = 512

// take takes an event, with one reference, or returns nil if none is free. If few are left, the
// refiller makes more.
func (p *EventPool) take() *Event { return p.takeOne(false) }

// MostInUse is the number of events in use at which Spare stops giving out events.
const MostInUse = 1 << 15

// Spare is take for optional uses. It leaves the last events to submissions.
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

// grown notes that the refiller has ended.
func (p *EventPool) grown() {
	p.mu.Lock()
	p.growing = false
	p.mu.Unlock()
}

// get takes an event, and makes one if none is free. It runs on a bound thread.
func (p *EventPool) get() (*Event, error) {
	if e := p.take(); e != nil {
		return e, nil
	}
	return p.make()
}

// await takes an event. If none is free, it waits until one has been made.
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

// make makes an event, with one reference. It runs on a bound thread.
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

// native makes a native event. The event records times if these are wanted and the driver can.
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

// begin makes the first events. It runs on a bound thread.
func (p *EventPool) begin() error {
	for p.statistics().Held < p.first {
		if err := p.grow(); err != nil {
			return err
		}
	}
	return nil
}

// grow makes as many events as the pool holds, but at least batch and at most 1024. So the pool
// soon has as many as the program needs at a time. It runs on a bound thread.
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

// Trim destroys all free events except batch of them. Events that the driver calls busy, because
// something still waits for them, stay in the pool. It runs on a bound thread.
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
	// Remove the handles from all before destroying the events: afterwards the driver may make new
	// events with the same handles.
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
			err = cmp.Or(err, e2) // no second try: the driver may have destroyed it all the same
		}
		e = next
	}
	return err
}

// close destroys all events. While the driver calls an event busy, close tries again, until the
// context ends. It runs on the device's thread. Other devices may still refer to events that their
// work has waited for, but they do not use these events any more.
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
