package gpu

import (
	"context"
	"errors"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu/internal/wake"
	"github.com/puregpu/puregpu/runtime/gpu/internal/work"
)

// Memory may be unused and yet not free: the work that used it is done but not retired, or the reclaimer has still to free it. An allocation
// that fails for lack of memory retires such work, waits for the reclaimer, and tries once more.

// collectWithin is how long an allocation waits for memory to be freed that is not used any more. A driver may take its time for that: until
// all work of the device is done, which may be waiting for the caller.
const collectWithin = time.Second

// collecting runs a function that allocates, and where that finds no memory once more when what is not used any more has come back. The
// caller is not the device's thread, nor has it locked a timeline.
func (d *Device) collecting(allocate func() error) error {
	err := allocate()
	if errors.Is(err, driver.ErrOutOfMemory) {
		d.collect(false)
		err = allocate()
	}
	return err
}

// collect retires what is done, and unless the caller is the device's thread waits until what is not used any more has been freed.
func (d *Device) collect(onThread bool) {
	if d.stay() != nil {
		return
	}
	defer d.leave()
	for _, q := range d.all() {
		q.tl.collect(onThread)
	}
	var others []*timeline
	d.lent.any(func(m mark) bool {
		others = append(others, m.tl)
		return false
	})
	for _, tl := range others {
		tl.collect(onThread && tl.dev == d)
	}
	if onThread || d.awaitsOthers() {
		return
	}
	freed := make(chan struct{})
	if !d.reclaim(func() { close(freed) }) {
		return
	}
	timer := time.NewTimer(collectWithin)
	defer timer.Stop()
	select {
	case <-freed:
	case <-timer.C:
	}
}

// collect retires what is done, and waits for who is retiring. Without Caps.SubmitAnywhere only a thread may ask to which the device is bound.
func (tl *timeline) collect(isBound bool) {
	if !isBound && !tl.dev.caps.SubmitAnywhere {
		tl.dev.onBound(func() error {
			tl.collect(true)
			return nil
		})
		return
	}
	// In steps, if the last is not done. Others may be asking, whose answers may be older.
	seq := tl.issued.Load()
	for again := true; again && !(mark{tl, seq}).decided(); {
		wake.Lock(context.Background(), &tl.askMu)
		again = tl.pollInTurn(seq, 1)
	}
	tl.ring.mu.Lock()
	taken := tl.ring.head - 1 // somebody may be completing what he has taken
	tl.ring.mu.Unlock()
	mark{tl, taken}.await(context.Background())
}

// submitCollected is submit for an alloca that has found no memory, as err says. The caller holds mu, which it gives up meanwhile.
func (tl *timeline) submitCollected(s *submission, onThread bool, err error) (outcome, error) {
	tl.mu.Unlock()
	s.letGoAll()
	tl.dev.collect(onThread)
	supplied := s.supply()
	tl.mu.Lock()
	if !supplied {
		return refused, err
	}
	how, again := tl.submit(s)
	for how == unmarked {
		how, again = tl.submitMarked(s)
	}
	return how, again
}

// collects reports whether an allocation that failed, as err says, is to be tried again when memory has come back that is not used any more.
// One that may wait for memory is told when some has.
func (p *Pool) collects(size uint64, err error) bool {
	return errors.Is(err, driver.ErrOutOfMemory) && !p.opt.Wait && !p.tooLarge(size)
}

// collects reports whether a submission that was refused, as err says, is such an alloca, of a native pool: that of a portable one has its
// memory before it is submitted.
func (s *submission) collects(err error) bool {
	if s.op.Kind != work.Alloca {
		return false
	}
	b := s.keep[0]
	return b.pool.blocks == nil && b.state.Load() != isLive && b.pool.collects(b.mem.Size, err)
}
