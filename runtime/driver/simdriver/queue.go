package simdriver

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// An operation is one operation in a stream.
type operation struct {
	code    code
	width   uint8
	stride  uint64 // of a strided fill, in bytes
	pattern uint32
	dst     driver.Ptr
	src     driver.Ptr
	to      *device        // device of dst in a copy between devices; the waiting device for a value
	from    *device        // device of src in a copy between devices; nil means the stream's device
	n       uint64         // elements of a fill, marks of a timer record, a value, a launch number, or a number of bytes
	host    unsafe.Pointer // the host's memory of a copy, in place of src or dst
	fail    error          // if not nil, the operation fails with this error
	call    *call          // the kernel to call
	event   *event         // the event to wait for, or the timer to record
	record  uint64         // number of the timer record
	source  *stream        // stream that must have executed seq operations before; nil if none
	seq     uint64
	block   *block      // the block to allocate or free
	plan    *plan       // the plan to launch
	group   *group      // the group of operations with other ranks
	node    driver.Node // the graph's node, if the operation is a node's
	cond    *condition  // the condition of a test node or a conditional node
	body    *plan       // the plan of a conditional node's body
}

const chunkSize = 128

// A chunk is a piece of a queue.
type chunk struct {
	ops  [chunkSize]operation
	next *chunk
}

// A queue holds the operations of a stream in order. Goroutines that add operations hold mu. Only
// one goroutine at a time takes operations. It does not hold mu, and locks freeMu once per chunk.
// Chunks are used again, so a queue that has grown does not allocate.
type queue struct {
	mu   sync.Mutex
	last *chunk        // chunk of the newest operation
	tail atomic.Uint64 // number of operations added

	head  atomic.Uint64 // number of operations taken
	first *chunk        // chunk of the oldest operation; after the first chunk only the taker sets it
	pos   int           // index of the oldest operation in first; only for the taker

	freeMu sync.Mutex
	free   *chunk
}

// slot returns the place for the next operation. The caller fills it in and then calls add. The
// caller holds mu.
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
		q.first = k // no goroutine takes before the first add
	} else {
		q.last.next = k
	}
	q.last = k
}

// add adds the operation that is in the place of slot. The caller holds mu.
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
