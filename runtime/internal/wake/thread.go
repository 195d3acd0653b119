package wake

import "sync/atomic"

// A Thread is one that a goroutine is locked to, and waits for something to do. To wake it takes longer than many a thing that it does, so
// after it has done something it lingers: it does not let go of its processor for some time. Then it sleeps in the kernel, where it can,
// and at last it parks as other goroutines do.
type Thread struct {
	policy  *Policy
	wake    chan struct{}
	sleeper sleeper
	attends atomic.Bool
	parked  atomic.Bool
}

func NewThread(p *Policy) *Thread { return &Thread{policy: p, wake: make(chan struct{}, 1)} }

// Signal has it look for something to do.
func (t *Thread) Signal() {
	Nudge(t.wake)
	t.sleeper.rouse()
}

// Attends reports whether it lingers, and so asks the device for others.
func (t *Thread) Attends() bool { return t.attends.Load() }

// Parked reports whether it has parked: then who wakes it should let it run.
func (t *Thread) Parked() bool { return t.parked.Load() }

// Rests reports whether it has parked, or sleeps.
func (t *Thread) Rests() bool { return t.parked.Load() || t.sleeper.sleeps() }

// Wait waits for a signal, and may return without one. worked says that it has done something since it waited before. ask asks the
// device for those who wait for it, if there are any.
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

// linger waits without giving the thread away, a few times as long as other waits ask, where there are processors enough. If somebody
// waits for the thread's work meanwhile, and does so himself without a pause, it asks the device in his place, and goes on as long as he
// would: what there is to complete is in this processor's caches.
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
		case asks: // whoever waited may soon have more
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
