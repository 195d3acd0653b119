package gpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Point is a value of a semaphore.
type Point struct {
	Semaphore *Semaphore
	Value     uint64
}

// Order says what an operation waits for and what it signals. The lists are copied by the call. Signals happen when the
// work is done, in the order of the list.
type Order struct {
	Wait   []Point
	Signal []Point
}

// An opcode is a kind of operation.
type opcode uint8

const (
	opBarrier opcode = iota
	opFill
	opCopy
	opUpload
	opDownload
	opDispatch
	opHost
)

var opNames = [...]string{"barrier", "fill", "copy", "update", "download", "dispatch", "host call"}

// A submission is one operation from the call until its signals. Records are recycled.
type submission struct {
	q  *Queue
	op opcode

	waits   []Point
	signals []Point
	state   atomic.Int32 // waits that nobody has issued yet, and one while the caller registers them
	err     atomic.Pointer[failure]
	points  []*Semaphore // of tps
	tps     []*timepoint // given to semaphores; they go back to the pool with the record
	deps    []point      // of the issue under way
	follows []mark       // what the work comes after on other timelines
	hostly  bool         // waits must be reached, not only issued: for host calls, and where two drivers meet

	// What to do; which fields count depends on op.
	dst, src driver.Ptr
	n        uint64
	pattern  uint32
	width    int
	host     []byte        // to be filled by a download
	stage    *stageBlock   // pinned memory of an update or a download
	launch   driver.Launch // Args point into args
	args     []uint64
	fn       func() error
	keep     [2]*Buffer // held until the work is done
	kernel   *Kernel

	// Once issued:
	seq   uint64
	event *event
	held  []*event // of others, where the driver cannot record an event anew with waits pending
	next  *submission

	before, after *submission // while it is parked
}

// resolved is called when a timepoint of a parked submission is released.
func (s *submission) resolved(t *timepoint) {
	if t.err != nil {
		s.err.CompareAndSwap(nil, &failure{t.err})
	}
	if s.state.Add(-1) == 0 {
		s.q.dev.ready(s)
	}
}

// grab adds a count to a parked submission, so that it stays what it is; it reports false if it is ready. The caller holds
// the device's mu and has found it in the list.
func (s *submission) grab() bool {
	for {
		n := s.state.Load()
		if n == 0 {
			return false
		}
		if s.state.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// cancel makes a parked submission that has been grabbed fail.
func (s *submission) cancel(err error) {
	s.err.CompareAndSwap(nil, &failure{err})
	for i, t := range s.tps {
		if s.points[i].cancel(t) {
			s.state.Add(-1)
		}
	}
	if s.state.Add(-1) == 0 {
		s.q.dev.ready(s)
	}
}

func (s *submission) reset() {
	clear(s.waits)
	clear(s.signals)
	clear(s.deps)
	clear(s.follows)
	clear(s.held)
	for _, t := range s.tps {
		s.q.dev.timepoints.put(t)
	}
	clear(s.tps)
	clear(s.points)
	args, ptrs := s.args[:0], s.launch.Args
	clear(ptrs)
	s.waits, s.signals, s.deps, s.held = s.waits[:0], s.signals[:0], s.deps[:0], s.held[:0]
	s.follows = s.follows[:0]
	s.tps, s.points, s.args = s.tps[:0], s.points[:0], args
	s.op, s.hostly, s.host, s.stage, s.fn, s.keep, s.kernel = opBarrier, false, nil, nil, nil, [2]*Buffer{}, nil
	s.err.Store(nil)
	s.seq, s.event, s.next = 0, nil, nil
	s.launch = driver.Launch{Args: ptrs[:0]}
}

// setArgs copies kernel arguments: each is laid on a word of its own and pointed to.
func (s *submission) setArgs(sizes []int, data []unsafe.Pointer) {
	words := 0
	for _, n := range sizes {
		words += (n + 7) / 8
	}
	if cap(s.args) < words {
		s.args = make([]uint64, words)
	}
	s.args = s.args[:words]
	if cap(s.launch.Args) < len(sizes) {
		s.launch.Args = make([]unsafe.Pointer, len(sizes))
	}
	s.launch.Args = s.launch.Args[:len(sizes)]
	at := 0
	for i, n := range sizes {
		p := unsafe.Pointer(&s.args[at])
		copy(unsafe.Slice((*byte)(p), n), unsafe.Slice((*byte)(data[i]), n))
		s.launch.Args[i] = p
		at += (n + 7) / 8
	}
}
