package wake

import "sync/atomic"

// A Poller is a goroutine that polls a device on behalf of parked goroutines. It is not locked to a
// thread, because a locked thread takes many times as long to wake another goroutine.
type Poller struct {
	wake    chan struct{}
	ended   chan struct{}
	stopped atomic.Bool
}

func NewPoller() *Poller {
	return &Poller{wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Signal wakes the Poller, so that it checks whether a goroutine has parked.
func (p *Poller) Signal() { Nudge(p.wake) }

// Stop ends Run, and blocks until it has returned.
func (p *Poller) Stop() {
	p.stopped.Store(true)
	p.Signal()
	<-p.ended
}

// Run is the Poller's goroutine. It calls the function ask to poll the device. again tells ask that
// Run polls without a pause. further reports whether the device has finished more work, and asked
// whether ask has polled it at all.
func (p *Poller) Run(policy *Policy, ask func(again bool) (further, asked bool)) {
	defer close(p.ended)
	pauses := policy.Pauses()
	for {
		if !pauses.Began() {
			select {
			case <-p.wake: // clear an old signal: policy.Parked, called next, sees the goroutine that sent it
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
			policy.clock().Yield() // run the goroutine that ask has just woken
		case !asked:
			policy.clock().Yield()
		default:
			if pauses.Pause(p.wake) {
				pauses.Reset() // another goroutine has parked
			}
		}
	}
}
