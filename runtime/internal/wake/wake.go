// Package wake is how package gpu waits: for devices, which nobody tells the host about, and for other goroutines. It knows neither.
//
// A device is asked again and again how far it is. Somebody who does that without a pause sees the end of work at once, and keeps a
// processor busy; a goroutine that has parked must be woken, which takes many times as long as short work does. So a wait goes like this:
//
//  1. A [Waiter] asks the device itself for [Policy.Spin].
//  2. Then it parks, and the device's [Poller] asks on behalf of all that have: without a pause for [Policy.Poll] since it last found
//     something new, and then in [Pauses], which grow with the time that has passed, from some microseconds to a millisecond.
//  3. If nobody has parked, a waiter stands for the poller instead: it goes on asking itself for as long as the poller would. There is one
//     at a time.
//  4. Where a [Thread] belongs to the work, as a channel's does, waiters leave the asking to it while it has nothing else to do.
//
// A goroutine that asks yields in between. That is cheap, but not on a goroutine that is locked to its
// thread. There a [Waiter] yields once in a [Slice], unless yielding is what ends waits, as for a
// device that is goroutines itself. Who keeps a processor like
// that counts in [Processors], of which no more than a half may be kept for a moment, and a quarter for longer. Who asks again leaves a
// device alone for some rounds while others give it work: that is [Crowd].
//
// Goroutines that wait for each other are told: by a channel, or by a [Count]. [Until] and [Lock] look again in pauses, for what nobody could tell.
//
// In a bubble of testing/synctest no time passes while somebody runs, so nobody asks there for a time without a pause, keeps a processor, or
// has his thread sleep: waits park soon, and the pauses are timers, longer ones than elsewhere since each costs the same work. [Clock.Still]
// says where that is so; nothing else depends on it.
package wake

import (
	"sync/atomic"
	"time"
)

// Slice is for how long a processor is kept at a time where to yield is dear.
const Slice = 100 * time.Microsecond

// stillRounds is how often somebody asks without a pause where time stands still.
const stillRounds = 256

// A Policy is how a device is waited for.
type Policy struct {
	Spin time.Duration // how long a waiter asks by itself; not positive: it parks at once
	Poll time.Duration // how long the device is asked without a pause on behalf of those who have parked, or by one who stands for the poller

	Parked     func() bool // whether somebody has parked
	Processors *Processors
	Clock      Clock // nil is Go's

	stood atomic.Bool  // a waiter stands for the poller
	keep  atomic.Int32 // 1: waiters keep their processors; less: so often less to yield has taken long. See Waiter.yield
}

func (p *Policy) clock() Clock {
	if p == nil {
		return System{}
	}
	return known(p.Clock)
}

// Stood reports whether a waiter stands for the poller.
func (p *Policy) Stood() bool { return p.stood.Load() }

// stand has a waiter stand for the poller, if there is need of one: who comes when somebody has parked does not.
func (p *Policy) stand() bool { return !p.Parked() && p.stood.CompareAndSwap(false, true) }

// Nudge wakes who waits for a channel that holds one element, now or when it waits next. It does not block.
func Nudge(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
