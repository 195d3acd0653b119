package trace

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestWorkBetween checks that the results of workBetween are right within their margins. The times
// of the host's calls are random. The clocks differ by a random time that is at most the margin.
func TestWorkBetween(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		upTo := func(n time.Duration) time.Duration { return time.Duration(r.Int64N(int64(n) + 1)) }
		short := func() time.Duration { return upTo([]time.Duration{0, 3, 15, 60}[r.IntN(4)] * time.Microsecond) }
		var h hostTimes
		h.issued = time.Second
		arrived := h.issued + short() // when the stream received the first part of the work
		h.first = arrived + short()
		last := arrived
		// Some work has several parts. The stream received the last part when the host had given
		// all parts.
		if h.all = h.first; r.IntN(2) == 0 {
			h.all += short()
			last = h.all
		}
		recorded := h.all + short()
		h.closed = recorded + short()
		shared := r.IntN(3) == 0
		front := h.issued + short() // when the stream reached the event in front of the work
		if shared {
			front = h.issued - atOnce + short()
		}
		took := short()
		begun := max(front, arrived)
		ended := max(begun+took, last)
		took = ended - begun // longer if the last part arrived late
		behind := max(ended, recorded)
		within := upTo(20 * time.Microsecond)
		off := upTo(2*within) - within
		b := workBetween(front+off, behind+off, within, shared, h)
		tell := func(what string) {
			t.Fatalf("seed %d: %s: %+v, began %v, took %v; events %v and %v read %v later, shared %v; %+v", seed, what, b, begun, took, front, behind, off, shared, h)
		}
		if !b.ok || b.begun > b.ended || b.early < 0 {
			tell("no times")
		}
		if ended < b.ended-b.early-b.within || ended > b.ended+b.within {
			tell("the end")
		}
		if begun < b.begun-b.early-b.within || begun > b.begun+b.within {
			tell("the beginning")
		}
		if is := b.ended - b.begun; took < is-b.within || took > is+b.early+b.within {
			tell("the time between")
		}
	}
}
