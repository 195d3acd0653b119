package simdriver

import (
	"runtime"
	"slices"
)

// A question is what somebody wants to know of a stream's work, which is its goroutine's to look at: what the oldest operation
// waits for, and how many operations wait for an event.
type question struct {
	event *event
	awaited
	answered chan struct{} // closed when awaited is known
}

// An awaited is what a stream waits for.
type awaited struct {
	source *stream // in which the oldest operation waits for another one, or nil
	value  bool    // the oldest operation waits for a value
	waits  int32   // how many operations wait for the event that was asked about
}

// look answers the question. The caller takes the stream's operations.
func (q *question) look(s *stream) {
	if o := s.peek(); o != nil && !o.ready() {
		q.source, q.value = o.source, o.code == codeWaitValue
	}
	if q.event != nil {
		q.waits = s.waitsFor(q.event)
	}
	close(q.answered)
}

// waitsFor counts the operations that wait for an event. The caller takes the stream's operations.
func (s *stream) waitsFor(e *event) (n int32) {
	if s.peek() == nil {
		return 0
	}
	for k, i, left := s.first, s.pos, s.tail.Load()-s.head.Load(); left > 0; left-- {
		if i == chunkSize {
			k, i = k.next, 0
		}
		if o := &k.ops[i]; o.code == codeStreamWait && o.event == e {
			n++
		}
		i++
	}
	return n
}

// ask returns what the stream waits for, also for e, which may be nil. It reports false if an operation is executing, and nobody can say.
func (s *stream) ask(e *event) (a awaited, ok bool) {
	if s.pending() == 0 {
		return a, true
	}
	q := &question{event: e, answered: make(chan struct{})}
	if d := s.dev.d; d.manual {
		d.steps.mu.Lock()
		defer d.steps.mu.Unlock()
		q.look(s)
		return q.awaited, true
	}
	for !s.question.CompareAndSwap(nil, q) { // somebody else's, about to be answered or withdrawn
		runtime.Gosched()
	}
	for {
		s.poke()
		select {
		case <-q.answered:
			return q.awaited, true
		case <-s.ended:
			s.question.CompareAndSwap(q, nil)
			return a, true // nothing is left
		default:
		}
		if s.executing.Load() && s.question.CompareAndSwap(q, nil) {
			return a, false
		}
		runtime.Gosched()
	}
}

// answer answers the question, if there is one. The stream's goroutine calls it between operations.
func (s *stream) answer() {
	if s.question.Load() == nil {
		return
	}
	if q := s.question.Swap(nil); q != nil {
		q.look(s)
	}
}

// doomed reports whether the stream waits for what cannot come: a record in a stream that is no more, or on a device that is
// lost or closed.
func (s *stream) doomed() bool {
	var chain []*stream // each waits for the next
	for at := s; at.dev.down.Load() == nil && !at.stopped.Load() || at == s; {
		a, ok := at.ask(nil)
		if !ok || a.source == nil || len(chain) == 100 { // streams that run on may seem to wait in a circle
			return false
		}
		chain = append(chain, at)
		at = a.source
	}
	// A stream may have waited for an early operation of the next one, which has done that since. The last one is stuck for good, and
	// so is each one that still waits for the one behind it.
	for i := len(chain) - 2; i >= 0; i-- {
		if a, ok := chain[i].ask(nil); !ok || a.source != chain[i+1] {
			return false
		}
	}
	return true
}

// awaitsOthers reports whether the stream waits for a value, for another process's event, for work of a lost device, or for a
// stream of which one of these is true.
func (s *stream) awaitsOthers() bool {
	at := s
	for range 100 { // streams that run on may seem to wait in a circle
		a, ok := at.ask(nil)
		if !ok || a.value || a.source == nil {
			return ok && a.value
		}
		if of := a.source.dev; of.d != s.dev.d || of != s.dev && of.down.Load() != nil {
			return true
		}
		at = a.source
	}
	return false
}

// awaited returns how many operations wait for the event, in streams that may ever come to them.
func (e *event) awaited() (n int32) {
	all := e.waits.Load()
	if all == 0 {
		return 0
	}
	d := e.dev.d
	d.mu.Lock()
	streams := slices.Clone(d.order)
	d.mu.Unlock()
	known, unknown := int32(0), false
	for _, s := range streams {
		waits, live := int32(0), s.dev.down.Load() == nil
		if a, ok := s.ask(e); ok {
			waits = a.waits
		} else if live {
			unknown = true
		}
		known += waits
		if live && waits > 0 && !s.doomed() {
			n += waits
		}
	}
	if unknown { // the others may be in a stream that is busy
		n += max(all-known, 0)
	}
	return n
}
