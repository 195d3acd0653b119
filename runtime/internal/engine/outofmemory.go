package engine

import (
	"context"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// Memory that no work uses any more may not be free yet: the work that used it is done but not
// retired, or the layers above have not freed it. So if an allocation finds no memory, the engine
// retires finished work, asks the Owner to free unused memory, and issues the allocation once more.

// collectWithin is the longest time that an allocation waits for unused memory to be freed. The
// time is limited because a driver may wait for all work of the device before it frees memory. That
// work may depend on something that the caller does only after the allocation.
const collectWithin = time.Second

// Collect retires all finished work that may use memory of this device. If mayBlock is set, Collect
// then calls Owner.FreeUnused, which may take up to collectWithin.
func (d *Device) Collect(mayBlock bool) {
	if d.Stay() != nil {
		return
	}
	defer d.Leave()
	for _, tl := range d.All() {
		tl.collect()
	}
	for _, tl := range d.lent.timelines() {
		tl.collect()
	}
	if !mayBlock {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()
	d.Owner.FreeUnused(ctx)
}

// collect retires the finished work of the timeline. If other goroutines are retiring some of this
// work, collect waits for the goroutines.
func (tl *Timeline) collect() {
	// One round may find only the oldest event complete. So go on until the last submission is
	// done, or pollInTurn returns false. If another goroutine is polling, wait for it and then
	// query again, because that goroutine may have queried before the latest work ended.
	seq := tl.issued.Load()
	for again := true; again && !(Mark{tl, seq}).decided(); {
		unmarked := tl.tryMark(seq)
		wake.Lock(context.Background(), &tl.queryMu)
		again = tl.pollInTurn(seq, 1, unmarked)
	}
	tl.ring.mu.Lock()
	// Wait for work that another goroutine has taken out of the ring and is still retiring.
	taken := tl.ring.head - 1
	tl.ring.mu.Unlock()
	Mark{tl, taken}.Await(context.Background())
}

// giveCollected issues an allocation for the second time. The first attempt failed with err,
// because there was no memory. The caller holds tl.mu. giveCollected unlocks mu, calls Collect, and
// locks mu again.
func (tl *Timeline) giveCollected(s *Submission, err error) (Outcome, error) {
	last := tl.issued.Load()
	tl.mu.Unlock()
	// The submission's waits may be in the stream, with a number of their own (see putBarrier).
	tl.loseBehind(last, last)
	s.Deps.Drop()
	tl.Device.Collect(s.MayBlock())
	if s.event == nil { // putBarrier has taken the event
		if s.event = tl.Device.Events.take(); s.event == nil {
			tl.mu.Lock()
			return Refused, err
		}
	}
	how, again := tl.lockFor(s)
	if again != nil {
		tl.mu.Lock()
		return how, again
	}
	how, again = tl.give(s)
	if how == Refused {
		again = s.Action.Explain(s, again)
	}
	return how, again
}
