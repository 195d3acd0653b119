package engine

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

// Collect retires what is done. If the caller may block, it then has the owner free what is unused.
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

// collect retires what is done, and waits for who is retiring.
func (tl *Timeline) collect() {
	// In steps, if the last is not done. Others may be asking, whose answers may be older.
	seq := tl.issued.Load()
	for again := true; again && !(Mark{tl, seq}).decided(); {
		unmarked := tl.tryMark(seq)
		wake.Lock(context.Background(), &tl.askMu)
		again = tl.pollInTurn(seq, 1, unmarked)
	}
	tl.ring.mu.Lock()
	taken := tl.ring.head - 1 // somebody may be completing what he has taken
	tl.ring.mu.Unlock()
	Mark{tl, taken}.Await(context.Background())
}

// giveCollected is give for an alloca that has found no memory, as err says. The caller holds mu, which it gives up meanwhile.
func (tl *Timeline) giveCollected(s *Submission, err error) (Outcome, error) {
	last := tl.issued.Load()
	tl.mu.Unlock()
	tl.loseBehind(last, last) // a barrier may hold the submission's waits
	s.LetGoAll()
	tl.Device.Collect(s.MayBlock())
	if s.event == nil { // the stream has it
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
