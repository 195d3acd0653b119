package simdriver

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// An operation is one piece of work of a stream, or the work of a graph's node.
type operation struct {
	code    code
	width   uint8
	stride  uint64 // bytes from one element of a strided fill to the next, or the highest value of a test
	pattern uint32
	dst     driver.Ptr
	src     driver.Ptr
	to      *device        // device of dst in a copy between devices; for a value, the stream's device
	from    *device        // device of src in a copy between devices; nil if to is nil
	n       uint64         // elements of a fill, marks of a timer record, a value, a launch number, the lowest value of a test, or a number of bytes
	host    unsafe.Pointer // host address of an upload or download, in place of src or dst
	fail    error          // if not nil, the operation fails with this error
	call    *call          // the kernel to call
	event   *event         // the event to wait for, or the timer to record
	record  uint64         // number of the timer record
	source  *stream        // the operation waits until the stream source has executed seq operations; nil if it waits for no stream
	seq     uint64
	block   *block      // the block to allocate or free
	plan    *plan       // the plan to launch
	group   *group      // the group of a Collect
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
// one goroutine at a time, the taker, takes operations. It does not hold mu, and locks freeMu once
// per chunk. Chunks are reused.
type queue struct {
	mu   sync.Mutex
	last *chunk        // chunk of the newest operation
	tail atomic.Uint64 // number of operations added

	head  atomic.Uint64 // number of operations taken
	first *chunk        // chunk of the oldest operation; grow sets it once, and then only the taker sets it
	pos   int           // index of the oldest operation in the chunk first; only for the taker

	freeMu sync.Mutex
	free   *chunk // list of unused chunks; protected by freeMu
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

// add adds the operation in the place that slot returned. The caller holds mu.
func (q *queue) add() { q.tail.Store(q.tail.Load() + 1) }

// peek returns the oldest operation, or nil. Only the taker may call it.
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

// take removes o, the oldest operation. Only the taker may call it.
func (q *queue) take(o *operation) {
	*o = operation{}
	q.pos++
	q.head.Store(q.head.Load() + 1)
}
