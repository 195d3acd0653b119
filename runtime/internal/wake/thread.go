package wake

import "sync/atomic"

// A Thread is an OS thread whose locked goroutine waits for work. Waking the thread takes longer
// than many pieces of work do. So after work the thread lingers: it waits for some time without
// giving up its processor. Then it sleeps in the kernel, if the system allows that. At last it
// parks like other goroutines.
type Thread struct {
	policy  *Policy
	wake    chan struct{}
	sleeper sleeper
	attends atomic.Bool
	parked  atomic.Bool
}

func NewThread(p *Policy) *Thread { return &Thread{policy: p, wake: make(chan struct{}, 1)} }

// Signal wakes the thread, so that it looks for work.
func (t *Thread) Signal() {
	Nudge(t.wake)
	t.sleeper.rouse()
}

// Attends reports whether the thread lingers, and so polls the device on behalf of waiting
// goroutines.
func (t *Thread) Attends() bool { return t.attends.Load() }

// Parked reports whether the thread has parked. A goroutine that wakes a parked thread should
// yield, so that the thread can run.
func (t *Thread) Parked() bool { return t.parked.Load() }

// Rests reports whether the thread has parked or sleeps.
func (t *Thread) Rests() bool { return t.parked.Load() || t.sleeper.sleeps() }

// Wait waits for a signal, and may return without one. worked says that the thread did some work
// since it last waited. Wait calls ask to poll the device on behalf of waiting goroutines. ask
// reports whether there are any.
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

// linger waits for a signal without giving up the processor, for 4 times Policy.Spin, if enough
// processors are free.
//
// If a goroutine waits for the thread's work meanwhile and would poll without a pause, linger polls
// the device in its place, for as long as that goroutine would (Policy.Poll). That is faster,
// because the data needed to complete the work is in this processor's caches.
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
		case asks: // the waiter may soon have more work
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
