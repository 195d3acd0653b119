package gpu

import (
	"runtime"
	"sync"
)

// A cleaner gives back what is not used any more, on a thread of its own to which the device is bound. A driver may wait for all of
// the device's work before it frees memory or unloads code. The device's thread must not: that work may be waiting for what only
// this thread issues. The goroutine comes when there is something to do, and goes.
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
	runtime.LockOSThread()
	err := d.drv.Bind()
	for c := &d.cleaner; ; {
		c.mu.Lock()
		todo := c.todo
		c.todo = nil
		c.busy = len(todo) > 0
		c.mu.Unlock()
		if len(todo) == 0 {
			break
		}
		for _, fn := range todo {
			if err == nil { // else it stays until the device is closed
				fn()
			}
		}
	}
	if d.drv.Unbind() == nil {
		runtime.UnlockOSThread() // else the thread ends with the goroutine
	}
}
