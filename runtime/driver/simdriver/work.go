package simdriver

import (
	"runtime"
	"time"
)

// spins is the number of times that a stream without operations, or one that waits for a value,
// yields before it sleeps. Waking it costs the submitter more than the rest of the call, and
// operations often follow each other quickly.
const spins = 32

// work is the function of the stream's goroutine. It returns when the stream is stopped.
func (s *stream) work() {
	defer func() { // deferred, because a kernel may call runtime.Goexit
		s.drop()
		close(s.ended)
	}()
	for !s.stopped.Load() {
		s.answer()
		o := s.peek()
		switch {
		case o == nil:
			s.rest()
		case s.dev.down.Load() != nil:
			s.drop()
		case s.held() && !o.begun():
			<-s.wake
		case !o.ready():
			s.await(o)
		case !s.meet(o):
			<-s.wake
		case s.early(o):
		default:
			s.executing.Store(true)
			s.execute(o)
			s.executing.Store(false)
		}
	}
}

// rest waits until the stream has an operation or is poked.
func (s *stream) rest() {
	for range spins {
		runtime.Gosched()
		if s.peek() != nil {
			return
		}
	}
	s.asleep.Store(true)
	if s.peek() == nil && !s.stopped.Load() { // from now on a goroutine that adds an operation sees that s.asleep is set, and wakes this one
		<-s.wake
	}
	s.asleep.Store(false)
}

// ready reports whether the operation waits neither for another stream nor for a value. An
// operation with an error in o.fail waits for nothing.
func (o *operation) ready() bool {
	if o.code == codeWaitValue {
		return o.fail != nil || o.reached()
	}
	return o.source == nil || o.fail != nil || o.source.done.Load() >= o.seq || o.event != nil && o.event.passed(o.record, o.n)
}

// begun reports whether the operation is a group that has begun. Such a group continues even if the
// stream is stalled, because other ranks wait for it.
func (o *operation) begun() bool { return o.group != nil && o.group.begun }

// meet begins the group of o, if o has one. It reports whether o can execute now: o has no group,
// an error in o.fail, or a group that is over. Otherwise the stream is poked when the group is
// over.
func (s *stream) meet(o *operation) bool {
	g := o.group
	if g == nil || o.fail != nil {
		return true
	}
	if !g.begun {
		g.start()
	}
	return g.over.Load()
}

// await waits until o may be ready, or the stream is poked.
func (s *stream) await(o *operation) {
	if o.code == codeWaitValue {
		s.awaitValue(o)
		return
	}
	src := o.source
	if n := s.head.Load() + 1; s.enlisted != n {
		s.enlisted = n
		src.waitersMu.Lock()
		src.waiters = append(src.waiters, waiter{s, o.seq})
		src.waiting.Store(int32(len(src.waiters)))
		src.waitersMu.Unlock()
		if o.ready() { // src may have executed its operations before it saw the new waiter
			return
		}
	}
	<-s.wake
}

// early reports whether the latency of o is not over yet. In that case it first waits until the
// latency is over or the stream is poked. The caller must then check again whether o can execute.
// The latency of a group ends early when its rank leaves the communicator.
func (s *stream) early(o *operation) bool {
	delay := time.Duration(s.dev.d.delays[o.code].Load())
	if delay <= 0 {
		return false
	}
	if o.group != nil && o.group.cut.Load() {
		s.due = time.Time{}
		return false
	}
	if s.due.IsZero() {
		s.due = time.Now().Add(delay)
	}
	left := time.Until(s.due)
	if left <= 0 {
		s.due = time.Time{}
		return false
	}
	if s.timer == nil {
		s.timer = time.NewTimer(left)
	} else {
		s.timer.Reset(left)
	}
	select {
	case <-s.timer.C:
	case <-s.wake:
		s.timer.Stop()
	}
	return true
}

// execute executes o, the stream's oldest operation.
func (s *stream) execute(o *operation) {
	v := s.dev
	err := o.fail
	if err == nil {
		err = s.perform(o)
	}
	s.tell(o, err)
	if err != nil {
		s.lose(err)
		s.drop()
		return
	}
	if o.code == codeRecord && o.event != nil {
		o.event.mark(o.record)
	}
	s.discard(o)
	if v.down.Load() != nil {
		return // the device was lost or closed, so the events after this operation never complete
	}
	// This goroutine must not touch data that the streams of a device share: the race detector
	// would see an order between the streams.
	s.done.Store(s.head.Load())
	if s.waiting.Load() > 0 {
		s.release()
	}
}

// tell calls Config.OnExecute, if it is set, for an operation that has executed or failed.
func (s *stream) tell(o *operation, err error) {
	f := s.dev.d.executed
	if f == nil {
		return
	}
	e := Executed{Device: s.dev.index, Stream: s.id, Seq: s.head.Load() + 1, Op: ops[o.code], Node: o.node, Priority: s.priority, Err: err}
	if o.call != nil {
		e.Kernel = o.call.f.name
	}
	s.away(1)
	defer s.away(-1)
	f(e)
}

// away adds n to the number of goroutines in code of the program. away hides the addition from the
// race detector, which would otherwise see an order between the nodes of a graph.
func (s *stream) away(n int32) {
	hush()
	s.outside.Add(n)
	unhush()
}

// lose makes the device lost because an operation failed, unless the stream is stopped.
func (s *stream) lose(err error) {
	if !s.stopped.Load() {
		s.dev.lose(err)
	}
}

// release wakes the streams that waited for operations that are complete now.
func (s *stream) release() {
	s.waitersMu.Lock()
	defer s.waitersMu.Unlock()
	done, left := s.done.Load(), s.waiters[:0]
	for _, w := range s.waiters {
		if w.seq <= done {
			w.stream.poke()
		} else {
			left = append(left, w)
		}
	}
	clear(s.waiters[len(left):])
	s.waiters = left
	s.waiting.Store(int32(len(left)))
}

// alert wakes the streams that wait for operations of this stream.
func (s *stream) alert() {
	s.waitersMu.Lock()
	defer s.waitersMu.Unlock()
	for _, w := range s.waiters {
		w.stream.poke()
	}
}

// discard removes o, the oldest operation. It has executed, or never will.
func (s *stream) discard(o *operation) {
	switch o.code {
	case codeStreamWait:
		o.event.waits.Add(-1)
	case codeLaunch:
		s.calls.put(o.call)
	case codeFreeAsync:
		o.block.end()
	case codeLaunchGraph:
		o.plan.end(o)
	case codeCollect:
		o.group.discard()
	}
	s.take(o)
}

// drop removes all operations without executing them.
func (s *stream) drop() {
	for o := s.peek(); o != nil; o = s.peek() {
		s.discard(o)
	}
}
