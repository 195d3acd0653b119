package gpu

import (
	"context"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// Memory may be unused and yet not free: the work that used it is done but not retired, or the layers above
// have still to free it. An operation that finds no memory retires what is done, has its device's owner
// free what is unused, and is issued once more.

// collectWithin is how long an allocation waits for memory to be freed that is not used any more. A driver may take its time for that: until
// all work of the device is done, which may be waiting for the caller.
const collectWithin = time.Second

// collect retires what is done. If the caller may block, it then has the owner free what is unused.
func (d *nativeDevice) collect(mayBlock bool) {
	if d.stay() != nil {
		return
	}
	defer d.leave()
	for _, tl := range d.all() {
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
	d.owner.freeUnused(ctx)
}

// collect retires what is done, and waits for who is retiring.
func (tl *timeline) collect() {
	// In steps, if the last is not done. Others may be asking, whose answers may be older.
	seq := tl.issued.Load()
	for again := true; again && !(mark{tl, seq}).decided(); {
		unmarked := tl.tryMark(seq)
		wake.Lock(context.Background(), &tl.askMu)
		again = tl.pollInTurn(seq, 1, unmarked)
	}
	tl.ring.mu.Lock()
	taken := tl.ring.head - 1 // somebody may be completing what he has taken
	tl.ring.mu.Unlock()
	mark{tl, taken}.await(context.Background())
}

// giveCollected is give for an alloca that has found no memory, as err says. The caller holds mu, which it gives up meanwhile.
func (tl *timeline) giveCollected(s *submission, err error) (outcome, error) {
	last := tl.issued.Load()
	tl.mu.Unlock()
	tl.loseBehind(last, last) // a barrier may hold the submission's waits
	s.letGoAll()
	tl.dev.collect(s.mayBlock())
	if s.event == nil { // the stream has it
		if s.event = tl.dev.events.take(); s.event == nil {
			tl.mu.Lock()
			return refused, err
		}
	}
	how, again := tl.lockFor(s)
	if again != nil {
		tl.mu.Lock()
		return how, again
	}
	how, again = tl.give(s)
	if how == refused {
		again = s.act.explain(s, again)
	}
	return how, again
}
