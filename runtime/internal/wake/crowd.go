package wake

import "sync/atomic"

// A Crowd makes goroutines that ask a stream again and again leave the driver to others that give
// the stream work. Drivers let one call in at a time, and asking takes as long as issuing. So
// goroutines that ask again skip some rounds.
type Crowd struct {
	seen  atomic.Uint64 // how much was issued when somebody last asked again
	rests atomic.Int32  // rounds still to skip
}

// How many rounds a waiter skips, and how many the poller or a waiter that stands for it.
const (
	WaiterRests = 16
	PollerRests = 4 * WaiterRests
)

// Rests reports whether a caller that asks again, without a pause, must skip this round: something
// was issued since the last round, or is being issued. It returns true at most rounds times in a
// row.
func (c *Crowd) Rests(again bool, issued uint64, issuing bool, rounds int32) bool {
	if !again {
		c.seen.Store(issued)
		return false
	}
	if issued != c.seen.Load() || issuing {
		c.seen.Store(issued)
		if c.rests.Load() <= 0 {
			c.rests.Store(rounds)
		}
	}
	return c.rests.Load() > 0 && c.rests.Add(-1) > 0
}
