package gpu

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu/internal/wake"
)

// gone says that the work from one number up to another was given up, and why.
type gone struct {
	from, to uint64 // without from
	err      error
	ends     bool // the stream goes on all the same: what comes after the work will be done, and only then fails
}

// losses counts how often work was given up anywhere. While it is 0 nobody need look for that.
var losses atomic.Int64

// mishaps counts that as well, how often a driver has refused a part of something, and how often a semaphore has failed that work in
// flight was to signal. All of that may leave something in a stream that seems to have failed, or comes after what has.
var mishaps atomic.Int64

// gone returns why the work at a mark was given up, if it was.
func (m mark) gone() error { return m.given(false) }

// given is gone, but without what ends all the same if that is not to be told.
func (m mark) given(forEver bool) error {
	if losses.Load() == 0 {
		return nil
	}
	m.tl.goneMu.Lock()
	defer m.tl.goneMu.Unlock()
	for _, g := range m.tl.gone {
		if m.seq > g.from && m.seq <= g.to && !(forEver && g.ends) {
			return g.err
		}
	}
	return nil
}

// giveUp notes that work is given up.
func (tl *timeline) giveUp(from, to uint64, err error) {
	tl.goneMu.Lock()
	tl.gone = append(tl.gone, gone{from, to, err, tl.ch != nil})
	tl.goneMu.Unlock()
	mishaps.Add(1)
	losses.Add(1)
}

// neverEnds says that the stream does not go on, against expectation.
func (tl *timeline) neverEnds() {
	tl.goneMu.Lock()
	defer tl.goneMu.Unlock()
	for i := range tl.gone {
		tl.gone[i].ends = false
	}
}

// askLate is how often in vain somebody asks about work before those are asked, too, whom it comes after: one of them may be lost,
// and nobody else may be asking it.
const askLate = 16

// stuck returns why the oldest work will never be done: it comes after something that was given up. Where it comes after
// something that is only late, those who can tell are asked.
func (tl *timeline) stuck() (err error) {
	if losses.Load() == 0 && tl.vain.Add(1)%askLate != 0 {
		return nil
	}
	var late []mark
	tl.ring.mu.Lock()
	if tl.ring.head <= tl.issued.Load() {
		s := tl.ring.at(tl.ring.head)
		for _, m := range s.follows {
			if err = m.given(true); err != nil {
				break
			}
			if m.tl.done.Load() < m.seq {
				late = append(late, m)
			}
		}
		if err == nil && len(late) == 0 && s.op == opAlloca {
			err = tl.stuckInPool(s)
		}
	}
	tl.ring.mu.Unlock()
	for _, m := range late {
		m.tl.urge(m.seq)
	}
	return err
}

// poolPatience is how long memory that is allocated may take to come from a pool part of which a loss holds up: the driver may have it
// wait for that part, and does not say so.
const poolPatience = time.Second

// stuckInPool is stuck for an alloca that comes after nothing. The caller holds the ring's mu.
func (tl *timeline) stuckInPool(s *submission) error {
	f := s.keep[0].pool.spoilt.Load()
	switch {
	case f == nil:
	case tl.slow != s.seq:
		tl.slow, tl.since = s.seq, time.Now()
	case time.Since(tl.since) > poolPatience:
		return f.err
	}
	return nil
}

// spoil notes that native pools may have memory whose deallocation was given up, and has them give out no memory any more that
// others are still to let go of. It runs on the device's thread.
func (d *Device) spoil(tl *timeline, err error) {
	d.pools.mu.Lock()
	defer d.pools.mu.Unlock()
	for _, p := range d.pools.all {
		if freed := p.freed.Load(); p.native != 0 && (freed == tl || freed == &several) && p.spoilt.CompareAndSwap(nil, &failure{err}) {
			d.pooling.SetPoolAttr(p.native, driver.PoolReuseInternal, 0) // where that fails allocas are given up one by one
		}
	}
}

// replace gives up a stream that is stuck, with what is in it, and takes another. It runs on the device's thread. What the
// work holds stays until the device is closed, for nobody knows what becomes of the stream.
func (tl *timeline) replace() {
	if tl.dev.lost.Load() != nil {
		tl.replacing.Store(false)
		return
	}
	h, err := tl.dev.drv.NewStream()
	if err != nil {
		tl.dev.lose(err)
		tl.replacing.Store(false)
		return
	}
	tl.mu.Lock()
	if err = tl.stuck(); err == nil {
		tl.replacing.Store(false)
		tl.mu.Unlock()
		tl.old = append(tl.old, h)
		return
	}
	tl.old = append(tl.old, tl.h)
	tl.h = h
	tl.coverMu.Lock()
	tl.cover = nil
	tl.coverMu.Unlock()
	tl.dev.spoil(tl, err)
	list, released := tl.drain(err)
	tl.lives.Add(1) // only now: who finds it finds what was given up, too
	tl.base = tl.issued.Load()
	tl.noteMark(tl.base) // nothing is left that an event could be put behind
	tl.replacing.Store(false)
	tl.mu.Unlock()
	for s := list; s != nil; {
		next := s.next
		s.next = nil
		s.leaveTurn()
		tl.limbo = append(tl.limbo, s)
		s = next
	}
	release(released)
}

// dropOld destroys the streams of the device that were given up. One may still be at what it had begun before it could have got
// stuck, if it ever does; the driver may refuse to destroy it then, and the error is [driver.ErrBusy]. Other errors are for Close. It
// runs on the device's thread.
func (d *Device) dropOld() (busy error) {
	for _, q := range d.all() {
		q.tl.old = slices.DeleteFunc(q.tl.old, func(h driver.Stream) bool {
			err := d.drv.DestroyStream(h)
			if errors.Is(err, driver.ErrBusy) {
				busy = err
				return false
			}
			d.notTaken(err)
			return true
		})
	}
	return busy
}

// clearOff has a device drop the streams that were given up, until the context ends. It may be called from any thread.
func (d *Device) clearOff(ctx context.Context) {
	done := make(chan error, 1)
	wake.Until(ctx, func() bool {
		if !d.post(func() { done <- d.dropOld() }) {
			return true
		}
		select {
		case busy := <-done:
			return busy == nil
		case <-ctx.Done():
			return true
		}
	})
}

// giveBackTime is how long a device that is closed waits for what is still in use by work that was given up.
const giveBackTime = 500 * time.Millisecond

// insist calls a function until its error is no driver.ErrBusy, or it has taken too long. It does so only where work was given up, or the
// device counts as lost, and which may go on all the same. It runs on the device's thread, in the end.
func (d *Device) insist(f func() error) error {
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		err := f()
		if !errors.Is(err, driver.ErrBusy) || losses.Load() == 0 && d.lost.Load() == nil || time.Now().After(d.giveBackBy) {
			return err
		}
		time.Sleep(pause)
	}
}
