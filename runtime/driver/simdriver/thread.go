package simdriver

import "sync"

// threads records which device is current on each OS thread.
type threads struct {
	mu      sync.RWMutex
	current map[int]int // index of the current device by thread id
	id      func() int  // returns the id of the calling thread; nil if the platform has no ids
}

// bind makes device current on the calling thread.
func (t *threads) bind(device int) {
	if t.id == nil {
		return
	}
	id := t.id()
	t.mu.Lock()
	t.current[id] = device
	t.mu.Unlock()
}

// unbind leaves the calling thread without a current device if device is current there.
func (t *threads) unbind(device int) {
	if t.id == nil {
		return
	}
	id := t.id()
	t.mu.Lock()
	if current, ok := t.current[id]; ok && current == device {
		delete(t.current, id)
	}
	t.mu.Unlock()
}

// forget leaves the calling thread without a current device.
func (t *threads) forget() {
	if t.id == nil {
		return
	}
	id := t.id()
	t.mu.Lock()
	delete(t.current, id)
	t.mu.Unlock()
}

// bound returns the device that is current on the calling thread.
func (t *threads) bound() (device int, ok bool) {
	if t.id == nil {
		return 0, false
	}
	id := t.id()
	t.mu.RLock()
	device, ok = t.current[id]
	t.mu.RUnlock()
	return device, ok
}
