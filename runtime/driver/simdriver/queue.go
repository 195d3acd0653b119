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
	stride  uint64 // stride of a strided fill
	pattern uint32
	dst     driver.Ptr
	src     driver.Ptr
	to      *device        // device of dst in a copy between devices; device that reads an awaited value
	from    *device        // device of src; nil: the stream's device
	n       uint64         // elements of a fill, marks of a timer record, a value, or bytes
	host    unsafe.Pointer // host side of a copy, in place of src or dst
	fail    error          // the error to fail with
	call    *call          // a kernel call
	event   *event         // the event to wait for, or the timer to record
	record  uint64         // number of the timer's record
	source  *stream        // stream that must have executed seq operations first; nil: none
	seq     uint64
	block   *block      // the block to allocate or free
	plan    *plan       // the plan to launch
	group   *group      // operations to do together with other ranks
	node    driver.Node // the node, if it is a node's operation
	cond    *condition  // the condition that a test sets or a conditional node has
	body    *plan       // the plan of a conditional node's body
}

const chunkSize = 128

// A chunk is a part of a queue.
type chunk struct {
	ops  [chunkSize]operation
	next *chunk
}

// A queue holds a stream's operations in order. A goroutine that adds holds mu. One goroutine at a
// time takes, without mu; the two synchronize once per chunk. Chunks are used again, so a queue
// does not allocate once it has grown.
type queue struct {
	mu   sync.Mutex
	last *chunk        // the chunk of the next operation, unless it begins a new one
	tail atomic.Uint64 // operations added

	head  atomic.Uint64 // operations taken
	first *chunk        // chunk of the oldest operation; after the first chunk only the taker sets it
	pos   int           // index of the oldest operation in first; only for the taker

	freeMu sync.Mutex
	free   *chunk
}

// slot returns the place of the next operation. The caller fills it in and calls add. The caller
// holds mu.
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
		q.first = k // the taker reads first after the first add
	} else {
		q.last.next = k
	}
	q.last = k
}

// add adds the operation in the place that slot returned. The caller holds mu.
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

// take removes o, the oldest operation.
func (q *queue) take(o *operation) {
	*o = operation{}
	q.pos++
	q.head.Store(q.head.Load() + 1)
}
