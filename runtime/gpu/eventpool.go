package gpu

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

// An event is a native event on loan from its device's pool. Each submission has one at the most, to be recorded behind it or
// never, and shared by those who make a stream wait for it. A submission's record keeps it for the next one unless somebody
// else still has it then.
type event struct {
	pool *eventPool
	h    driver.Event
	refs atomic.Int32 // 1 in the pool
	next *event
}

func (e *event) hold() { e.refs.Add(1) }

// alone reports whether the caller, who has a reference, has the only one. Nobody else may be about to take one.
func (e *event) alone() bool { return e.refs.Load() == 1 }

func (e *event) drop() {
	if e.refs.Add(-1) == 0 {
		e.refs.Store(1)
		e.pool.put(e)
	}
}

// An eventPool holds a device's events. It grows on the device's thread, where making an event is legal, before it runs
// dry: a submission that still finds it empty waits for that.
type eventPool struct {
	dev   *Device
	batch int

	mu      sync.Mutex
	free    *event
	all     []driver.Event
	stats   PoolStats
	growing bool
}

// get takes an event, with one reference.
func (p *eventPool) get(onThread bool) (*event, error) {
	p.mu.Lock()
	if p.free == nil {
		p.mu.Unlock()
		grow := p.growEmpty
		if !onThread {
			grow = func() error { return p.dev.do(p.growEmpty) }
		}
		if err := grow(); err != nil {
			return nil, err
		}
		p.mu.Lock()
	}
	e := p.free
	if e == nil { // others were faster
		p.mu.Unlock()
		return p.get(onThread)
	}
	p.free = e.next
	p.stats.Free--
	low := p.stats.Free < p.stats.Made/8 && !p.growing
	if low {
		p.growing = true
	}
	p.mu.Unlock()
	if low {
		p.dev.post(func() {
			p.grow() // a failure shows when the pool is empty
			p.mu.Lock()
			p.growing = false
			p.mu.Unlock()
		})
	}
	e.next = nil
	return e, nil
}

func (p *eventPool) put(e *event) {
	p.mu.Lock()
	e.next, p.free = p.free, e
	p.stats.Free++
	p.mu.Unlock()
}

// growEmpty makes events if there are none: of many submissions that found none, the first to get to the thread makes some for all.
func (p *eventPool) growEmpty() error {
	if p.statistics().Free > 0 {
		return nil
	}
	return p.grow()
}

// grow makes events, the more the more there are: the pool soon has what a program needs at a time. It runs on the
// device's thread.
func (p *eventPool) grow() error {
	for range min(max(p.batch, p.statistics().Made), 1024) {
		h, err := p.dev.drv.NewEvent()
		if err != nil {
			return err
		}
		e := &event{pool: p, h: h}
		e.refs.Store(1)
		p.mu.Lock()
		e.next, p.free = p.free, e
		p.all = append(p.all, h)
		p.stats.Made++
		p.stats.Free++
		p.mu.Unlock()
	}
	return nil
}

// close destroys all events. It runs on the device's thread. Other devices may keep some that their work has waited for, and
// do nothing with them any more.
func (p *eventPool) close() error {
	p.mu.Lock()
	all := p.all
	p.all, p.free = nil, nil
	p.stats.Free = 0
	p.mu.Unlock()
	var errs []error
	for _, h := range all {
		errs = append(errs, p.dev.insist(func() error { return p.dev.drv.DestroyEvent(h) }))
	}
	return errors.Join(errs...)
}

func (p *eventPool) statistics() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}
