package gpu

import "sync"

// A cleaner gives back what is not used any more, on a thread of its own to which the device is bound. A driver may wait for all of
// the device's work before it frees memory, unloads code or destroys a graph. The device's thread must not: that work may be waiting
// for what only this thread issues. The goroutine comes when there is something to do, and goes.
type cleaner struct {
	mu   sync.Mutex
	todo []func()
	busy bool
}

// clean has a function run, after those that were given before. It does nothing when the device is closed, which gives back all
// that there is.
func (d *Device) clean(fn func()) {
	if d.stay() != nil {
		return
	}
	c := &d.cleaner
	c.mu.Lock()
	c.todo = append(c.todo, fn)
	begin := !c.busy
	c.busy = true
	c.mu.Unlock()
	if begin {
		go d.cleanUp() // which leaves
	} else {
		d.leave() // it stays for what it finds
	}
}

// cleanUp does what there is to do. The caller has called stay.
func (d *Device) cleanUp() {
	defer d.leave()
	c := &d.cleaner
	err := d.bound(func() error {
		for todo := c.take(); todo != nil; todo = c.take() {
			for _, fn := range todo {
				fn()
			}
		}
		return nil
	})
	if err != nil { // what there is stays until the device is closed
		c.mu.Lock()
		c.todo, c.busy = nil, false
		c.mu.Unlock()
	}
}

// take returns what there is to do, or nil, and then somebody else begins.
func (c *cleaner) take() (todo []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	todo, c.todo = c.todo, nil
	c.busy = todo != nil
	return todo
}
