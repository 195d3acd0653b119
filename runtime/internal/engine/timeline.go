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

// A Timeline is a native stream whose work is numbered 1, 2, 3, …, so that one number, passed, says
// how much of the work is done. This file issues work (issue) and polls for its completion (Poll).
//
// Three mutexes let three goroutines work on a timeline at the same time: one issues work (mu), one
// queries the driver (askMu), one retires work (retireMu). No goroutine holds the same mutex of two
// timelines.
type Timeline struct {
	Device *Device
	Queue  fmt.Stringer // names the queue in errors
	Lane   Lane         // nil for a queue of the program
	Stream driver.Stream

	NewRecord func() *Submission
	free      records

	// Adopted says that the stream belongs to other code, which may give it work too. So an event
	// is recorded behind each submission. Once closed is true the engine does not use the stream
	// any more.
	Adopted bool
	closed  atomic.Bool // set under mu

	// mu is held while work is issued. It protects last and tidyAt, and changes of issued, marked,
	// lands, awaiting, closed and ended. Its holder does not wait for another timeline.
	mu     sync.Mutex
	last   sema.Point    // the signal of the last work published, if it has only one
	tidyAt uint64        // the submission with this number calls tidy
	issued atomic.Uint64 // the number of the last work given to the stream
	marked atomic.Uint64 // the last number with an event recorded behind it
	passed atomic.Uint64 // the last number that the stream is known to have passed
	wanted atomic.Uint64 // the timeline is polled until this number is passed
	lands  atomic.Uint64 // the last download that nothing waits for: see landings

	// awaiting is the number of the last work that waits for outside code: for a value in memory or
	// a shared event that the engine's own streams may never signal.
	awaiting atomic.Uint64

	coverMu sync.Mutex // protects cover; a leaf
	cover   Frontier   // marks that the stream has waited for

	ring ring

	crowd wake.Crowd
	vain  atomic.Uint32 // how many polls found nothing done

	// askMu is held while the driver is queried. It protects failed, and changes of ended.
	askMu  sync.Mutex
	failed int         // how many times in a row a query has returned an error
	ended  atomic.Bool // the stream is being destroyed: no event may be recorded or queried

	// retireMu is held while work is retired. It protects awaiters, and changes of passed and
	// failures.
	retireMu sync.Mutex
	awaiters []awaiter
	failures atomic.Pointer[[]failedRange] // work that failed before it was passed, in order
}

// NewTimeline returns a timeline of a device. The caller sets Stream and the other exported fields.
func NewTimeline(d *Device, queue fmt.Stringer) *Timeline {
	tl := &Timeline{Device: d, Queue: queue, tidyAt: tidyEvery}
	tl.ring.head = 1
	return tl
}

// maxFailed is how many times in a row a query must return an error before the device counts as
// lost.
const maxFailed = 8

// want requests polling until the stream has passed seq.
func (tl *Timeline) want(seq uint64) {
	for {
		now := tl.wanted.Load()
		if now >= seq {
			return
		}
		if tl.wanted.CompareAndSwap(now, seq) {
			tl.Device.poller.Signal()
			return
		}
	}
}

// tidyEvery is the number of submissions after which the submitter calls tidy. So records and
// events return to their pools even if nobody waits for the work. The number grows with the work in
// flight.
const tidyEvery = 128

// issue gives a submission to the stream if all its waits have been issued, and publishes its
// signals. It runs on any thread. If the outcome is neither Issued nor IssuedBroken, the submission
// has failed or has been parked again. Only an Early submission is neither: the caller must park
// it.
//
// issue and the functions it calls keep rare cases in functions of their own. The driver's calls
// evict most of this code from the processor's caches, and fetching it again takes most of the
// time.
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
			tl.loseBehind(last, last) // a barrier may have taken over the submission's waits
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
		if tl.Lane != nil { // the lane's thread may issue one of the released submissions itself
			sema.ReleaseIssuing(released)
		} else {
			sema.Release(released)
		}
	}
	if many {
		tl.tidy(seq)
	}
	if abroad { // the other device may have been lost before the submission was in the ring
		tl.loseBehind(seq, seq)
	}
	if tl.Device.lost.Load() != nil { // this device may have been lost before too
		tl.Device.failInFlight()
	}
	return how, err
}

// announce publishes the signals of a submission that the stream has got. If err is not nil, the
// stream has got only a part of the submission. Then the signals fail now, and the submission keeps
// what it holds until the stream has passed it. announce returns the timepoints to release, and
// whether the work must be polled. The caller holds mu.
func (tl *Timeline) announce(s *Submission, err error) (released *sema.Timepoint, wanted bool) {
	wanted = s.Lends
	if s.Action != nil {
		wanted = s.Action.Issued(s, tl, err != nil) || wanted // before other work can wait for s
	}
	if err != nil {
		return tl.Device.failSignals(s, err), wanted
	}
	released, want := tl.publish(s)
	return released, wanted || want
}

// enter puts a submission into the ring, requests polling if wanted says so or somebody already
// waits for it, and reports whether the caller must call tidy. When enter returns, the submission
// may have been retired and recycled. The caller holds mu.
func (tl *Timeline) enter(s *Submission, wanted bool) (many bool) {
	seq, done, recorded, lands := s.Seq, tl.passed.Load(), s.recorded, s.Delivers
	tl.ring.put(s, done)
	tl.issued.Store(seq) // from now on it may be retired and recycled
	if recorded {
		tl.marked.Store(seq)
	}
	// A goroutine that saw the published signals may have called want before the submission was in
	// the ring. Then the poller found no work and went to sleep, so check tl.wanted too.
	if wanted || tl.wanted.Load() >= seq || tl.Device.Short.Load() > 0 {
		tl.awaited(seq)
	} else if lands {
		tl.landLater(seq)
	}
	return seq >= tl.tidyAt && tl.tidyLater(seq, done)
}

// equip takes an event for a submission, and prepares its action. The timeline is not locked,
// because a pool may have to grow. If equip returns an error it has dismissed the submission.
func (tl *Timeline) equip(s *Submission) (how Outcome, err error) {
	err = tl.Device.halted()
	if err == nil && !s.gathered {
		how, err = s.gatherAll()
	}
	if err == nil && s.event == nil {
		how = Refused
		if tl.Lane != nil && s.ByLane() { // on the lane's thread, which is bound
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

// lockFor finds the marks that the stream must wait for and the events behind them, and locks the
// timeline. If it returns an error nothing is locked.
func (tl *Timeline) lockFor(s *Submission) (how Outcome, err error) {
	if !s.gathered {
		tl.mu.Lock()
		if n := len(s.Waits); n == 0 || n == 1 && s.Waits[0] == tl.last && tl.last.Semaphore.Failed() == nil {
			s.gathered = true // it waits for nothing, or for work of its own stream
			return Issued, nil
		}
		tl.mu.Unlock()
		if err = tl.Device.halted(); err == nil {
			how, err = s.gatherAll()
		}
	}
	if err == nil && len(s.Deps) > 0 {
		how, err = s.findEvents()
	}
	if err == nil {
		tl.mu.Lock()
	}
	return how, err
}

// dismiss ends a failed attempt to issue a submission. The stream has got none of it. The
// submission fails, with three exceptions. An Early submission is left to the caller. A Deferred
// one has been enlisted again by its action. A Foreign one is enlisted again here, this time until
// its waits are reached.
func (tl *Timeline) dismiss(s *Submission, how Outcome, err error) {
	if s.Action != nil {
		s.Action.Undo(s, how)
	}
	switch how {
	case Early, Deferred:
	case Foreign:
		s.DropDeps()
		s.Mode = UntilReached
		tl.EnlistAgain(s)
	case Refused:
		tl.Device.Check(err)
		fallthrough
	default:
		tl.Device.FailSubmission(s, err)
	}
}

// IssueReady is issue for a submission that was parked until its waits were resolved.
func (tl *Timeline) IssueReady(s *Submission) (Outcome, error) {
	how, err := tl.issue(s)
	if how == Early { // the signal that it waited for is no longer published
		tl.Device.FailSubmission(s, err)
	}
	return how, err
}

// awaited requests polling until the stream has passed seq, which has just been issued. Unlike
// want, it wakes the poller even if want was called for seq before.
func (tl *Timeline) awaited(seq uint64) {
	if tl.wanted.Load() >= seq {
		tl.Device.poller.Signal()
	} else {
		tl.want(seq)
	}
}

// tidyLater sets the number at which the submitter calls tidy again. It reports whether enough work
// is in flight to call it now. Everything up to done has been passed. The caller holds mu.
func (tl *Timeline) tidyLater(seq, done uint64) bool {
	tl.tidyAt = seq + max(tidyEvery, (seq-done)/2)
	return seq-done > tidyEvery/2
}

// An Outcome is the result of an attempt to issue a submission.
type Outcome int

const (
	NotIssued    Outcome = iota // a wait has failed, or the device or queue takes no more work
	Refused                     // by the driver or by Prepare; the stream has none of it
	Issued                      // the stream has it
	IssuedBroken                // the stream has a part, with an event behind, or the device is lost
	Foreign                     // a wait for another driver's device, which only the host can do
	Early                       // no work that would satisfy a wait has been issued
	Deferred                    // its action tries again later
)

var errEarly = errors.New("gpu: what is waited for has not been issued, or has been taken back")

var errForeign = errors.New("gpu: it waits for a device of another driver")

// give makes the native calls of a submission, and gives it its number. The caller holds mu.
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
	s.DropDeps()
	return how, err
}

// refuse undoes mayUse for a submission that the driver has refused with err. If an operation that
// frees memory may already wait for the submission's number, refuse gives the number to a barrier
// (putBarrier). If that fails, the device is lost. refuse returns err. The caller holds mu.
func (tl *Timeline) refuse(s *Submission, seq uint64, err error) error {
	if s.unused(Mark{tl, seq}) && tl.issued.Load() < seq {
		if failed := tl.putBarrier(s, seq); failed != nil {
			tl.Device.markLost(failed)
		}
	}
	return err
}

// findEvents finds the events behind the marks of Deps for which the stream must wait, and removes
// the others. The caller holds no timeline's mu.
func (s *Submission) findEvents() (Outcome, error) {
	tl := s.Timeline
	for _, m := range s.Deps {
		if m.Timeline.Device != tl.Device && m.Timeline.Device.Driver != tl.Device.Driver {
			return Foreign, errForeign
		}
	}
	left := s.Deps[:0]
	for _, m := range s.Deps {
		passed, err := m.status()
		if err != nil {
			err = s.waitFailed()
		}
		if err == nil {
			err = m.Lost() // the work will never be seen done
		}
		switch {
		case err != nil:
		case passed:
		case tl.Covers(m.Timeline, m.Seq):
			if m.Timeline != tl { // if that work fails, this submission fails too
				s.Follows.Add(m)
			}
		default:
			var e *Event
			if e, err = m.event(); err == nil {
				left, s.events = append(left, m), append(s.events, e)
			}
		}
		if err != nil {
			return NotIssued, err
		}
	}
	clear(s.Deps[len(left):])
	s.Deps = left
	return Issued, nil
}

// broken returns the outcome of a submission for which a driver call has failed. If the stream has
// got a part of the submission, broken records an event, because only an event can show when that
// part is done. If the event cannot be recorded, nobody can find out what the device still runs, so
// the device is lost.
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

// start makes the native calls of a submission up to its event: the waits, then the operation. It
// reports whether the stream has got any of them. The caller holds mu.
func (tl *Timeline) start(s *Submission, seq uint64) (started bool, err error) {
	if err := s.mayUse(Mark{tl, seq}); err != nil { // before the addresses are resolved: see Uses
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
	if len(s.Deps) > 0 {
		if started, err = tl.follow(s, seq); err != nil {
			if s.Action != nil { // memory from Prepare may have an earlier use not waited for
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
		// The operation will be issued once more. But the stream has got its waits already, so
		// these need a number now.
		started = tl.putBarrier(s, seq) != nil
	}
	return started || some, err
}

// putBarrier gives the number of a submission to a barrier, which takes over the submission's event
// and the marks that the stream already waits for. If the event cannot be recorded, putBarrier
// returns the error and changes nothing. The caller holds mu.
func (tl *Timeline) putBarrier(s *Submission, seq uint64) error {
	if err := tl.Device.Native.Record(s.event.Handle, tl.Stream); err != nil {
		return err
	}
	b := tl.Get(work.Barrier)
	b.Seq, b.recorded = seq, true
	b.event, s.event = s.event, b.event // s gets the spare event of b's record, or nil
	b.Follows, s.Follows = s.Follows, b.Follows
	b.kept, s.kept = s.kept, b.kept
	tl.ring.put(b, tl.passed.Load())
	tl.issued.Store(seq)
	tl.marked.Store(seq)
	if tl.wanted.Load() >= seq {
		tl.awaited(seq)
	}
	return nil
}

// follow makes the stream wait for the marks in Deps. It reports whether the stream has got any
// wait. The caller holds mu.
func (tl *Timeline) follow(s *Submission, seq uint64) (started bool, err error) {
	for i, m := range s.Deps {
		if m.Timeline.Device != tl.Device && !m.Timeline.Device.lent.add(Mark{tl, seq}) {
			// That device is closed. It has passed all its work, unless it was lost.
			if passed, err := m.status(); err != nil || !passed {
				return started, fmt.Errorf("it waits for work of device %s that has failed: %w", m.Timeline.Device.Info.Name, sema.ErrClosed)
			}
			continue
		}
		if e := s.events[i]; e != nil { // if nil, the work is done and is being retired
			if err := tl.Device.Native.StreamWait(tl.Stream, e.Handle); err != nil {
				return started, err
			}
			started = true
			if !tl.Device.Caps.RerecordEvents {
				e.Hold()
				s.kept = append(s.kept, e)
			}
		}
		// The event may be recorded behind later work than m. Add only m: Follows also says which
		// work must be retired before this submission, and that is only the work up to m.
		tl.addCover(m)
		s.Follows.Add(m)
	}
	return started, nil
}

// publish publishes the signals of a submission that the stream has got. It returns the timepoints
// to release, and whether other timepoints wait, so that the work must be polled. The caller holds
// mu.
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

// Poll queries whether the work seq is done, and if not, whether the oldest work in flight is done.
// It retires everything up to the work that it finds done, and reports whether there was any. Poll
// does not block. It does nothing if another goroutine is polling the timeline. If the event of seq
// is the oldest one, Poll queries it up to times times.
func (tl *Timeline) Poll(seq uint64, times int) bool {
	if (Mark{tl, seq}).decided() {
		return false
	}
	unmarked := tl.tryMark(seq) // not under askMu: a goroutine holds at most two of the mutexes
	return tl.askMu.TryLock() && tl.pollInTurn(seq, times, unmarked)
}

// pollInTurn does the work of Poll. The caller holds askMu, and pollInTurn unlocks it. unmarked is
// the error of tryMark.
func (tl *Timeline) pollInTurn(seq uint64, times int, unmarked error) bool {
	if tl.ended.Load() {
		tl.askMu.Unlock()
		return false
	}
	done, err := uint64(0), unmarked
	if err == nil {
		done, err = tl.ask(seq, times)
	}
	if err == nil {
		tl.failed = 0
	} else {
		tl.failed++
	}
	failed := tl.failed
	tl.askMu.Unlock()
	switch {
	case err != nil && (failed >= maxFailed || errors.Is(err, driver.ErrLost)):
		tl.Device.Lose(err)
		return true
	case err != nil: // the work may still be running, and the next query may succeed
		return false
	case done == 0:
		tl.wantFollowed()
		return false
	}
	return tl.retire(done)
}

// ask queries the first event behind seq and, if that is not complete, the oldest event in flight.
// It returns the number of the submission whose event it finds complete, or 0. The caller holds
// askMu.
func (tl *Timeline) ask(seq uint64, times int) (done uint64, err error) {
	at, ok, err := tl.query(seq, math.MaxUint64, times)
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

// watch is how many times in a row a waiting goroutine queries the oldest event.
const watch = 8

// query asks the driver whether an event is complete, at most so many times. It takes the first event
// behind seq. If none is recorded there, it takes the last event recorded. It considers only submissions below end. at is the number of the
// submission that has the event, or 0 if there is no event to query. done reports whether the event
// is complete.
func (tl *Timeline) query(seq, end uint64, times int) (at uint64, done bool, err error) {
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
	if times > 1 && s != tl.ring.marked(tl.ring.head, at) { // an earlier event may complete first
		times = 1
	}
	e.Hold() // s may be retired meanwhile, because of a later event
	tl.ring.mu.Unlock()
	for ; times > 0 && !done && err == nil && tl.passed.Load() < at; times-- {
		done, err = tl.Device.Native.Query(e.Handle)
	}
	e.Drop()
	return at, done, err
}

// tidy retires finished work if nearly all of the work up to seq is done, or else if half of it is.
func (tl *Timeline) tidy(seq uint64) {
	if done := tl.passed.Load(); done < seq && !tl.reap(seq-tidyEvery/8) {
		tl.reap(done + (seq-done)/2)
	}
}

// reap retires the work up to the first event behind seq, if that event is complete. It returns
// false if the event is not complete, or if the query fails. It does not handle that error:
// goroutines that wait for the work will. If seq has been passed, or another goroutine is polling,
// reap does nothing and returns true.
func (tl *Timeline) reap(seq uint64) bool {
	if (Mark{tl, seq}).decided() || !tl.askMu.TryLock() {
		return true
	}
	if tl.ended.Load() {
		tl.askMu.Unlock()
		return true
	}
	at, done, err := tl.query(seq, math.MaxUint64, 1)
	tl.askMu.Unlock()
	if at == 0 || !done || err != nil {
		return false
	}
	return tl.retire(at)
}

// Busy reports whether work is in flight that will be found done. On a lost device none will.
func (tl *Timeline) Busy() bool {
	return tl.passed.Load() < tl.issued.Load() && tl.Device.lost.Load() == nil
}

// Load returns how many submissions the stream has in flight.
func (tl *Timeline) Load() uint64 {
	passed := tl.passed.Load() // first: issued cannot be below it then
	return tl.issued.Load() - passed
}

// Latest returns the number of the last work given to the stream.
func (tl *Timeline) Latest() uint64 { return tl.issued.Load() }

// Locked calls fn with mu locked, so that nothing is issued meanwhile, and returns its error.
func (tl *Timeline) Locked(fn func() error) error {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	return fn()
}

// EachInFlight calls fn for the submissions in flight, oldest first, until fn returns false. fn
// runs under the ring's mu, so it must lock nothing.
func (tl *Timeline) EachInFlight(fn func(*Submission) bool) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	for seq := tl.ring.head; seq <= tl.issued.Load(); seq++ {
		if !fn(tl.ring.at(seq)) {
			return
		}
	}
}

// inFlightAt calls fn for the submission with a number, if it is in flight. fn runs under the
// ring's mu, so it must lock nothing.
func (tl *Timeline) inFlightAt(seq uint64, fn func(*Submission)) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	if seq >= tl.ring.head && seq <= tl.issued.Load() {
		fn(tl.ring.at(seq))
	}
}
