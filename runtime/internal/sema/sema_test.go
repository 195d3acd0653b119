package sema

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A worker is a producer whose work completes when the test says so.
type worker struct {
	passed, wanted uint64
	asked          []PollSource
	onAsk          func(seq uint64) // called by PollFor
}

func (w *worker) Want(seq uint64)        { w.wanted = max(w.wanted, seq) }
func (w *worker) Passed(seq uint64) bool { return w.passed >= seq }

func (w *worker) PollFor(seq uint64, by PollSource) *wake.Policy {
	if w.asked = append(w.asked, by); w.onAsk != nil {
		w.onAsk(seq)
	}
	return nil
}

// A parked is a waiter for some timepoints. It logs when it is issued, handed over or done.
type parked struct {
	name string
	open int        // timepoints that have not been released
	here bool       // the signalling goroutine may issue the waiter
	more *Timepoint // if not nil, the waiter releases these timepoints instead of being issued
	log  *[]string
	err  error
}

func (p *parked) TimepointReleased(err error) (bool, *Timepoint) {
	if err != nil {
		p.err = err
	}
	if p.open--; p.open > 0 {
		return false, nil
	}
	if p.more != nil {
		*p.log = append(*p.log, p.name+" is done")
		return false, p.more
	}
	return true, nil
}

func (p *parked) IssueHere() bool {
	if p.here {
		*p.log = append(*p.log, p.name+" here")
	}
	return p.here
}

func (p *parked) HandOver(chain *Timepoint) {
	for t := chain; t != nil; t = t.Next() {
		*p.log = append(*p.log, t.Waiter().(*parked).name+" by "+p.name)
	}
}

// register registers a new timepoint of a waiter with a semaphore.
func register(t *testing.T, s *Semaphore, value uint64, w Waiter, until Until) *Timepoint {
	t.Helper()
	p := new(Timepoint)
	p.Init(w)
	if how := s.Register(value, p, until); how != Unknown {
		t.Fatalf("the wait for %d is %d", value, how)
	}
	return p
}

// TestRelease checks in which order a signal issues waiters itself, completes a barrier, hands the
// other waiters over, and calls functions.
func TestRelease(t *testing.T) {
	var s, other Semaphore
	var log []string
	waiter := func(name string, open int, here bool) *parked {
		return &parked{name: name, open: open, here: here, log: &log}
	}
	a, b, c, d, two := waiter("a", 1, false), waiter("b", 1, true), waiter("c", 1, true), waiter("d", 1, false), waiter("two", 2, true)
	s.OnReached(1, func(error) { log = append(log, "function") })
	register(t, &s, 1, two, UntilReached)
	for _, w := range []*parked{a, b, c} {
		register(t, &s, 1, w, UntilReached)
	}
	done := waiter("barrier", 1, false)
	register(t, &other, 1, d, UntilReached)
	register(t, &s, 1, done, UntilReachedLazy)
	released, err := other.Raise(1)
	if err != nil {
		t.Fatal(err)
	}
	done.more = released
	late := register(t, &s, 2, two, UntilReached)
	if err := s.Signal(1); err != nil {
		t.Fatal(err)
	}
	want := []string{"b here", "barrier is done", "a by a", "c by a", "d by a", "function"}
	if !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
	if !late.Cancel() || late.Cancel() || s.Waiting() != 0 {
		t.Errorf("a canceled timepoint is still registered, or can be canceled twice")
	}
}

// TestReleaseMany checks that many ready waiters are all handed over, in several groups.
func TestReleaseMany(t *testing.T) {
	var s Semaphore
	var log []string
	for range 2*handOver + 1 {
		register(t, &s, 1, &parked{name: "x", open: 1, log: &log}, UntilReached)
	}
	Release(s.Fail(io.EOF))
	if len(log) != 2*handOver+1 {
		t.Errorf("%d waiters were handed over", len(log))
	}
}

// TestFailure checks that a semaphore keeps its first failure. A wait that was registered before
// gets this failure, and so does a later wait, even for a value that was reached.
func TestFailure(t *testing.T) {
	var s Semaphore
	var log []string
	s.Init(1)
	w := &parked{name: "x", open: 1, log: &log}
	register(t, &s, 7, w, UntilIssued)
	Release(s.Fail(io.EOF))
	Release(s.Fail(io.ErrUnexpectedEOF))
	Release(s.Close())
	if w.err != io.EOF || s.Failed() != io.EOF {
		t.Errorf("the waiter fails with %v, the semaphore with %v", w.err, s.Failed())
	}
	if v, err := s.Query(); v != 1 || err != io.EOF {
		t.Errorf("Query = %d, %v", v, err)
	}
	if how, _ := s.Next(1, nil); how != Failed {
		t.Errorf("a wait for a reached value is %d", how)
	}
}

// TestPublish checks that Publish releases the waiters that need only issued work. The other
// waiters, except lazy ones, must cause polling: Publish reports that some are left, and Register
// calls the producer's Want.
func TestPublish(t *testing.T) {
	var s Semaphore
	var log []string
	w := new(worker)
	issued, reached := &parked{name: "issued", open: 1, log: &log}, &parked{name: "reached", open: 1, log: &log}
	register(t, &s, 2, issued, UntilIssued)
	register(t, &s, 2, reached, UntilReached)
	released, wanted := s.Publish(Signal{Value: 2, Producer: w, Seq: 5}, nil)
	if released == nil || released.Waiter() != issued || released.Next() != nil || !wanted {
		t.Fatalf("Publish released %+v and reports that others wait: %t", released, wanted)
	}
	if how, p := s.Next(1, nil); how != Ordered || p.Producer != w || p.Seq != 5 {
		t.Errorf("the wait for 1 is %d: %+v", how, p)
	}
	register(t, &s, 1, &parked{open: 1, log: &log}, UntilReachedLazy)
	if w.wanted != 0 {
		t.Errorf("%d is wanted for a lazy waiter", w.wanted)
	}
	register(t, &s, 1, &parked{open: 1, log: &log}, UntilReached)
	if w.wanted != 5 {
		t.Errorf("%d is wanted", w.wanted)
	}
	at := Signal{Value: 2, Producer: w, Seq: 5}
	released, err := s.Arrive(at, at)
	n := 0
	for p := released; p != nil; p = p.Next() {
		n++
	}
	if n != 3 || err != nil {
		t.Errorf("arriving releases %d timepoints, %v", n, err)
	}
	if _, err := s.Arrive(at, at); !errors.Is(err, ErrValue) {
		t.Errorf("arriving twice: %v", err)
	}
}

// TestJoin publishes signals of barriers that wait for two producers. Until Semaphore.Forget is
// called, Semaphore.Next must return the marks of both producers. When the first producer's work is
// done, the second producer must be polled, and OnReached must call Want of the second producer.
func TestJoin(t *testing.T) {
	var s Semaphore
	a, b := new(worker), new(worker)
	behind := []Mark{{a, 3}, {b, 4}}
	s.Publish(Signal{Value: 1, Producer: a, Seq: 3, ByBarrier: true}, behind)
	s.Publish(Signal{Value: 2, Producer: a, Seq: 3, ByBarrier: true}, behind)
	clear(behind) // Publish has copied the marks
	behind = []Mark{{a, 3}, {b, 4}}
	for value := range uint64(2) {
		var got []Mark
		if how, _ := s.Next(value+1, func(m Mark) { got = append(got, m) }); how != Ordered || !slices.Equal(got, behind) {
			t.Errorf("%d is behind %+v", value+1, got)
		}
	}
	a.passed = 3
	s.PollFor(1, ByWaiter)
	if len(a.asked) != 0 || len(b.asked) != 1 {
		t.Errorf("the producer that is done was polled for %v, the other for %v", a.asked, b.asked)
	}
	s.OnReached(2, func(error) {})
	if b.wanted != 4 {
		t.Errorf("%d is wanted", b.wanted)
	}
	s.Forget(1, behind)
	s.Forget(1, behind)
	var got []Mark
	s.Next(1, func(m Mark) { got = append(got, m) })
	if len(got) != 0 {
		t.Errorf("%+v are remembered", got)
	}
	s.Next(2, func(m Mark) { got = append(got, m) })
	if !slices.Equal(got, behind) {
		t.Errorf("2 is behind %+v after 1 was forgotten", got)
	}
	value := uint64(2)
	if n := testing.AllocsPerRun(100, func() {
		value++
		at := Signal{Value: value, Producer: a, Seq: 3, ByBarrier: true}
		s.Publish(at, behind)
		if _, err := s.Arrive(at, at); err != nil {
			t.Fatal(err)
		}
		s.Forget(value, behind)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestQueryPollsAll checks that Query polls the producers of all signals in flight, and all
// producers that a barrier joins.
func TestQueryPollsAll(t *testing.T) {
	var s Semaphore
	var workers []*worker
	add := func() Mark {
		workers = append(workers, new(worker))
		return Mark{workers[len(workers)-1], 1}
	}
	for value := uint64(1); value <= 20; value++ {
		s.Publish(Signal{Value: value, Producer: add().Producer, Seq: 1}, nil)
	}
	var behind []Mark
	for range 20 {
		behind = append(behind, add())
	}
	s.Publish(Signal{Value: 21, Producer: behind[0].Producer, Seq: 1, ByBarrier: true}, behind)
	s.Query()
	for i, w := range workers {
		if len(w.asked) == 0 {
			t.Errorf("producer %d has not been polled", i)
		}
	}
}

// A quiet producer never passes its work, and allocates nothing.
type quiet struct{ polled int }

func (q *quiet) Want(uint64)        {}
func (q *quiet) Passed(uint64) bool { return false }
func (q *quiet) PollFor(uint64, PollSource) *wake.Policy {
	q.polled++
	return nil
}

func TestQueryAllocatesNothing(t *testing.T) {
	var s Semaphore
	all := make([]quiet, 32)
	for i := range all {
		s.Publish(Signal{Value: uint64(i + 1), Producer: &all[i], Seq: 1}, nil)
	}
	if n := testing.AllocsPerRun(100, func() { s.Query() }); n > 0 || all[31].polled < 100 {
		t.Errorf("%v allocations, and producer 31 was polled %d times", n, all[31].polled)
	}
}

// TestWaitAsks checks that a wait polls the producer, even if the context of the wait has ended.
func TestWaitAsks(t *testing.T) {
	var s Semaphore
	w := new(worker)
	at := Signal{Value: 1, Producer: w, Seq: 1}
	s.Publish(at, nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	points := []Point{{&s, 1}}
	if index, err := Wait(ended, points, true); index != -1 || err != ErrEnded || len(w.asked) == 0 {
		t.Errorf("%d, %v; polled for %v", index, err, w.asked)
	}
	w.onAsk = func(uint64) {
		released, err := s.Arrive(at, at)
		if Release(released); err != nil {
			t.Error(err)
		}
	}
	if index, err := Wait(t.Context(), points, true); index != 0 || err != nil {
		t.Errorf("%d, %v", index, err)
	}
}
