package wake

import "sync/atomic"

// A Poller is a goroutine that polls a device on behalf of parked goroutines. It is not locked to a
// thread, because a locked thread takes many times as long to wake another goroutine.
type Poller struct {
	wake    chan struct{}
	ended   chan struct{}
	stopped atomic.Bool
	lets    bool                   // the Poller lets go of an idle device
	polled  atomic.Pointer[Polled] // nil while the Poller has let go of the device
}

// Polled is the object that a Poller polls.
type Polled struct {
	Policy *Policy
	// Ask polls the device. If again is set, the Poller polls without a pause, and Ask may skip the
	// poll. The result further reports whether the device has finished more work, and the result
	// asked reports whether Ask has polled the device at all.
	Ask func(again bool) (further, asked bool)
}

// NewPoller makes a Poller. If letsGo is set, its goroutine does not refer to the device while
// nobody has parked, so that the garbage collector can find an idle device that was dropped.
func NewPoller(letsGo bool) *Poller {
	return &Poller{wake: make(chan struct{}, 1), ended: make(chan struct{}), lets: letsGo}
}

// Signal wakes the Poller, so that it checks whether a goroutine has parked. From now on the Poller
// refers to the device; if letsGo was set, only until nobody has parked.
func (p *Poller) Signal(x *Polled) {
	if p.polled.Load() != x {
		p.polled.Store(x)
	}
	Nudge(p.wake)
}

// Stop ends Run, and blocks until Run has returned.
func (p *Poller) Stop() {
	p.stopped.Store(true)
	Nudge(p.wake)
	<-p.ended
}

// Run is the Poller's goroutine. It begins with the first Signal.
func (p *Poller) Run() {
	defer close(p.ended)
	for <-p.wake; p.poll(); <-p.wake {
	}
}

// poll polls the device while goroutines have parked. It returns false if Stop was called.
func (p *Poller) poll() bool {
	x := p.polled.Load()
	if x == nil {
		return !p.stopped.Load()
	}
	pauses := x.Policy.Pauses()
	for {
		if !pauses.Began() {
			select {
			case <-p.wake: // clear an old signal: Policy.Parked, called next, sees why it was sent
			default:
			}
		}
		if p.stopped.Load() {
			return false
		}
		if !x.Policy.Parked() {
			if !p.lets {
				return true
			}
			p.polled.Store(nil)
			if !x.Policy.Parked() {
				return true
			}
			// A goroutine has parked. If the goroutine's Signal found x in p.polled before the
			// Store above, Signal has not stored x again.
			p.polled.Store(x)
			continue
		}
		switch further, asked := x.Ask(pauses.Without()); {
		case further:
			pauses.Reset()
			x.Policy.clock().Yield() // run the goroutine that Ask has just woken
		case !asked:
			x.Policy.clock().Yield()
		default:
			if pauses.Pause(p.wake) {
				pauses.Reset() // one more goroutine has parked, or Stop was called
			}
		}
	}
}
