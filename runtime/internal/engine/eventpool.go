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
)

// An Event is a native event on loan from its device's pool. Each submission has one at the most, to be recorded behind it or
// never, and shared by those who make a stream wait for it. A submission's record keeps it for the next one unless somebody
// else still has it then.
type Event struct {
	pool   *EventPool
	Handle driver.Event
	refs   atomic.Int32 // 1 in the pool
	next   *Event

	AskedBy int           // the mark of the device's clock by which it has been asked for its time since it was recorded, or 0, and
	Since   time.Duration // the time since that; protected by deviceTimes.askMu
}

func (e *Event) Hold() { e.refs.Add(1) }

// alone reports whether the caller, who has a reference, has the only one. Nobody else may be about to take one.
func (e *Event) alone() bool { return e.refs.Load() == 1 }

func (e *Event) Drop() {
	if e.refs.Add(-1) == 0 {
		e.refs.Store(1)
		e.pool.put(e)
	}
}

// An EventPool holds a device's events. The refiller makes more when few are left.
type EventPool struct {
	dev    *Device
	first  int           // how many there are at first
	batch  int           // how many are made at a time at the least
	timers driver.Timers // makes those that note times; nil if no times are to be noted

	mu      sync.Mutex
	free    *Event
	all     []driver.Event
	stats   objects
	growing bool // by the refiller
}

// Configure says how many events there are at first, how many are made at a time at the least, and who makes
// those that note times, or nil. It comes before begin.
func (p *EventPool) Configure(first, batch int, timers driver.Timers) {
	p.first, p.batch, p.timers = first, batch, timers
}

// mostLeft is how many events a pool that runs low has at the most. Fewer are left in a small one, of which half are in use.
const mostLeft = 512

// take takes an event, with one reference, or returns nil if there is none. If few are left more are being made from then on.
func (p *EventPool) take() *Event { return p.takeOne(false) }

// mostInUse is how many events are in use before there are none to spare.
const MostInUse = 1 << 15

// Spare is take for what can do without: the last ones are for submissions.
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

// grown notes that the refiller is done.
func (p *EventPool) grown() {
	p.mu.Lock()
	p.growing = false
	p.mu.Unlock()
}

// get takes an event, and makes one if there is none. It runs on a bound thread.
func (p *EventPool) get() (*Event, error) {
	if e := p.take(); e != nil {
		return e, nil
	}
	return p.make()
}

// await takes an event. If there is none it has one made, and waits for it.
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

// native makes a native event, one that notes times if any are to be noted and the driver makes such.
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

// grow makes events, the more the more there are: the pool soon has what a program needs at a time. It runs on a bound thread.
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

// Trim destroys the free events but for as many as are made at a time. Those that the driver does not take, since something still waits
// for them, stay. It runs on a bound thread.
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
	// Before they are destroyed: then the driver may make new ones with the same handles.
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
			err = cmp.Or(err, e2) // it is not given back again: it may have been taken all the same
		}
		e = next
	}
	return err
}

// close destroys all events, and until the context ends tries again with those of which the driver says that they are busy. It runs on
// the device's thread. Other devices may keep some that their work has waited for, and
// do nothing with them any more.
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

func (p *EventPool) statistics() objects {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}
