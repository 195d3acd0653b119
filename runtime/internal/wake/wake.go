// Package wake implements waiting: for devices, which do not notify the host, and for other
// goroutines. It does not depend on any device or driver: callers pass in functions that poll.
//
// A device must be polled. A goroutine that polls without a pause sees the end of work at once, but
// keeps a processor busy. A parked goroutine must be woken, which takes many times as long as a
// short piece of work. So a wait for a device has these steps:
//
//  1. A [Waiter] polls the device itself, for [Policy.Spin].
//  2. Then the goroutine parks, and the device's [Poller] polls on behalf of all parked goroutines.
//     The Poller polls without a pause until it has found nothing done for [Policy.Poll]. From then
//     on it polls with [Pauses], which grow from some microseconds to a millisecond.
//  3. If nobody has parked, one Waiter at a time need not park after step 1. It stands in for the
//     Poller: it goes on polling for as long as the Poller would without a pause.
//  4. If a [Thread] issued the work, such as a channel's thread, that Thread polls in place of the
//     Waiters while it has nothing else to do.
//
// A polling goroutine yields between polls. A yield is cheap, except on a goroutine that is locked
// to its thread. There a [Waiter] yields only once in a [Slice]. An exception are devices simulated
// by goroutines, whose work needs the yields to proceed. [Processors] counts the processors that
// are kept busy that way and limits them: to half of all for a moment, and to a quarter for longer.
// Polling goroutines skip some polls while others issue work to the device: see [PollThrottle].
//
// A goroutine that waits for another goroutine is woken by a channel or a [Count]. For conditions
// that nobody can signal, [Until] and [Lock] check the condition again and again, with pauses.
//
// In a testing/synctest bubble no time passes while a goroutine runs. So in a bubble nobody polls
// without a pause for a given time, keeps a processor, or lets its thread sleep. Waits park soon.
// Pauses use timers and are longer than elsewhere, because a long pause costs no more than a short
// one. [Clock.Still] detects a bubble; nothing else depends on it.
package wake

import (
	"sync/atomic"
	"time"
)

// Slice is how long a Waiter keeps a processor between two yields if yields are slow.
const Slice = 100 * time.Microsecond

// stillRounds is how often a goroutine polls without a pause in a bubble, where time stands still.
const stillRounds = 256

// A Policy says how to wait for a device.
type Policy struct {
	Spin time.Duration // how long a Waiter polls by itself; if not positive, it parks at once
	// Poll is how long the Poller, or a Waiter that stands in for it, polls without a pause.
	Poll time.Duration

	Parked     func() bool // reports whether somebody has parked
	Processors *Processors
	Clock      Clock // nil means System

	stood atomic.Bool // a Waiter stands in for the Poller
	// keep is 1 if Waiters keep their processors between polls. If keep is less, it becomes 1 after
	// 1-keep slow yields. See Waiter.yield.
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

// stand makes the caller the Waiter that stands in for the Poller, and reports whether it did. It
// does not if there is such a Waiter already, or if somebody has parked, because then the Poller
// polls.
func (p *Policy) stand() bool { return !p.Parked() && p.stood.CompareAndSwap(false, true) }

// Nudge puts an element into a channel with capacity 1, unless the channel has one. So it wakes the
// goroutine that receives from the channel, now or when that goroutine receives next. Nudge does
// not block.
func Nudge(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
