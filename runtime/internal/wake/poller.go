package wake

import "sync/atomic"

// A Poller is a goroutine that asks a device how far it is on behalf of those who have parked. It is locked to no thread: to wake a goroutine
// from a locked thread takes many times as long.
type Poller struct {
	wake    chan struct{}
	ended   chan struct{}
	stopped atomic.Bool
}

func NewPoller() *Poller {
	return &Poller{wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Signal makes it look whether somebody has parked.
func (p *Poller) Signal() { Nudge(p.wake) }

// Stop ends it.
func (p *Poller) Stop() {
	p.stopped.Store(true)
	p.Signal()
	<-p.ended
}

// Run is the goroutine. ask asks the device, where again says that it did so just before; it reports whether the device has come further, and
// whether it was asked at all.
func (p *Poller) Run(policy *Policy, ask func(again bool) (further, asked bool)) {
	defer close(p.ended)
	pauses := policy.Pauses()
	for {
		if !pauses.Began() {
			select {
			case <-p.wake: // whoever it was for is seen now
			default:
			}
		}
		if p.stopped.Load() {
			return
		}
		if !policy.Parked() {
			pauses.Reset()
			<-p.wake
			continue
		}
		switch further, asked := ask(pauses.Without()); {
		case further:
			pauses.Reset()
			policy.clock().Yield() // whoever was woken is next in this processor's queue
		case !asked:
			policy.clock().Yield()
		default:
			if pauses.Pause(p.wake) {
				pauses.Reset() // somebody new has parked
			}
		}
	}
}
