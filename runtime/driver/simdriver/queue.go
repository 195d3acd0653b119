package simdriver

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// An operation is one piece of a stream's work.
type operation struct {
	code    code
	width   uint8
	pattern uint32
	dst     driver.Ptr
	src     driver.Ptr
	n       uint64 // elements of a fill, else bytes
	host    unsafe.Pointer
	fail    error  // what it is to fail with
	launch  *call  // of a kernel
	event   *event // what is waited for, and as it was recorded when the wait was submitted:
	source  *stream
	seq     uint64
}

const chunkSize = 128

// A chunk is a part of a queue.
type chunk struct {
	ops  [chunkSize]operation
	next *chunk
}

// A queue holds a stream's operations in order. Who adds holds mu; one goroutine at a time takes away, without mu, so that
// the two get in each other's way once a chunk.
type queue struct {
	mu   sync.Mutex
	last *chunk        // where tail is
	tail atomic.Uint64 // operations added

	first *chunk        // where head is; the taker's
	head  atomic.Uint64 // operations taken; the taker's to write

	freeMu sync.Mutex
	free   *chunk // chunks to use again
}

// slot returns where the next operation goes: it is part of the queue when publish is called. The caller holds mu.
func (q *queue) slot(c code) *operation {
	tail := q.tail.Load()
	i := tail % chunkSize
	if i == 0 {
		k := q.chunk()
		if q.last != nil {
			q.last.next = k
		} else {
			q.first = k // nothing was added yet, and so the taker has not looked
		}
		q.last = k
	}
	o := &q.last.ops[i]
	o.code = c
	return o
}

// chunk returns an empty chunk.
func (q *queue) chunk() *chunk {
	q.freeMu.Lock()
	k := q.free
	if k != nil {
		q.free, k.next = k.next, nil
	}
	q.freeMu.Unlock()
	if k == nil {
		k = new(chunk)
	}
	return k
}

// peek returns the oldest operation, or nil.
func (q *queue) peek() *operation {
	head := q.head.Load()
	if head == q.tail.Load() {
		return nil
	}
	i := head % chunkSize
	if i == 0 && head > 0 && q.first.ops[chunkSize-1].code == taken {
		k := q.first
		q.first = k.next
		k.ops[chunkSize-1].code = 0
		q.freeMu.Lock()
		k.next, q.free = q.free, k
		q.freeMu.Unlock()
	}
	return &q.first.ops[i]
}

// taken marks the last operation of a chunk that has been used up.
const taken = codes

// take removes the oldest operation, which peek has returned.
func (q *queue) take(o *operation) {
	*o = operation{}
	head := q.head.Load()
	if head%chunkSize == chunkSize-1 {
		o.code = taken
	}
	q.head.Store(head + 1)
}
