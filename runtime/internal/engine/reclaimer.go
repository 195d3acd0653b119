package engine

import "sync"

// A reclaimer frees unused memory, code and graphs on a bound thread of its own. A driver may wait
// for all of the device's work before it frees memory, unloads code or destroys a graph. The
// pending-queue thread must not wait for that: the work may be waiting for a submission that only
// this thread issues. The reclaimer's goroutine starts when there is something to free, and ends
// when nothing is left.
//
// While CUDA waits in such a call, it takes no work for any stream. So the reclaimer does nothing
// while a stream waits for outside code (for a value in memory or a shared event). The work that
// would signal the value or event could not be submitted meanwhile. It may also never come, if the
// other process was killed.
type reclaimer struct {
	// mu protects the following fields. It is a leaf.
	mu   sync.Mutex
	todo []func()
	busy bool
}

// Reclaim has the reclaimer call fns, after the functions given before. Without fns it only starts
// the reclaimer again if functions are left. It returns false, and does nothing, if the device is
// closed: Close frees everything.
func (d *Device) Reclaim(fns ...func()) bool {
	if d.Stay() != nil {
		return false
	}
	r := &d.reclaimer
	r.mu.Lock()
	r.todo = append(r.todo, fns...)
	begin := !r.busy && len(r.todo) > 0 && !d.AwaitsOthers()
	r.busy = r.busy || begin
	r.mu.Unlock()
	if begin {
		go d.runReclaimer() // runReclaimer calls Leave
	} else {
		d.Leave() // a running reclaimer has called Stay for itself
	}
	return true
}

// runReclaimer calls the functions that are left. The caller has called Stay.
func (d *Device) runReclaimer() {
	defer d.Leave()
	r := &d.reclaimer
	err := d.Bound(func() error {
		for fn := d.nextToReclaim(); fn != nil; fn = d.nextToReclaim() {
			fn()
		}
		return nil
	})
	if err != nil { // Close frees these things
		r.mu.Lock()
		r.todo, r.busy = nil, false
		r.mu.Unlock()
	}
}

// nextToReclaim returns the next function given to Reclaim, or nil if the reclaimer must end. There
// are three reasons to end: no function is left; a stream waits for outside code, so that a call
// that frees something might block for ever; or Close gave up waiting, and the device's thread
// destroys everything already. A later Reclaim starts the reclaimer again.
func (d *Device) nextToReclaim() (fn func()) {
	r := &d.reclaimer
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy = len(r.todo) > 0 && !d.AwaitsOthers() && d.phase.Load() < isEnded; !r.busy {
		return nil
	}
	// The list must not keep alive what fn frees.
	fn, r.todo[0] = r.todo[0], nil
	r.todo = r.todo[1:]
	return fn
}

// AwaitsOthers reports whether a stream of the device may wait for outside code (see
// Timeline.awaiting). If so, it requests polling until that wait is over.
func (d *Device) AwaitsOthers() (awaits bool) {
	for _, tl := range d.All() {
		if seq := tl.awaiting.Load(); seq > tl.passed.Load() {
			tl.want(seq)
			awaits = true
		}
	}
	return awaits
}

// AwaitOthers calls submit, which makes the native calls of a submission that has the stream wait
// for outside code. It sets awaiting first, so that the reclaimer does nothing meanwhile. The
// caller holds mu.
func (tl *Timeline) AwaitOthers(submit func() (started bool, err error)) (started bool, err error) {
	before := tl.awaiting.Swap(tl.issued.Load() + 1)
	if started, err = submit(); !started {
		tl.awaiting.Store(before)
		tl.Device.Reclaim() // for functions added meanwhile, which the reclaimer has not begun
	}
	return started, err
}
