package wake

import "sync/atomic"

// A Thread is an OS thread with a locked goroutine that waits for work again and again. Waking a
// locked thread takes longer than many pieces of work do. So after work the goroutine first
// lingers: it waits for a signal in a loop, without giving up its processor. Later its thread
// sleeps in the kernel, if the system allows that. In the end the goroutine parks like other
// goroutines.
type Thread struct {
	policy  *Policy
	wake    chan struct{}
	sleeper sleeper
	attends atomic.Bool
	parked  atomic.Bool
}

// NewThread makes a Thread with a policy. The caller starts the goroutine.
func NewThread(p *Policy) *Thread { return &Thread{policy: p, wake: make(chan struct{}, 1)} }

// Signal wakes the thread: its Wait returns.
func (t *Thread) Signal() {
	Nudge(t.wake)
	t.sleeper.rouse()
}

// Attends reports whether the thread lingers: it waits for work without giving up its processor.
// While the thread lingers, it polls the device on behalf of waiting goroutines.
func (t *Thread) Attends() bool { return t.attends.Load() }

// Parked reports whether the thread has parked. A goroutine that signals a parked thread should
// yield afterwards, so that the thread can run.
func (t *Thread) Parked() bool { return t.parked.Load() }

// Rests reports whether the thread sleeps or has parked.
func (t *Thread) Rests() bool { return t.parked.Load() || t.sleeper.sleeps() }

// Wait blocks until Signal is called, but may return earlier. worked says that the thread has done
// some work since the last Wait. Wait calls the function ask to poll the device on behalf of
// waiting goroutines. ask reports whether there are such goroutines.
func (t *Thread) Wait(worked bool, ask func() (asked bool)) {
	clock := t.policy.clock()
	switch {
	case t.policy.Spin <= 0 || clock.Still(clock.Now()):
	case worked:
		t.linger(ask)
		return
	case t.sleeper.sleep(t.wake, t.policy.Processors):
		return
	}
	t.parked.Store(true)
	<-t.wake
	t.parked.Store(false)
}

// linger waits for a signal without giving up the processor, for 4 times Policy.Spin. If too many
// processors are kept, linger returns early.
//
// If a goroutine waits for the thread's work and would poll without a pause, linger polls in its
// place, for at most Policy.Poll, as that goroutine would. If that goroutine stops waiting earlier,
// linger waits for the full 4 times Policy.Spin again. Polling here is faster: the data that is
// needed to complete the work is in the caches of this processor.
func (t *Thread) linger(ask func() (asked bool)) {
	p := t.policy
	if !p.Processors.keep(briefKeep) {
		return
	}
	defer p.Processors.give()
	t.attends.Store(true)
	defer t.attends.Store(false)
	clock := p.clock()
	asks, keeps := false, false
	start := clock.Now()
	for n := 1; ; n++ {
		select {
		case <-t.wake:
			return
		default:
		}
		switch asked := ask(); {
		case asked:
			asks = true
		case asks: // that goroutine may soon submit more work, so linger for the full time again
			asks, start = false, clock.Now()
		}
		if n%64 != 0 {
			continue
		}
		switch past := clock.Since(start); {
		case past <= 4*p.Spin:
		case !asks || past > p.Poll:
			return
		case !keeps:
			if keeps = p.Processors.may(longKeep); !keeps {
				return
			}
		}
	}
}
