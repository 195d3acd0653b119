package engine

import "sync"

// A reclaimer frees unused memory, code and graphs on a thread of its own that is bound to the
// device. A driver may wait for all work of the device before it frees memory, unloads code or
// destroys a graph. The pending-queue thread must not make such a call: the work may itself wait
// for a parked submission, which the pending-queue thread may have to issue. The reclaimer's
// goroutine starts when there is something to free. It ends when nothing is left, when the
// reclaimer must pause, or when Close frees everything.
//
// While CUDA waits in such a call, it accepts no work for any stream. So the reclaimer pauses while
// a stream waits for other code (for a value in memory or a shared event). Perhaps the stream's
// wait ends only after this program submits more work, which CUDA would not accept. Perhaps that
// wait never ends, because another process was killed.
type reclaimer struct {
	// mu protects the following fields. No other lock is taken while it is held.
	mu   sync.Mutex
	todo []func()
	busy bool
}

// Reclaim gives functions to the reclaimer, which calls them in the order in which it got them. It
// starts the reclaimer's goroutine if there are functions to call, no stream waits for other code,
// and the goroutine is not running. So a call without functions restarts a paused reclaimer. If
// Close no longer waits for callers of Stay, Reclaim does nothing and returns false, because Close
// frees everything.
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
		go d.runReclaimer() // runReclaimer calls Leave at its end
	} else {
		d.Leave() // if the reclaimer is running, the call that started it has called Stay for it
	}
	return true
}

// runReclaimer is the reclaimer's goroutine. It calls functions until nextToReclaim returns nil.
// The caller has called Stay.
func (d *Device) runReclaimer() {
	defer d.Leave()
	r := &d.reclaimer
	err := d.Bound(func() error {
		for fn := d.nextToReclaim(); fn != nil; fn = d.nextToReclaim() {
			fn()
		}
		return nil
	})
	if err != nil { // the thread cannot be bound to the device; Close frees everything
		r.mu.Lock()
		r.todo, r.busy = nil, false
		r.mu.Unlock()
	}
}

// nextToReclaim returns the next function to call. It returns nil if the reclaimer must end. There
// are three reasons: no function is left; a stream waits for other code, so that a call that frees
// something might block for ever; Close gave up waiting and is already destroying everything (phase
// isEnded). For the first two reasons, a later call of Reclaim starts the reclaimer again.
func (d *Device) nextToReclaim() (fn func()) {
	r := &d.reclaimer
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy = len(r.todo) > 0 && !d.AwaitsOthers() && d.phase.Load() < isEnded; !r.busy {
		return nil
	}
	// Clear the element, so that the list does not keep the objects of fn alive.
	fn, r.todo[0] = r.todo[0], nil
	r.todo = r.todo[1:]
	return fn
}

// AwaitsOthers reports whether a stream of the device may be waiting for other code (see
// Timeline.awaiting). If so, AwaitsOthers requests polling until the wait is over.
func (d *Device) AwaitsOthers() (awaits bool) {
	for _, tl := range d.All() {
		if seq := tl.awaiting.Load(); seq > tl.passed.Load() {
			tl.want(seq)
			awaits = true
		}
	}
	return awaits
}

// AwaitOthers calls submit and returns the results of submit. submit makes the native calls of a
// submission that makes the stream wait for other code. AwaitOthers first sets tl.awaiting, so that
// the reclaimer pauses. If the stream got no work, AwaitOthers restores tl.awaiting. The caller
// holds tl.mu.
func (tl *Timeline) AwaitOthers(submit func() (started bool, err error)) (started bool, err error) {
	before := tl.awaiting.Swap(tl.issued.Load() + 1)
	if started, err = submit(); !started {
		tl.awaiting.Store(before)
		tl.Device.Reclaim() // calls of Reclaim since awaiting was set have not started the reclaimer
	}
	return started, err
}
