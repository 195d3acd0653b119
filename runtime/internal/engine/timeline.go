package engine

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Timeline is a native stream whose submissions are numbered 1, 2, 3, … So one number, in the
// field passed, tells which submissions are done. This file issues submissions (issue) and polls
// for their completion (Poll).
//
// Three mutexes let three goroutines work on a timeline at the same time: one issues (mu), one
// queries the driver (queryMu), one retires (retireMu). No goroutine holds the same mutex of two
// timelines.
type Timeline struct {
	Device *Device
	Queue  fmt.Stringer // the queue in the layers above; the engine uses only its name
	Lane   Lane         // nil unless the queue is a communicator's
	Stream driver.Stream

	NewRecord func() *Submission // makes a Submission of this timeline, with its Rest
	free      records

	// Adopted says that other code created the stream and may also use it. So an event is recorded
	// behind each submission. When closed is true, the engine gives the stream no more work.
	Adopted bool
	closed  atomic.Bool // set under mu

	// mu is held while work is issued. It protects last and tidyAt, and writes to issued, marked,
	// lastDownload, awaiting, closed and ended.
	mu           sync.Mutex
	last         sema.Point    // the signal of the last published submission, if that has exactly one signal
	tidyAt       uint64        // from this number on, enter checks whether tidy must be called
	issued       atomic.Uint64 // the number of the last submission given to the stream
	marked       atomic.Uint64 // the last number with an event recorded right behind it
	passed       atomic.Uint64 // the last number that the stream is known to have passed
	wanted       atomic.Uint64 // the timeline is polled until this number is passed
	lastDownload atomic.Uint64 // the last download that nobody waited for when it was issued: see downloadPoller

	// awaiting is the number of the last submission that waits for other code: for a value in
	// memory or for a shared event. Such a wait may never end.
	awaiting atomic.Uint64

	coverMu sync.Mutex // protects cover; no other lock is taken while it is held
	cover   Frontier   // marks for which the stream has been made to wait

	ring ring

	throttle   wake.PollThrottle
	emptyPolls atomic.Uint32 // number of polls that found nothing done

	// queryMu is held while a goroutine polls the timeline. It protects failed, and writes to
	// ended.
	queryMu sync.Mutex
	failed  int         // number of polls in a row that have failed
	ended   atomic.Bool // set by End, before the stream is destroyed; then no events are recorded, and Poll does nothing

	// retireMu is held while work is retired. It protects awaiters, and writes to passed and
	// failures.
	retireMu sync.Mutex
	awaiters []awaiter
	failures atomic.Pointer[[]failedRange] // issued work that has failed, in the order of the numbers

	// neverBegins is set when the device has been closed. It is the number of the first submission
	// that never begins, or 0: see deadSearch.
	neverBegins atomic.Uint64
}

// NewTimeline returns a timeline of the device d. The caller then sets NewRecord and Stream, and
// Lane or Adopted if needed.
func NewTimeline(d *Device, queue fmt.Stringer) *Timeline {
	tl := &Timeline{Device: d, Queue: queue, tidyAt: tidyEvery}
	tl.ring.head = 1
	return tl
}

// maxFailed is the number of failed polls in a row after which the device counts as lost.
const maxFailed = 8

// want requests that the device's poller polls until the stream has passed seq.
func (tl *Timeline) want(seq uint64) {
	for {
		now := tl.wanted.Load()
		if now >= seq {
			return
		}
		if tl.wanted.CompareAndSwap(now, seq) {
			tl.Device.signalPoller()
			return
		}
	}
}

// tidyEvery is the smallest number of submissions between two calls of tidy. The goroutine that
// issues a submission calls tidy, so that Submissions and events return to their pools even if
// nobody waits for the work. The distance between two calls grows with the work in flight.
const tidyEvery = 128

// issue gives a submission to the stream, and publishes the submission's signals, if the work for
// all waits of the submission has been issued. It runs on any thread. If the outcome is Issued or
// IssuedBroken, the submission has got a number and has been put into the ring. If the outcome is
// Early, the caller must park or fail the submission. With any other outcome the submission has
// failed or has been parked again.
//
// Rare cases are in functions of their own, so that the code for the usual case is short. The
// driver's calls evict this code from the processor's caches, and loading it again takes time.
func (tl *Timeline) issue(s *Submission) (Outcome, error) {
	if s.event == nil || s.Action != nil {
		if how, err := tl.equip(s); err != nil {
			return how, err
		}
	}
	if how, err := tl.lockFor(s); err != nil {
		tl.dismiss(s, how, err)
		return how, err
	}
	how, err := tl.give(s)
	if how == Refused && s.Action != nil && s.Action.Retries(s, err) {
		how, err = tl.giveCollected(s, err)
	}
	if how != Issued && how != IssuedBroken {
		last := tl.issued.Load()
		tl.mu.Unlock()
		if how == Refused {
			tl.loseBehind(last, last) // the submission's waits may be in the stream: see putBarrier
		}
		tl.dismiss(s, how, err)
		return how, err
	}
	released, wanted := tl.announce(s, err)
	seq, abroad := s.Seq, s.abroad()
	many := tl.enter(s, wanted)
	tl.mu.Unlock()
	if err != nil {
		tl.Device.Check(err)
	}
	if released != nil {
		if tl.Lane != nil { // the lane's thread may issue a released submission itself
			sema.ReleaseIssuing(released)
		} else {
			sema.Release(released)
		}
	}
	if many {
		tl.tidy(seq)
	}
	// If a device whose work the submission follows was lost before the submission was in the ring,
	// loseFollowers may have missed this submission.
	if abroad {
		tl.loseBehind(seq, seq)
	}
	if tl.Device.lost.Load() != nil { // failInFlight may have run before the submission was in the ring
		tl.Device.failInFlight()
	}
	return how, err
}

// announce publishes the signals of a submission that the stream has received. If err is not nil, a
// native call has failed and the stream may have received only a part of the submission. Then the
// signals fail now, and everything that the submission holds stays held until the stream has passed
// the submission. announce returns the timepoints to release, and whether the work must be polled.
// The caller holds tl.mu.
func (tl *Timeline) announce(s *Submission, err error) (released *sema.Timepoint, wanted bool) {
	wanted = s.Lends
	if s.Action != nil {
		// Issued must be called before the signals of s are published.
		wanted = s.Action.Issued(s, tl, err != nil) || wanted
	}
	if err != nil {
		return tl.Device.failSignals(s, err), wanted
	}
	released, want := tl.publish(s)
	return released, wanted || want
}

// enter puts a submission into the ring. It requests polling if wanted is set, somebody already
// waits for the work, or Device.Short is above 0. The result many reports whether the caller must
// call tidy. When enter returns, the submission may have been retired and recycled. The caller
// holds tl.mu.
func (tl *Timeline) enter(s *Submission, wanted bool) (many bool) {
	seq, done, recorded, downloads := s.Seq, tl.passed.Load(), s.recorded, s.Delivers
	tl.ring.put(s, done)
	tl.issued.Store(seq) // from now on another goroutine may retire and recycle s
	if recorded {
		tl.marked.Store(seq)
	}
	// Check tl.wanted too: a goroutine that saw the published signals may have called tl.want
	// before the submission was in the ring. Then the poller found no work and went to sleep.
	if wanted || tl.wanted.Load() >= seq || tl.Device.Short.Load() > 0 {
		tl.awaited(seq)
	} else if downloads {
		tl.pollDownloadLater(seq)
	}
	return seq >= tl.tidyAt && tl.tidyLater(seq, done)
}

// equip finds the marks of the submission's waits, takes an event from the pool if the submission
// has none, and calls Prepare of the submission's action. equip may block, so the timeline is not
// locked. If equip returns an error, it has already called dismiss.
func (tl *Timeline) equip(s *Submission) (how Outcome, err error) {
	err = tl.Device.halted()
	if err == nil && !s.Deps.gathered {
		how, err = s.gatherAll()
	}
	if err == nil && s.event == nil {
		how = Refused
		if tl.Lane != nil && s.ByLane() { // the caller is the lane's thread, which is bound
			s.event, err = tl.Device.Events.get()
		} else {
			s.event, err = tl.Device.Events.await()
		}
	}
	if err == nil && s.Action != nil {
		how, err = s.Action.Prepare(s)
	}
	if err != nil {
		tl.dismiss(s, how, err)
	}
	return how, err
}

// lockFor finds the marks that the stream must wait for and the events behind them. Then it locks
// tl.mu. If it returns an error, mu is not locked.
func (tl *Timeline) lockFor(s *Submission) (how Outcome, err error) {
	if !s.Deps.gathered {
		tl.mu.Lock()
		if n := len(s.Waits); n == 0 || n == 1 && s.Waits[0] == tl.last && tl.last.Semaphore.Failed() == nil {
			s.Deps.gathered = true // the submission waits for nothing, or for the last work of its own stream
			return Issued, nil
		}
		tl.mu.Unlock()
		if err = tl.Device.halted(); err == nil {
			how, err = s.gatherAll()
		}
	}
	if err == nil && len(s.Deps.marks) > 0 {
		how, err = s.findEvents()
	}
	if err == nil {
		tl.mu.Lock()
	}
	return how, err
}

// dismiss is called when an attempt to issue a submission has failed and the stream has received
// nothing of the operation. It undoes Prepare and then fails the submission, with three exceptions.
// An Early submission is left to the caller. For a Deferred submission, Undo of the action has
// parked it again. A Foreign submission is parked again here, until its waits are reached.
func (tl *Timeline) dismiss(s *Submission, how Outcome, err error) {
	if s.Action != nil {
		s.Action.Undo(s, how)
	}
	switch how {
	case Early, Deferred:
	case Foreign:
		s.Deps.Drop()
		s.Mode = UntilReached
		tl.ParkAgain(s)
	case Refused:
		tl.Device.Check(err)
		fallthrough
	default:
		tl.Device.FailSubmission(s, err)
	}
}

// IssueReady issues a submission that has no open waits.
func (tl *Timeline) IssueReady(s *Submission) (Outcome, error) {
	how, err := tl.issue(s)
	if how == Early { // not expected: the work for all waits has been issued
		tl.Device.FailSubmission(s, err)
	}
	return how, err
}

// awaited requests polling until the stream has passed seq, which has just been issued. If polling
// up to seq has been requested before, awaited still wakes the poller, and Timeline.want does not.
func (tl *Timeline) awaited(seq uint64) {
	if tl.wanted.Load() >= seq {
		tl.Device.signalPoller()
	} else {
		tl.want(seq)
	}
}

// tidyLater sets tidyAt to a number higher than seq. It reports whether enough work is in flight to
// call tidy now. The argument done is the last number that the stream has passed. The caller holds
// tl.mu.
func (tl *Timeline) tidyLater(seq, done uint64) bool {
	tl.tidyAt = seq + max(tidyEvery, (seq-done)/2)
	return seq-done > tidyEvery/2
}

// An Outcome is the result of an attempt to issue a submission.
type Outcome int

const (
	// NotIssued: a wait has failed, no event could be found or recorded for a wait, or the device
	// or queue accepts no more work.
	NotIssued Outcome = iota
	// Refused: the driver, the action, a Holder, a Memory or the lane returned an error. The stream
	// has received nothing of the operation.
	Refused
	// Issued: the stream has received the submission. Submit also returns Issued if the submission
	// is not given to the stream now, for example if it is parked, or is a barrier.
	Issued
	// IssuedBroken: a native call failed, but the stream may have received a part of the
	// submission. An event is recorded behind that part, or the device is lost.
	IssuedBroken
	// Foreign: a wait is for a device of another driver, so the host must wait.
	Foreign
	// Early: the work for a wait has not been issued.
	Early
	// Deferred: the action has arranged that the submission is issued later.
	Deferred
)

var errEarly = errors.New("gpu: the work for a wait has not been issued, or its signal has been withdrawn")

var errForeign = errors.New("gpu: it waits for a device of another driver")

// give makes the native calls of a submission. If the stream has received the submission, give
// assigns its number. The caller holds tl.mu.
func (tl *Timeline) give(s *Submission) (Outcome, error) {
	if err := tl.halted(); err != nil {
		return NotIssued, err
	}
	if s.mayHoldUp(tl) {
		if err := tl.mark(); err != nil {
			return Refused, err
		}
	}
	how, seq := Issued, tl.issued.Load()+1
	started, err := tl.start(s, seq)
	if err == nil && tl.records(s, seq) {
		err = tl.Device.Native.Record(s.event.Handle, tl.Stream)
		if s.recorded = err == nil; s.recorded {
			for _, o := range s.Observers {
				o.Recorded(s.event)
			}
		}
	}
	if err != nil {
		if how = tl.broken(s, started); how == Refused {
			return how, tl.refuse(s, seq, err)
		}
	}
	s.Seq = seq
	s.Deps.Drop()
	return how, err
}

// refuse undoes mayUse for a submission that was refused with err. An operation that frees memory
// may already wait for the submission's number seq. Then refuse gives that number to a barrier
// (putBarrier), unless a barrier already has the number. If putBarrier fails, the device is lost.
// refuse returns err. The caller holds tl.mu.
func (tl *Timeline) refuse(s *Submission, seq uint64, err error) error {
	if s.unused(Mark{tl, seq}) && tl.issued.Load() < seq {
		if failed := tl.putBarrier(s, seq); failed != nil {
			tl.Device.markLost(failed)
		}
	}
	return err
}

// findEvents removes marks from Deps if the stream need not wait for them. For each remaining mark,
// findEvents finds an event recorded behind the mark, or records an event. If a mark is of a device
// of another driver, the outcome is Foreign. The caller holds no Timeline.mu.
func (s *Submission) findEvents() (Outcome, error) {
	tl := s.Timeline
	for _, m := range s.Deps.marks {
		if m.Timeline.Device != tl.Device && m.Timeline.Device.Driver != tl.Device.Driver {
			return Foreign, errForeign
		}
	}
	left := s.Deps.marks[:0]
	for _, m := range s.Deps.marks {
		passed, err := m.status()
		if err != nil {
			err = s.waitFailed()
		}
		if err == nil {
			err = m.Lost() // if m's device is lost, the host will never see that work done
		}
		switch {
		case err != nil:
		case passed:
		case tl.Covers(m.Timeline, m.Seq):
			if m.Timeline != tl { // so that s is retired after the work at m, and cause checks m.Timeline for failures
				s.Follows.Add(m)
			}
		default:
			var e *Event
			if e, err = m.event(); err == nil {
				left, s.Deps.events = append(left, m), append(s.Deps.events, e)
			}
		}
		if err != nil {
			return NotIssued, err
		}
	}
	clear(s.Deps.marks[len(left):])
	s.Deps.marks = left
	return Issued, nil
}

// broken returns the outcome of a submission for which a call has failed. If the stream has
// received nothing, the outcome is Refused. Otherwise the outcome is IssuedBroken, and broken
// records an event, because only an event can show when the received part is done. If no event can
// be recorded, nobody can know what the device still runs, so the device is lost.
func (tl *Timeline) broken(s *Submission, started bool) Outcome {
	if !started {
		return Refused
	}
	err := tl.Device.Native.Record(s.event.Handle, tl.Stream)
	if err != nil {
		tl.Device.markLost(err)
	}
	s.recorded = err == nil
	return IssuedBroken
}

// start makes the native calls of a submission: first the waits, then the operation. It does not
// record the event. started reports whether the stream has received any of the calls. Waits that a
// barrier has taken over (putBarrier) do not count. The caller holds tl.mu.
func (tl *Timeline) start(s *Submission, seq uint64) (started bool, err error) {
	if err := s.mayUse(Mark{tl, seq}); err != nil { // must come before Resolve: see Uses
		return false, err
	}
	dst, err := s.Dst.Resolve()
	if err != nil {
		return false, err
	}
	src, err := s.Src.Resolve()
	if err != nil {
		return false, err
	}
	if len(s.Deps.marks) > 0 {
		if started, err = tl.follow(s, seq); err != nil {
			if s.Action != nil {
				// Give back the memory that Prepare took: the stream does not wait for all earlier
				// uses of that memory.
				s.Action.Undo(s, Refused)
			}
			return started, err
		}
	}
	for _, o := range s.Observers {
		o.Begins(s, started)
	}
	some, err := s.start(tl, dst, src)
	for _, o := range s.Observers {
		o.Begun(s, some)
	}
	if err != nil && !some && started && s.Action != nil && s.Action.Retries(s, err) {
		// The operation will be issued once more. But the stream has already received the waits,
		// and work that the stream has received needs a number and an event behind it.
		started = tl.putBarrier(s, seq) != nil
	}
	return started || some, err
}

// putBarrier creates a barrier and gives it the number seq, which was meant for s. The barrier
// takes over the event of s and the marks that the stream already waits for. If the event cannot be
// recorded, putBarrier returns the error and changes nothing. The caller holds tl.mu.
func (tl *Timeline) putBarrier(s *Submission, seq uint64) error {
	if err := tl.Device.Native.Record(s.event.Handle, tl.Stream); err != nil {
		return err
	}
	b := tl.Get(work.Barrier)
	b.Seq, b.recorded = seq, true
	b.event, s.event = s.event, b.event // s gets the event that b has kept from an earlier use, or nil
	b.Follows, s.Follows = s.Follows, b.Follows
	tl.ring.put(b, tl.passed.Load())
	tl.issued.Store(seq)
	tl.marked.Store(seq)
	if tl.wanted.Load() >= seq {
		tl.awaited(seq)
	}
	return nil
}

// follow makes the stream wait for the marks in Deps. started reports whether the stream has
// received any wait. The caller holds tl.mu.
func (tl *Timeline) follow(s *Submission, seq uint64) (started bool, err error) {
	for i, m := range s.Deps.marks {
		if m.Timeline.Device != tl.Device && !m.Timeline.Device.lent.add(Mark{tl, seq}) {
			// The other device is closed. It has passed all its work, unless it was lost.
			if passed, err := m.status(); err != nil || !passed {
				return started, fmt.Errorf("it waits for work of device %s that has failed: %w", m.Timeline.Device.Info.Name, sema.ErrClosed)
			}
			continue
		}
		if e := s.Deps.events[i]; e != nil { // if nil, the work at m is done
			if err := tl.Device.Native.StreamWait(tl.Stream, e.Handle); err != nil {
				return started, err
			}
			started = true
			if !tl.Device.Caps.RerecordEvents {
				e.Hold()
				s.Follows.kept = append(s.Follows.kept, e)
			}
		}
		// The event may be recorded behind later work than m. Still add only m: the work in Follows
		// must be retired before this submission, and the later work need not be.
		tl.addCover(m)
		s.Follows.Add(m)
	}
	return started, nil
}

// publish publishes the signals of a submission that the stream has received. It returns the
// timepoints to release, and whether the semaphores keep timepoints that are not released now. If
// they do, the work must be polled. The caller holds tl.mu.
func (tl *Timeline) publish(s *Submission) (*sema.Timepoint, bool) {
	if len(s.Signals) == 1 {
		tl.last = s.Signals[0]
		return tl.last.Semaphore.Publish(sema.Signal{Value: tl.last.Value, Producer: tl, Seq: s.Seq}, nil)
	}
	tl.last = sema.Point{}
	var released sema.List
	wanted := false
	for _, p := range s.Signals {
		list, want := p.Semaphore.Publish(sema.Signal{Value: p.Value, Producer: tl, Seq: s.Seq}, nil)
		released.Join(list)
		wanted = wanted || want
	}
	return released.First(), wanted
}

// Poll asks the driver whether the work seq is done, and if not, whether the oldest work in flight
// is done. If no event is recorded behind seq yet, Poll first records one, unless another goroutine
// is issuing work. If Poll finds that a submission is done, it retires all submissions up to that
// submission and returns the result of retire. If a call of the driver fails and Poll makes the
// device lost, it returns true. Otherwise Poll returns false. If the event behind seq is the oldest
// in flight, Poll queries this event up to tries times.
//
// Poll asks nothing if the stream has passed seq, if the device is lost, if another goroutine is
// polling the timeline, or after End.
func (tl *Timeline) Poll(seq uint64, tries int) bool {
	if (Mark{tl, seq}).decided() {
		return false
	}
	// Call tryMark before locking queryMu. tryMark locks two mutexes, and a goroutine holds at most
	// two of the engine's mutexes.
	unmarked := tl.tryMark(seq)
	return tl.queryMu.TryLock() && tl.pollInTurn(seq, tries, unmarked)
}

// pollInTurn does the work of Poll. The caller has locked queryMu, and pollInTurn unlocks it.
// unmarked is the error of tryMark(seq), or nil.
func (tl *Timeline) pollInTurn(seq uint64, tries int, unmarked error) bool {
	if tl.ended.Load() {
		tl.queryMu.Unlock()
		return false
	}
	done, err := uint64(0), unmarked
	if err == nil {
		done, err = tl.findDone(seq, tries)
	}
	if err == nil {
		tl.failed = 0
	} else {
		tl.failed++
	}
	failed := tl.failed
	tl.queryMu.Unlock()
	switch {
	case err != nil && (failed >= maxFailed || errors.Is(err, driver.ErrLost)):
		tl.Device.Lose(err)
		return true
	case err != nil: // the work may still run, and the next poll may succeed
		return false
	case done == 0:
		tl.wantFollowed()
		return false
	}
	return tl.retire(done)
}

// findDone queries the first event behind seq, or the last event if there is none behind seq. If
// the queried event is not complete, findDone queries the oldest event in flight. It returns the
// number of the submission whose event is complete, or 0 if neither is. The caller holds queryMu.
func (tl *Timeline) findDone(seq uint64, tries int) (done uint64, err error) {
	at, ok, err := tl.query(seq, math.MaxUint64, tries)
	switch {
	case err != nil || at == 0:
		return 0, err
	case ok:
		return at, nil
	}
	oldest, ok, err := tl.query(tl.passed.Load()+1, at, 1)
	if !ok || err != nil {
		return 0, err
	}
	return oldest, nil
}

// watch is the largest number of times in a row that a waiting goroutine queries the oldest event
// in one poll.
const watch = 8

// query asks the driver up to tries times whether an event is complete: the first recorded event of
// a submission with a number from seq to end-1. If there is none and end sets no limit
// (math.MaxUint64), query takes the last recorded event. If older events are in flight, query asks
// only once. at is the number of the event's submission, or 0 if there is no event to query. done
// reports whether the driver has said that the event is complete.
func (tl *Timeline) query(seq, end uint64, tries int) (at uint64, done bool, err error) {
	tl.ring.mu.Lock()
	last := min(tl.issued.Load(), end-1)
	s := tl.ring.marked(max(seq, tl.ring.head), last)
	if s == nil && last < end-1 {
		if at := tl.marked.Load(); at >= tl.ring.head && at <= last {
			s = tl.ring.at(at)
		}
	}
	if s == nil {
		tl.ring.mu.Unlock()
		return 0, false, nil
	}
	at, e := s.Seq, s.event
	if tries > 1 && s != tl.ring.marked(tl.ring.head, at) {
		// An older event may complete first, so do not query the event of s in a loop.
		tries = 1
	}
	e.Hold() // keeps the event, because another goroutine may retire s meanwhile
	tl.ring.mu.Unlock()
	for ; tries > 0 && !done && err == nil && tl.passed.Load() < at; tries-- {
		done, err = tl.Device.Native.Query(e.Handle)
	}
	e.Drop()
	return at, done, err
}

// tidy retires finished work. It asks the driver whether nearly all of the work up to seq is done,
// and if not, whether half of it is.
func (tl *Timeline) tidy(seq uint64) {
	if done := tl.passed.Load(); done < seq && !tl.reap(seq-tidyEvery/8) {
		tl.reap(done + (seq-done)/2)
	}
}

// reap queries the first event behind seq, or the last event if there is none behind seq. If the
// event is complete, reap retires the work up to that event. reap returns false if there is no
// event, if the event is not complete, if the query fails, or if retire returns false. The error of
// the query is ignored: a later poll will get an error too. If the stream has passed seq, the
// device is lost, End was called, or another goroutine is polling, reap does nothing and returns
// true.
func (tl *Timeline) reap(seq uint64) bool {
	if (Mark{tl, seq}).decided() || !tl.queryMu.TryLock() {
		return true
	}
	if tl.ended.Load() {
		tl.queryMu.Unlock()
		return true
	}
	at, done, err := tl.query(seq, math.MaxUint64, 1)
	tl.queryMu.Unlock()
	if at == 0 || !done || err != nil {
		return false
	}
	return tl.retire(at)
}

// Busy reports whether work is in flight and the device is not lost. On a lost device nobody can
// find out when work is done.
func (tl *Timeline) Busy() bool {
	return tl.passed.Load() < tl.issued.Load() && tl.Device.lost.Load() == nil
}

// Load returns the number of submissions that the stream has received and has not passed.
func (tl *Timeline) Load() uint64 {
	passed := tl.passed.Load() // read tl.passed first, so that tl.issued is not below it
	return tl.issued.Load() - passed
}

// Latest returns the number of the last submission given to the stream.
func (tl *Timeline) Latest() uint64 { return tl.issued.Load() }

// Locked calls fn with tl.mu locked, so that nothing is issued meanwhile, and returns the error of
// fn.
func (tl *Timeline) Locked(fn func() error) error {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	return fn()
}

// EachInFlight calls fn for each submission in flight, oldest first, until fn returns false. fn
// runs under the ring's mu, so fn must not lock a mutex.
func (tl *Timeline) EachInFlight(fn func(*Submission) bool) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	for seq := tl.ring.head; seq <= tl.issued.Load(); seq++ {
		if !fn(tl.ring.at(seq)) {
			return
		}
	}
}

// inFlightAt calls fn for the submission with the number seq, if it is in flight. fn runs under the
// ring's mu, so fn must not lock a mutex.
func (tl *Timeline) inFlightAt(seq uint64, fn func(*Submission)) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	if seq >= tl.ring.head && seq <= tl.issued.Load() {
		fn(tl.ring.at(seq))
	}
}
