package simdriver

import (
	"runtime"
	"slices"
)

// A question asks what the oldest operation of a stream waits for, and how many of the stream's
// operations wait for an event. Only the goroutine that executes the stream may read its
// operations.
type question struct {
	event *event
	awaited
	answered chan struct{} // closed when awaited is set
}

// An awaited is the answer to a question.
type awaited struct {
	source *stream // the stream that the oldest operation waits for; nil if none
	value  bool    // the oldest operation waits for a value
	waits  int32   // number of operations that wait for question.event
}

// look answers the question. The caller must be the goroutine that takes the stream's operations.
func (q *question) look(s *stream) {
	if o := s.peek(); o != nil && !o.ready() {
		q.source, q.value = o.source, o.code == codeWaitValue
	}
	if q.event != nil {
		q.waits = s.waitsFor(q.event)
	}
	close(q.answered)
}

// waitsFor counts the operations that wait for an event. The caller must be the goroutine that
// takes the stream's operations.
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

// ask returns what the stream waits for, and how many of its operations wait for e, which may be
// nil. While an operation is executing, the answer is unknown and ask returns false.
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
	for !s.question.CompareAndSwap(nil, q) { // the stream still has to answer another question
		runtime.Gosched()
	}
	for {
		s.poke()
		select {
		case <-q.answered:
			return q.awaited, true
		case <-s.ended:
			s.question.CompareAndSwap(q, nil)
			return a, true // the stream is empty
		default:
		}
		if s.executing.Load() && s.question.CompareAndSwap(q, nil) {
			return a, false
		}
		runtime.Gosched()
	}
}

// answer answers the stream's question, if there is one. The stream's goroutine calls it between
// operations.
func (s *stream) answer() {
	if s.question.Load() == nil {
		return
	}
	if q := s.question.Swap(nil); q != nil {
		q.look(s)
	}
}

// doomed reports whether the stream waits for work that can never execute. Such work is in a
// destroyed stream, or on a device that is lost or closed.
func (s *stream) doomed() bool {
	var chain []*stream // each stream in the chain waits for the next
	for at := s; at.dev.down.Load() == nil && !at.stopped.Load() || at == s; {
		a, ok := at.ask(nil)
		if !ok || a.source == nil || len(chain) == 100 { // at most 100, because answers of running streams may form a circle
			return false
		}
		chain = append(chain, at)
		at = a.source
	}
	// An answer may be out of date: since chain[i] answered, chain[i+1] may have executed the work
	// that chain[i] waited for. The last stream can never continue. So ask again, from the end of
	// the chain, whether each stream still waits for the next.
	for i := len(chain) - 2; i >= 0; i-- {
		if a, ok := chain[i].ask(nil); !ok || a.source != chain[i+1] {
			return false
		}
	}
	return true
}

// awaitsOthers reports whether the stream waits, directly or through other streams, for a value in
// memory, for another process's event, or for work of another device that is lost.
func (s *stream) awaitsOthers() bool {
	at := s
	for range 100 { // at most 100, because answers of running streams may form a circle
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

// awaited returns the number of operations that wait for the event, in streams that may still
// execute them.
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
	if unknown { // the operations that were not found may be in a stream that gave no answer
		n += max(all-known, 0)
	}
	return n
}
