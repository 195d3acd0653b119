// Package wake implements waiting: for devices, which do not notify the host, and for other
// goroutines. It knows neither.
//
// A device is asked again and again. A goroutine that asks without a pause sees the end of work at
// once, but keeps a processor busy. A parked goroutine must be woken, which takes many times as
// long as short work. So a wait has these steps:
//
//  1. A [Waiter] asks the device itself for [Policy.Spin].
//  2. Then it parks, and the device's [Poller] asks on behalf of all parked goroutines. It asks
//     without a pause for [Policy.Poll] since it last found something done. Then it asks in
//     [Pauses], which grow from some microseconds to a millisecond.
//  3. If nobody has parked, a waiter stands for the poller: it goes on asking for as long as the
//     poller would. There is one such waiter at a time.
//  4. If a [Thread] belongs to the work, such as a channel's, waiters leave asking to it while it
//     has nothing else to do.
//
// A goroutine that asks yields in between. A yield is cheap, except on a goroutine that is locked
// to its thread. There a [Waiter] yields once in a [Slice], unless the yields are what ends its
// waits, as with a device that is itself made of goroutines. [Processors] counts the processors
// that are kept that way: at most half of them for a moment, and a quarter for longer. Goroutines
// that ask again skip some rounds while others give the device work: see [Crowd].
//
// Goroutines that wait for each other are woken, by a channel or a [Count]. [Until] and [Lock]
// check in pauses, for conditions that nobody can signal.
//
// In a testing/synctest bubble no time passes while a goroutine runs. There nobody asks without a
// pause for a time, keeps a processor, or has its thread sleep. Waits park soon. The pauses are
// timers, and longer than elsewhere, because each costs the same work. [Clock.Still] detects a
// bubble; nothing else depends on it.
package wake

import (
	"sync/atomic"
	"time"
)

// Slice is how long a waiter keeps a processor between two yields where yields are slow.
const Slice = 100 * time.Microsecond

// stillRounds is how often a goroutine asks without a pause where time stands still.
const stillRounds = 256

// A Policy says how to wait for a device.
type Policy struct {
	Spin time.Duration // how long a waiter asks by itself; if not positive, it parks at once
	// Poll is how long the poller, or a waiter that stands for it, asks without a pause.
	Poll time.Duration

	Parked     func() bool // reports whether somebody has parked
	Processors *Processors
	Clock      Clock // nil is Go's

	stood atomic.Bool // a waiter stands for the poller
	// keep is 1 if waiters keep their processors. If it is less, it becomes 1 after 1-keep slow
	// yields. See Waiter.yield.
	keep atomic.Int32
}

func (p *Policy) clock() Clock {
	if p == nil {
		return System{}
	}
	return known(p.Clock)
}

// Stood reports whether a waiter stands for the poller.
func (p *Policy) Stood() bool { return p.stood.Load() }

// stand makes the caller the waiter that stands for the poller, and reports whether it did. It does
// not if there is one already, or if somebody has parked, because then the poller asks.
func (p *Policy) stand() bool { return !p.Parked() && p.stood.CompareAndSwap(false, true) }

// Nudge puts an element into a channel with room for one, unless one is there. So it wakes the
// goroutine that waits for the channel, now or when it waits next. It does not block.
func Nudge(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
