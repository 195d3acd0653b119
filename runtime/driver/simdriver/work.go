package simdriver

import (
	"runtime"
	"time"
)

// spins is how often a stream without work yields before it sleeps. To wake it costs the submitter more than the rest of
// the call, and work often comes in quick succession.
const spins = 32

// work is the stream's goroutine. It ends when the stream is destroyed.
func (s *stream) work() {
	defer func() { // a kernel may end the goroutine
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

// rest waits for work.
func (s *stream) rest() {
	for range spins {
		runtime.Gosched()
		if s.peek() != nil {
			return
		}
	}
	s.asleep.Store(true)
	if s.peek() == nil && !s.stopped.Load() { // who adds now sees asleep
		<-s.wake
	}
	s.asleep.Store(false)
}

// ready reports whether the operation waits for nothing in another stream, and for no value.
func (o *operation) ready() bool {
	if o.code == codeWaitValue {
		return o.fail != nil || o.reached()
	}
	return o.source == nil || o.fail != nil || o.source.done.Load() >= o.seq || o.event != nil && o.event.passed(o.record, o.n)
}

// begun reports whether the operation is one that goes on although the stream is held, for it waits for other ranks.
func (o *operation) begun() bool { return o.group != nil && o.group.begun }

// meet begins o, if it is to meet operations of other ranks, and reports whether it has: else the stream is poked when it has.
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

// await waits until o may be ready, or something else has happened.
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
		if o.ready() { // it may have been before src saw the waiter
			return
		}
	}
	<-s.wake
}

// early waits until o has taken its time, or something else has happened; then it is true.
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
		return // too late: the event of this operation never completes
	}
	// What streams of the device share must stay untouched here: the race detector would take it for an order.
	s.done.Store(s.head.Load())
	if s.waiting.Load() > 0 {
		s.release()
	}
}

// tell tells the program that o has executed, or has failed.
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

// away says that n goroutines more are in the program's code. Nodes of a graph that nothing orders must not look ordered for that.
func (s *stream) away(n int32) {
	hush()
	s.outside.Add(n)
	unhush()
}

// lose takes the device away because of what the stream executed, unless that is left over from before the device was closed.
func (s *stream) lose(err error) {
	if !s.stopped.Load() {
		s.dev.lose(err)
	}
}

// release wakes the streams that waited for what is done now.
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

// alert makes the streams that wait for this one look again.
func (s *stream) alert() {
	s.waitersMu.Lock()
	defer s.waitersMu.Unlock()
	for _, w := range s.waiters {
		w.stream.poke()
	}
}

// discard takes o, the oldest operation, away. It has executed, or will not.
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

// drop takes all operations away.
func (s *stream) drop() {
	for o := s.peek(); o != nil; o = s.peek() {
		s.discard(o)
	}
}
