package simdriver

import (
	"sync"
	"sync/atomic"
)

// A handle has the index of a place in its low bits, and above them how often the place was used.
// So a handle of a destroyed object is recognized.
const (
	indexBits = 20
	indexMask = 1<<indexBits - 1
	blockBits = 10
	blockSize = 1 << blockBits
)

// A table finds objects by handle. Looking one up takes no lock.
type table[T any] struct {
	blocks [1 << (indexBits - blockBits)]atomic.Pointer[[blockSize]place[T]]

	mu   sync.Mutex
	used int      // places used so far
	free []uint32 // free places, oldest first, starting at head
	head int
}

// A place is where a table keeps an object.
type place[T any] struct {
	handle atomic.Uintptr // handle of the object, or of the last one
	object atomic.Pointer[T]
}

// get returns the object with handle h, or nil.
func (t *table[T]) get(h uintptr) *T {
	i := h & indexMask
	b := t.blocks[i>>blockBits].Load()
	if b == nil {
		return nil
	}
	p := &b[i&(blockSize-1)]
	o := p.object.Load()
	if p.handle.Load() != h {
		return nil
	}
	return o
}

// add makes a handle for o; it returns 0 if the table is full.
func (t *table[T]) add(o *T) uintptr {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uintptr
	// While few places are free they are not reused, so that an old handle stays invalid for long.
	if len(t.free)-t.head > 64 || t.used == indexMask+1 && len(t.free) > t.head {
		i = uintptr(t.free[t.head])
		t.head++
		if t.head >= 1024 && t.head*2 > len(t.free) {
			t.free = append(t.free[:0], t.free[t.head:]...)
			t.head = 0
		}
	} else if t.used <= indexMask {
		i = uintptr(t.used)
		t.used++
	} else {
		return 0
	}
	b := t.blocks[i>>blockBits].Load()
	if b == nil {
		b = new([blockSize]place[T])
		t.blocks[i>>blockBits].Store(b)
	}
	p := &b[i&(blockSize-1)]
	h := p.handle.Load()&^indexMask + 1<<indexBits | i
	if h>>indexBits == 0 { // the counter wrapped
		h = 1<<indexBits | i
	}
	p.handle.Store(h)
	p.object.Store(o)
	return h
}

// remove forgets the object with handle h and returns it, or nil if there was none.
func (t *table[T]) remove(h uintptr) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.get(h)
	if o == nil {
		return nil
	}
	i := h & indexMask
	t.blocks[i>>blockBits].Load()[i&(blockSize-1)].object.Store(nil)
	t.free = append(t.free, uint32(i))
	return o
}

// all calls f for each object.
func (t *table[T]) all(f func(h uintptr, o *T)) {
	t.mu.Lock()
	n := t.used
	t.mu.Unlock()
	for i := range n {
		p := &t.blocks[i>>blockBits].Load()[i&(blockSize-1)]
		if o := p.object.Load(); o != nil {
			f(p.handle.Load(), o)
		}
	}
}
