package wake

import "sync/atomic"

// A Poller is a goroutine that polls a device on behalf of parked goroutines. It is not locked to a
// thread: waking a goroutine from a locked thread takes many times as long.
type Poller struct {
	wake    chan struct{}
	ended   chan struct{}
	stopped atomic.Bool
}

func NewPoller() *Poller {
	return &Poller{wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Signal wakes the poller, so that it checks whether somebody has parked.
func (p *Poller) Signal() { Nudge(p.wake) }

// Stop ends the poller's goroutine and waits for its end.
func (p *Poller) Stop() {
	p.stopped.Store(true)
	p.Signal()
	<-p.ended
}

// Run is the poller's goroutine. It calls ask to poll the device; again says that Run polls without
// a pause. ask reports whether the device has finished more work, and whether it was polled at all.
func (p *Poller) Run(policy *Policy, ask func(again bool) (further, asked bool)) {
	defer close(p.ended)
	pauses := policy.Pauses()
	for {
		if !pauses.Began() {
			select {
			case <-p.wake: // policy.Parked, called next, sees the goroutine that signalled
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
