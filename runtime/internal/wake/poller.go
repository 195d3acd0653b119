package wake

import "sync/atomic"

// A Poller is a goroutine that asks a device on behalf of parked goroutines. It is not locked to a
// thread: waking a goroutine from a locked thread takes many times as long.
type Poller struct {
	wake    chan struct{}
	ended   chan struct{}
	stopped atomic.Bool
}

func NewPoller() *Poller {
	return &Poller{wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Signal has the poller check whether somebody has parked.
func (p *Poller) Signal() { Nudge(p.wake) }

// Stop ends the poller and waits for that.
func (p *Poller) Stop() {
	p.stopped.Store(true)
	p.Signal()
	<-p.ended
}

// Run is the poller's goroutine. ask asks the device; again says that Run also called it just
// before. ask reports whether the device has got further, and whether it was asked at all.
func (p *Poller) Run(policy *Policy, ask func(again bool) (further, asked bool)) {
	defer close(p.ended)
	pauses := policy.Pauses()
	for {
		if !pauses.Began() {
			select {
			case <-p.wake: // the goroutine that signalled is seen now
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
			policy.clock().Yield() // the woken goroutine is next in this processor's queue
		case !asked:
			policy.clock().Yield()
		default:
			if pauses.Pause(p.wake) {
				pauses.Reset() // somebody else has parked
			}
		}
	}
}
