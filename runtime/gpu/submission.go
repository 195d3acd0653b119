package gpu

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Point is a value of a semaphore.
type Point struct {
	Semaphore *Semaphore
	Value     uint64
}

// At returns the point of the semaphore at a value.
func (s *Semaphore) At(value uint64) Point { return Point{s, value} }

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
	opFill8
	opCopy
	opUpload
	opDownload
	opPrefetch
	opDispatch
	opAlloca
	opDealloca
	opExecute
	opCollect
	opNothing // in command buffers only, as is:
	opTime
	opHost
	opNotify
	opStream
)

var opNames = [...]string{"barrier", "fill", "fill", "copy", "update", "download", "prefetch", "dispatch", "alloca", "dealloca", "execute", "collective", "nothing", "timestamp", "host call", "notify", "transfer"}

// warm are the operations that do not use what comes last in their records.
const warm = 1<<opBarrier | 1<<opFill | 1<<opFill8 | 1<<opCopy | 1<<opAlloca | 1<<opDealloca

// cold reports whether an operation uses what comes last in its record.
func (op opcode) cold() bool { return warm>>op&1 == 0 }

// onHost reports whether an operation is a call of a function.
func (op opcode) onHost() bool { return op >= opHost }

// A submission is one operation from the call until its signals. Records are recycled. What every operation uses comes
// first and lies together: often one processor parks a submission and another one issues it.
type submission struct {
	q      *Queue
	next   *submission
	event  *event // to be recorded behind the work, or behind what comes after it
	err    atomic.Pointer[failure]
	state  atomic.Int32 // waits that nobody has issued yet, and one while the caller registers them
	op     opcode
	hostly bool // waits must be reached, not only issued: for host calls, and where two drivers meet
	// gathered says that deps have been found, near that what the stream orders anyway was left out of them; passing that the
	// submission has no work, and is done when its only dep is.
	gathered, near, passing bool
	late                    bool   // some of the deps are of barriers, which are done after the work that they are behind
	fed                     bool   // it comes from the front of the backlog
	recorded                bool   // the event has been recorded; under the ring's mu while the submission is in the ring
	cold                    bool   // what comes last in the record may be in use
	seq                     uint64 // once issued

	waits   []Point
	signals []Point
	wait1   [1]Point // where waits and signals begin
	signal1 [1]Point

	before, after *submission // while it is parked, or a host call that is running,
	since         time.Time   // since when
	tp            timepoint   // the first of the timepoints given to semaphores

	// What to do; which fields count depends on op.
	dst, src address
	n        uint64
	pattern  uint32
	pattern2 uint32     // the other half of a pattern of 8 bytes
	width    int        // or, of a prefetch, the kind of memory
	keep     [2]*Buffer // held until the work is done

	tps     []*timepoint // given to semaphores; all but the first go back to the pool with the record
	deps    []dep        // what the work must come after; those without a timeline need nothing
	follows []mark       // what the work comes after on other timelines
	held    []*event     // of others, which must not be recorded anew before the work is done

	// What fills, copies, barriers and memory from pools do not use.
	host   []byte        // to be filled by a download
	stage  *stageBlock   // pinned memory of an update, a download or a piece of a transfer
	launch driver.Launch // Args point into args
	args   []uint64
	bound  []boundArg // arguments that are buffers
	kernel *Kernel
	fn     func() error

	recording  *CommandBuffer // of which a part is executed, with
	part       int
	binds      []Range
	takesTurn  bool       // it may record the events of timestamps only in a turn of its own:
	turn       *Semaphore // reached when that is over, and
	turnBefore *Semaphore // the one before it, if there was one

	group    []groupOp       // collective operations, with
	ctx      context.Context // if that can end, and
	behind   *submission     // those of the same channel that were submitted later; under its mu, as is:
	arrived  bool            // it waits for nothing any more
	issuedAt time.Time
}

func newSubmission(q *Queue) *submission {
	s := &submission{q: q}
	s.waits, s.signals = s.wait1[:0], s.signal1[:0]
	return s
}

// A dep is a place in a timeline that work must come after.
type dep struct {
	mark
	event *event // behind it, held, once it has been looked for; nil if there is no need of one
}

// gather finds what the work must come after. If a wait has failed it returns why, and for unknown that somebody has still
// to issue what a wait is for; then there are no deps. What the work's own stream does before it is left out, unless it is a
// barrier, which may have no work: whoever issues it looks that nothing was given up since.
func (s *submission) gather() (resolution, error) {
	s.late, s.near = false, false
	for i := range s.waits {
		w := &s.waits[i]
		if now := w.Semaphore.value.Load(); w.Value <= now && now != failedValue {
			continue
		}
		how, p := w.Semaphore.next(w.Value)
		switch how {
		case failed:
			s.letGoAll()
			return failed, w.Semaphore.failed()
		case unknown:
			s.letGoAll()
			return unknown, nil
		case ordered:
			s.late = s.late || p.late
			if p.tl == s.q.tl && s.op != opBarrier && losses.Load() == 0 {
				s.near = true
			} else {
				s.addDep(mark{p.tl, p.seq})
			}
		}
	}
	s.gathered = true
	return ordered, nil
}

// gatherAll is gather for who issues the submission. It returns an error, and what becomes of that, if there are no deps.
func (s *submission) gatherAll() (outcome, error) {
	switch how, err := s.gather(); how {
	case failed:
		return notIssued, err
	case unknown:
		return early, errEarly
	}
	return issuedWork, nil
}

// waited reports whether all that the submission waits for is over.
func (s *submission) waited() bool {
	for i := range s.waits {
		if w := &s.waits[i]; w.Semaphore.value.Load() < w.Value {
			return false
		}
	}
	return true
}

// addDep adds a place, and keeps, of those on one timeline, the last.
func (s *submission) addDep(m mark) {
	for i := range s.deps {
		if d := &s.deps[i]; d.tl == m.tl {
			if d.seq < m.seq {
				d.seq = m.seq
				if d.event != nil { // it is behind less
					d.event.drop()
					d.event = nil
				}
			}
			return
		}
	}
	s.deps = append(s.deps, dep{mark: m})
}

// letGo says that a dep needs nothing.
func (s *submission) letGo(i int) {
	d := &s.deps[i]
	d.tl = nil
	if d.event != nil {
		d.event.drop()
		d.event = nil
	}
}

// letGoAll takes all deps away.
func (s *submission) letGoAll() {
	if s.gathered = false; len(s.deps) > 0 {
		s.letGoDeps()
	}
}

func (s *submission) letGoDeps() {
	for i := range s.deps {
		if s.deps[i].tl != nil {
			s.letGo(i)
		}
	}
	s.deps = s.deps[:0]
}

// resolved is called when a timepoint of a parked submission is released. It reports whether the submission is ready, and
// returns timepoints that are released because it is done.
func (s *submission) resolved(t *timepoint) (ready bool, more *timepoint) {
	if t.err != nil {
		s.err.CompareAndSwap(nil, &failure{t.err})
	}
	if s.state.Add(-1) > 0 {
		return false, nil
	}
	if s.passing {
		return false, s.q.passed(s)
	}
	return true, nil
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
	s.takeBack()
	if s.state.Add(-1) == 0 {
		if s.passing {
			release(s.q.passed(s))
			return
		}
		s.q.dev.ready(s)
	}
}

// takeBack takes the timepoints back that have not been released.
func (s *submission) takeBack() {
	for _, t := range s.tps {
		if t.on.cancel(t) {
			s.state.Add(-1)
		}
	}
}

// reset makes a record of a submission that is over ready to be used again.
func (s *submission) reset() {
	for i := range s.waits { // mostly there is one, and to clear many at a time takes a call
		s.waits[i].Semaphore = nil
	}
	for i := range s.signals {
		s.signals[i].Semaphore = nil
	}
	s.waits, s.signals = s.waits[:0], s.signals[:0]
	if len(s.follows)+len(s.held)+len(s.tps) > 0 {
		clear(s.follows)
		clear(s.held)
		for _, t := range s.tps {
			s.putTimepoint(t)
		}
		clear(s.tps)
		s.follows, s.held, s.tps = s.follows[:0], s.held[:0], s.tps[:0]
	}
	if s.cold {
		s.resetCold()
	}
	if s.err.Load() != nil {
		s.err.Store(nil)
	}
	s.op, s.hostly, s.passing, s.late, s.fed, s.recorded, s.keep, s.seq = opBarrier, false, false, false, false, false, [2]*Buffer{}, 0
	s.dst, s.src = address{}, address{}
}

func (s *submission) resetCold() {
	ptrs := s.launch.Args
	clear(ptrs)
	clear(s.bound)
	clear(s.binds)
	s.launch, s.args, s.kernel, s.bound = driver.Launch{Args: ptrs[:0]}, s.args[:0], nil, s.bound[:0]
	s.host, s.stage, s.fn = nil, nil, nil
	s.recording, s.part, s.binds, s.takesTurn = nil, 0, s.binds[:0], false
	s.turn, s.turnBefore = nil, nil
	clear(s.group)
	s.group, s.ctx, s.behind, s.arrived = s.group[:0], nil, nil, false
	s.cold = false
}

// timepoint takes a timepoint for the submission.
func (s *submission) timepoint() *timepoint {
	t := &s.tp
	if len(s.tps) > 0 {
		t = s.q.dev.timepoints.get()
	}
	t.sub, t.index = s, -1
	return t
}

func (s *submission) putTimepoint(t *timepoint) {
	if t == &s.tp {
		*t = timepoint{}
	} else {
		s.q.dev.timepoints.put(t)
	}
}

// A boundArg is an argument of a kernel that is the address of a buffer's range.
type boundArg struct {
	word int // in args
	at   address
	held *Buffer
}

// setArgs copies kernel arguments: each is laid on a word of its own and pointed to. Those that are nil are left for later.
func (s *submission) setArgs(sizes []int, data []unsafe.Pointer) {
	s.makeArgs(wordOf(sizes, len(sizes)), len(sizes))
	at := 0
	for i, n := range sizes {
		p := unsafe.Pointer(&s.args[at])
		if data[i] != nil {
			copy(unsafe.Slice((*byte)(p), n), unsafe.Slice((*byte)(data[i]), n))
		}
		s.launch.Args[i] = p
		at += (n + 7) / 8
	}
}

// makeArgs makes room for so many words of arguments, and so many pointers to them.
func (s *submission) makeArgs(words, n int) {
	if cap(s.args) < words {
		s.args = make([]uint64, words)
	}
	s.args = s.args[:words]
	if cap(s.launch.Args) < n {
		s.launch.Args = make([]unsafe.Pointer, n)
	}
	s.launch.Args = s.launch.Args[:n]
}
