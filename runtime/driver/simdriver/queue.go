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
	stride  uint64 // of a strided fill
	pattern uint32
	dst     driver.Ptr
	src     driver.Ptr
	to      *device        // of a copy between devices, whose dst is, or of a wait for a value, which is to reach it, as is:
	from    *device        // src; nil: what the stream's device can reach
	n       uint64         // elements of a fill, marks of a timer's record, a value, else bytes
	host    unsafe.Pointer // instead of src or dst
	fail    error          // what it is to fail with
	call    *call          // of a kernel
	event   *event         // what is waited for, or a timer that is recorded
	record  uint64         // which one of a timer's records it is, or waits for
	source  *stream        // which must have executed seq operations before this one begins; nil: none
	seq     uint64
	block   *block      // what is allocated or freed
	plan    *plan       // what is launched
	group   *group      // what is to be done together with other ranks
	node    driver.Node // which it is, if it is no stream's operation but a node's
}

const chunkSize = 128

// A chunk is a part of a queue.
type chunk struct {
	ops  [chunkSize]operation
	next *chunk
}

// A queue holds a stream's operations in order. Who adds holds mu; one goroutine at a time takes, without mu: the two meet
// once a chunk. Chunks are used again, so that a queue makes no garbage.
type queue struct {
	mu   sync.Mutex
	last *chunk        // where the next operation goes, unless it begins a chunk
	tail atomic.Uint64 // operations added

	head  atomic.Uint64 // operations taken
	first *chunk        // where the oldest operation is, or was; set once by who adds, then the taker's
	pos   int           // its index there; the taker's

	freeMu sync.Mutex
	free   *chunk
}

// slot returns where the next operation goes, which the caller must add. The caller holds mu.
func (q *queue) slot(c code) *operation {
	i := q.tail.Load() % chunkSize
	if i == 0 {
		q.grow()
	}
	o := &q.last.ops[i]
	o.code = c
	return o
}

// grow adds a chunk.
func (q *queue) grow() {
	q.freeMu.Lock()
	k := q.free
	if k != nil {
		q.free, k.next = k.next, nil
	}
	q.freeMu.Unlock()
	if k == nil {
		k = new(chunk)
	}
	if q.last == nil {
		q.first = k // the taker looks when the first operation has been added
	} else {
		q.last.next = k
	}
	q.last = k
}

// add makes what slot returned part of the queue. The caller holds mu.
func (q *queue) add() { q.tail.Store(q.tail.Load() + 1) }

// peek returns the oldest operation, or nil.
func (q *queue) peek() *operation {
	if q.head.Load() == q.tail.Load() {
		return nil
	}
	if q.pos == chunkSize {
		k := q.first
		q.first, q.pos = k.next, 0
		q.freeMu.Lock()
		k.next, q.free = q.free, k
		q.freeMu.Unlock()
	}
	return &q.first.ops[q.pos]
}

// take removes the oldest operation, which is o.
func (q *queue) take(o *operation) {
	*o = operation{}
	q.pos++
	q.head.Store(q.head.Load() + 1)
}
