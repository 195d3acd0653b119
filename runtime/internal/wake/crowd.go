package wake

import "sync/atomic"

// A Crowd is those who ask a stream how far it is while others give it work. Drivers let one call in at a time, and to ask takes as
// long as to issue, so those who ask again and again leave the driver to the others for some rounds.
type Crowd struct {
	seen  atomic.Uint64 // of what was issued, by those who ask again
	rests atomic.Int32  // for so many rounds they do not
}

// For how many rounds a waiter does not ask, and for how many who asks for longer.
const (
	WaiterRests = 16
	PollerRests = 4 * WaiterRests
)

// Rests reports whether whoever asks again, without a pause, is not to ask in this round: something was issued since the last, or is being
// issued. It does not report that for more than so many rounds in a row.
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
