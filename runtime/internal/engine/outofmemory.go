package engine

import (
	"context"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// Unused memory may not be free yet: the work that used it is done but not retired, or the layers
// above have not freed it. If an allocation finds no memory, the engine retires finished work, has
// the Owner free unused memory, and issues the allocation once more.

// collectWithin is how long an allocation waits at most until unused memory has been freed. The
// limit is there because a driver may wait for all work of the device before it frees memory, and
// that work may be waiting for the caller.
const collectWithin = time.Second

// Collect retires the work that is done. If the caller may block, Collect then has the owner free
// unused memory, and waits for that for up to collectWithin.
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

// collect retires the timeline's finished work, and waits for other goroutines that are retiring
// it.
func (tl *Timeline) collect() {
	// If the last work is not done, each round retires a part. Another goroutine may be polling
	// too. Wait for it and query again, because its result may be older.
	seq := tl.issued.Load()
	for again := true; again && !(Mark{tl, seq}).decided(); {
		unmarked := tl.tryMark(seq)
		wake.Lock(context.Background(), &tl.queryMu)
		again = tl.pollInTurn(seq, 1, unmarked)
	}
	tl.ring.mu.Lock()
	// Another goroutine may have taken work from the ring and not completed it yet.
	taken := tl.ring.head - 1
	tl.ring.mu.Unlock()
	Mark{tl, taken}.Await(context.Background())
}

// giveCollected issues an allocation once more after it has failed with err because there was no
// memory. The caller holds mu. giveCollected unlocks mu, calls Collect, and locks mu again.
func (tl *Timeline) giveCollected(s *Submission, err error) (Outcome, error) {
	last := tl.issued.Load()
	tl.mu.Unlock()
	// A barrier may have taken over the submission's waits.
	tl.loseBehind(last, last)
	s.DropDeps()
	tl.Device.Collect(s.MayBlock())
	if s.event == nil { // a barrier has taken over the event
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
