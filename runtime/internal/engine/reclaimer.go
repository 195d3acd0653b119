package engine

import "sync"

// A reclaimer gives back what is not used any more, on a thread of its own to which the device is bound. A driver may wait for all of
// the device's work before it frees memory, unloads code or destroys a graph. The device's thread must not: that work may be waiting
// for what only this thread issues. The goroutine comes when there is something to do, and goes.
//
// CUDA takes no work for any stream meanwhile. So nothing is given back while a stream waits for what others bring, a value in memory or a
// shared event: that may come from what cannot be submitted then, or never, if the other process was killed.
type reclaimer struct {
	mu   sync.Mutex
	todo []func()
	busy bool
}

// Reclaim has functions run, after those that were given before; without any it begins anew with what there is. It reports false, and
// does nothing, when the device is closed, which gives back all that there is.
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
		go d.runReclaimer() // which leaves
	} else {
		d.Leave() // it stays for what it finds
	}
	return true
}

// runReclaimer does what there is to do. The caller has called stay.
func (d *Device) runReclaimer() {
	defer d.Leave()
	r := &d.reclaimer
	err := d.Bound(func() error {
		for fn := d.nextToReclaim(); fn != nil; fn = d.nextToReclaim() {
			fn()
		}
		return nil
	})
	if err != nil { // what there is stays until the device is closed
		r.mu.Lock()
		r.todo, r.busy = nil, false
		r.mu.Unlock()
	}
}

// nextToReclaim returns what is to be done next, or nil, and then somebody else begins: the device itself, where Close has not waited for what
// was done last.
func (d *Device) nextToReclaim() (fn func()) {
	r := &d.reclaimer
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy = len(r.todo) > 0 && !d.AwaitsOthers() && d.phase.Load() < isEnded; !r.busy {
		return nil
	}
	fn, r.todo[0] = r.todo[0], nil // which keeps what it gives back no longer than it runs
	r.todo = r.todo[1:]
	return fn
}

// AwaitsOthers reports whether a stream waits for what others bring, as far as is known, and has it asked when that has come.
func (d *Device) AwaitsOthers() (awaits bool) {
	for _, tl := range d.All() {
		if seq := tl.awaiting.Load(); seq > tl.passed.Load() {
			tl.want(seq)
			awaits = true
		}
	}
	return awaits
}

// AwaitOthers is called around the native calls of a submission that has the stream wait for what others bring.
func (tl *Timeline) AwaitOthers(submit func() (started bool, err error)) (started bool, err error) {
	before := tl.awaiting.Swap(tl.issued.Load() + 1)
	if started, err = submit(); !started {
		tl.awaiting.Store(before)
		tl.Device.Reclaim() // what was given meanwhile has not been begun
	}
	return started, err
}
