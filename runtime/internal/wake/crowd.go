package wake

import "sync/atomic"

// A PollThrottle protects goroutines that issue work on a stream from goroutines that poll it
// without a pause. Drivers execute one call at a time, and a query takes as long as issuing work.
// So while work is being issued, polling goroutines skip most of their polls.
type PollThrottle struct {
	seen  atomic.Uint64 // the stream's issued number at the last poll
	skips atomic.Int32  // number of polls still to skip
}

// Arguments for the parameter rounds of Skips: one for a Waiter, and one for the Poller or a Waiter
// that stands in for the Poller.
const (
	WaiterSkips = 16
	PollerSkips = 4 * WaiterSkips
)

// Skips reports whether the caller must skip this poll. again says that the caller polls again
// without a pause; other polls are never skipped. issued is the number of the last work issued, and
// issuing says that work is being issued now. Skipping begins when work has been issued since the
// last poll or is being issued. At most rounds-1 polls in a row are skipped.
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
