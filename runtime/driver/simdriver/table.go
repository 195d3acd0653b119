package simdriver

import (
	"sync"
	"sync/atomic"
)

// A handle holds an index in its low bits. Above them it holds the number of times that this index
// was used. So a table recognizes the handle of a destroyed object.
const (
	indexBits = 20
	indexMask = 1<<indexBits - 1
	blockBits = 10
	blockSize = 1 << blockBits
)

// A table finds objects by handle. get takes no lock.
type table[T any] struct {
	blocks [1 << (indexBits - blockBits)]atomic.Pointer[[blockSize]place[T]]

	mu   sync.Mutex
	used int      // number of places that have been used
	free []uint32 // free places, in the order in which they became free; the first is at head
	head int
}

// A place holds an object of a table.
type place[T any] struct {
	handle atomic.Uintptr // handle of the object, or of the place's last object
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
	// A place is reused only if many places are free, or all have been used. This way a handle does
	// not come back soon.
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
	if h>>indexBits == 0 { // the count has wrapped
		h = 1<<indexBits | i
	}
	p.handle.Store(h)
	p.object.Store(o)
	return h
}

// remove removes the object with handle h and returns it, or nil if there is none.
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
