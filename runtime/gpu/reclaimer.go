package gpu

import "sync"

// A reclaimer gives back what is not used any more, on a thread of its own to which the device is bound. A driver may wait for all of
// the device's work before it frees memory, unloads code or destroys a graph. The device's thread must not: that work may be waiting
// for what only this thread issues. The goroutine comes when there is something to do, and goes.
type reclaimer struct {
	mu   sync.Mutex
	todo []func()
	busy bool
}

// reclaim has a function run, after those that were given before. It does nothing when the device is closed, which gives back all
// that there is.
func (d *Device) reclaim(fn func()) {
	if d.stay() != nil {
		return
	}
	r := &d.reclaimer
	r.mu.Lock()
	r.todo = append(r.todo, fn)
	begin := !r.busy
	r.busy = true
	r.mu.Unlock()
	if begin {
		go d.runReclaimer() // which leaves
	} else {
		d.leave() // it stays for what it finds
	}
}

// runReclaimer does what there is to do. The caller has called stay.
func (d *Device) runReclaimer() {
	defer d.leave()
	r := &d.reclaimer
	err := d.bound(func() error {
		for todo := r.take(); todo != nil; todo = r.take() {
			for _, fn := range todo {
				fn()
			}
		}
		return nil
	})
	if err != nil { // what there is stays until the device is closed
		r.mu.Lock()
		r.todo, r.busy = nil, false
		r.mu.Unlock()
	}
}

// take returns what there is to do, or nil, and then somebody else begins.
func (r *reclaimer) take() (todo []func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	todo, r.todo = r.todo, nil
	r.busy = todo != nil
	return todo
}
