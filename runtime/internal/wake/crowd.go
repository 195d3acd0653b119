package wake

import "sync/atomic"

// A PollThrottle keeps goroutines that poll a stream without a pause from slowing down goroutines
// that issue work on it. Drivers run one call at a time, and a query takes as long as issuing work.
// So while work is being issued, a polling goroutine skips most of its polls.
type PollThrottle struct {
	seen  atomic.Uint64 // how much had been issued at the last poll
	skips atomic.Int32  // polls still to skip
}

// How many polls a Waiter skips, and how many the Poller or a Waiter that stands in for it.
const (
	WaiterSkips = 16
	PollerSkips = 4 * WaiterSkips
)

// Rests reports whether the caller must skip this poll. again says that the caller polls again
// without a pause; other polls are never skipped. Skipping begins when work has been issued since
// the last poll or is being issued. It lasts for at most rounds polls.
func (c *PollThrottle) Skips(again bool, issued uint64, issuing bool, rounds int32) bool {
	if !again {
		c.seen.Store(issued)
		return false
	}
	if issued != c.seen.Load() || issuing {
		c.seen.Store(issued)
		if c.skips.Load() <= 0 {
			c.skips.Store(rounds)
		}
	}
	return c.skips.Load() > 0 && c.skips.Add(-1) > 0
}
