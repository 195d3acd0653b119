// Package wake implements waiting for devices, which do not notify the host, and waiting for other
// goroutines. It does not depend on any device or driver: callers pass functions that poll.
//
// Somebody must poll a device. A goroutine that polls without a pause sees the end of work at once,
// but keeps a processor busy. A parked goroutine must be woken, which takes many times as long as a
// short kernel runs. So a wait for a device goes through these steps:
//
//  1. The waiting goroutine polls the device itself, for [Policy.Spin]. A [Waiter] measures that
//     time.
//  2. Then the goroutine parks, and the device's [Poller] polls on behalf of all parked goroutines.
//     It polls without a pause until it has found nothing done for [Policy.Poll]. Then it polls
//     with [Pauses], which grow from some microseconds to a millisecond.
//  3. While no goroutine has parked, one Waiter at a time may stand in for the Poller instead of
//     parking: it goes on polling for as long as the Poller would poll without a pause.
//  4. A [Thread] that issues the work, such as a communicator's thread, also polls. The Thread
//     polls in place of the Waiters, while it has nothing else to do.
//
// A polling goroutine yields between polls. A yield is cheap, except on a goroutine that is locked
// to its thread. On such a goroutine a [Waiter] may yield only once in a [Slice], and so keep its
// processor. If yields let work proceed, as on devices that goroutines simulate, a Waiter yields
// after each poll. [Processors] counts the processors that are kept. It limits the kept processors
// to half of all for a moment, and to a quarter for longer. Polling goroutines skip some polls
// while other goroutines issue work to the device: see [PollThrottle].
//
// A goroutine that waits for another goroutine is woken through a channel or a [Count]. If nobody
// can signal a condition, [Until] and [Lock] check it again and again, with pauses.
//
// In a testing/synctest bubble no time passes while a goroutine runs. So there nobody polls without
// a pause for a given time, keeps a processor, or lets a thread sleep. Waits park soon. Pauses use
// timers and are longer, because a long pause costs as little as a short one. [Clock.Still] detects
// a bubble.
package wake

import (
	"sync/atomic"
	"time"
)

// Slice is the time between two yields of a Waiter that keeps a processor.
const Slice = 100 * time.Microsecond

// stillRounds is the number of polls without a pause in a testing/synctest bubble, where time
// cannot limit them.
const stillRounds = 256

// A Policy says how to wait for a device.
type Policy struct {
	// Spin is how long a waiting goroutine polls before it parks. If Spin is not positive, the
	// goroutine parks at once.
	Spin time.Duration
	// Poll is how long the Poller, or a Waiter that stands in for it, polls without a pause.
	Poll time.Duration

	Parked     func() bool // reports whether a goroutine has parked until the device finishes work
	Processors *Processors
	Clock      Clock // nil means System

	stood atomic.Bool // set while a Waiter stands in for the Poller
	// keep is 1 if Waiters may keep their processors between polls. Otherwise keep is lower, and
	// each slow yield that a Waiter measures raises it by 1. See Waiter.yield.
	keep atomic.Int32
}

func (p *Policy) clock() Clock {
	if p == nil {
		return System{}
	}
	return known(p.Clock)
}

// Stood reports whether a Waiter stands in for the Poller.
func (p *Policy) Stood() bool { return p.stood.Load() }

// stand makes the calling Waiter stand in for the Poller, and returns true. If another Waiter
// stands in already, or a goroutine has parked so that the Poller polls, stand returns false.
func (p *Policy) stand() bool { return !p.Parked() && p.stood.CompareAndSwap(false, true) }

// Nudge sends to a channel with capacity 1, unless the channel is full. So it wakes the goroutine
// that receives from the channel, or makes the next receive from the channel return at once. Nudge
// does not block.
func Nudge(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
