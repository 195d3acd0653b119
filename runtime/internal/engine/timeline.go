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

// A Timeline is a stream with its work numbered in order: one number says what is done.
type Timeline struct {
	Device *Device
	Queue  fmt.Stringer // what errors call the queue that takes the work
	Lane   Lane         // nil if it is a queue's of the program
	Stream driver.Stream

	NewRecord func() *Submission // makes a record
	free      records            // of submissions

	// The stream of an adopted queue is somebody else's, and may be given work by others: all that the queue gives it has an event behind it, and
	// once the queue is closed it is not touched any more, which is set under mu.
	Adopted bool
	closed  atomic.Bool

	mu     sync.Mutex // held while work is issued; nobody waits for another timeline's then
	last   sema.Point // what is signalled by that which was issued last, if it signals that alone, or by what came before
	tidyAt uint64     // the number at which the submitter looks what is done
	issued atomic.Uint64
	marked atomic.Uint64 // the last with an event behind it; changed under mu
	passed atomic.Uint64 // the stream has passed this number, as far as the host knows; signals may have been out before
	wanted atomic.Uint64 // somebody is parked until this is done
	lands  atomic.Uint64 // the last download into a slice: see landings

	awaiting atomic.Uint64 // the last that waits for what others bring; changed under mu

	coverMu sync.Mutex // a leaf
	cover   Frontier   // what the stream has waited for

	ring ring // from the oldest that is not retired to issued

	crowd wake.Crowd
	vain  atomic.Uint32 // how often nothing was found done

	askMu    sync.Mutex  // protects failed: one goroutine at a time asks the device
	failed   int         // how often in a row asking failed
	ended    atomic.Bool // the stream is about to be destroyed: nobody asks about an event, or records one; set under askMu and mu
	retireMu sync.Mutex  // protects awaiters and failures: one goroutine at a time retires. Nobody holds two timelines'
	awaiters []awaiter

	failures atomic.Pointer[[]failedRange] // work that failed before the stream had passed it, in order; replaced under retireMu
}

func NewTimeline(d *Device, queue fmt.Stringer) *Timeline {
	tl := &Timeline{Device: d, Queue: queue, tidyAt: tidyEvery}
	tl.ring.head = 1
	return tl
}

// maxFailed is how often in a row asking a device may fail before it counts as lost.
const maxFailed = 8

// want has the device asked until seq is done.
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

// tidyEvery is after how many submissions the submitter looks which are done, so that records and events come back though
// nobody waits. If many are in flight it looks more rarely.
const tidyEvery = 128

// issue gives a submission to the device if all its waits have been issued, and publishes its signals.
// It runs on any thread.
//
// Here, and in what it calls, what is rare is in functions of its own: the driver's calls leave little of this code in a
// processor's caches, and to fetch it takes most of the time.
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
			tl.loseBehind(last, last) // a barrier may hold the submission's waits
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
		if tl.Lane != nil { // its thread can issue what comes next, and need not wake the device's
			sema.ReleaseIssuing(released)
		} else {
			sema.Release(released)
		}
	}
	if many {
		tl.tidy(seq)
	}
	if abroad { // the other device may have been lost before this was in the ring
		tl.loseBehind(seq, seq)
	}
	if tl.Device.lost.Load() != nil { // so may this one
		tl.Device.failInFlight()
	}
	return how, err
}

// announce publishes the signals of a submission that the stream has got. With an error the stream
// has got a part of it: the signals fail now, and the submission keeps all that it holds until the
// stream has passed it. announce reports whether somebody waits for the work, and returns the
// timepoints to release. The caller holds mu.
func (tl *Timeline) announce(s *Submission, err error) (released *sema.Timepoint, wanted bool) {
	wanted = s.Lends
	if s.Action != nil {
		wanted = s.Action.Issued(s, tl, err != nil) || wanted // before anybody can come after it
	}
	if err != nil {
		return tl.Device.failSignals(s, err), wanted
	}
	released, want := tl.publish(s)
	return released, wanted || want
}

// enter puts a submission into the ring, has the device asked about it if somebody waits, and reports
// whether it is time to tidy. After that the submission may be retired and recycled. The caller holds
// mu.
func (tl *Timeline) enter(s *Submission, wanted bool) (many bool) {
	seq, done, recorded, lands := s.Seq, tl.passed.Load(), s.recorded, s.Delivers
	tl.ring.put(s, done)
	tl.issued.Store(seq) // only now may it be retired, and recycled
	if recorded {
		tl.marked.Store(seq)
	}
	// Who found the signals published, and the submission not yet in the ring, may have looked too early.
	if wanted || tl.wanted.Load() >= seq || tl.Device.Short.Load() > 0 {
		tl.awaited(seq)
	} else if lands {
		tl.landLater(seq)
	}
	return seq >= tl.tidyAt && tl.tidyLater(seq, done)
}

// equip gives a submission what it needs and the timeline need not be locked for, since a pool may have to grow. An error is
// issue's.
func (tl *Timeline) equip(s *Submission) (how Outcome, err error) {
	err = tl.Device.halted()
	if err == nil && !s.gathered {
		how, err = s.gatherAll()
	}
	if err == nil && s.event == nil {
		how = Refused
		if tl.Lane != nil { // whose thread is bound
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

// lockFor finds what a submission comes after, with the events behind that, and locks the timeline. With an error nothing is locked.
func (tl *Timeline) lockFor(s *Submission) (how Outcome, err error) {
	if !s.gathered {
		tl.mu.Lock()
		if n := len(s.Waits); n == 0 || n == 1 && s.Waits[0] == tl.last && tl.last.Semaphore.Failed() == nil {
			s.gathered = true // it comes after nothing but what is in front of it
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

// dismiss ends the issue of a submission of which the stream has got nothing. But for one that is early, it fails.
func (tl *Timeline) dismiss(s *Submission, how Outcome, err error) {
	if s.Action != nil {
		s.Action.Undo(s, how)
	}
	switch how {
	case Early, Deferred:
	case Foreign:
		s.LetGoAll()
		s.Mode = UntilReached
		tl.EnlistAgain(s)
	case Refused:
		tl.Device.Check(err)
		fallthrough
	default:
		tl.Device.FailSubmission(s, err)
	}
}

// IssueReady is issue for a submission that was parked until somebody had issued all that it waits for.
func (tl *Timeline) IssueReady(s *Submission) (Outcome, error) {
	how, err := tl.issue(s)
	if how == Early { // the producer has gone
		tl.Device.FailSubmission(s, err)
	}
	return how, err
}

// awaited has the device asked until seq is done, for somebody is parked until then.
func (tl *Timeline) awaited(seq uint64) {
	if tl.wanted.Load() >= seq {
		tl.Device.poller.Signal()
	} else {
		tl.want(seq)
	}
}

// tidyLater says when the submitter is to look again what is done, and reports whether so much is in flight that it is to look now.
func (tl *Timeline) tidyLater(seq, done uint64) bool {
	tl.tidyAt = seq + max(tidyEvery, (seq-done)/2)
	return seq-done > tidyEvery/2
}

// An Outcome is what became of a submission that was to be issued.
type Outcome int

const (
	NotIssued    Outcome = iota // what it waits for has failed, or cannot be waited for
	Refused                     // by the driver; the stream has nothing of it
	Issued                      // it is in the stream
	IssuedBroken                // a part of it is in the stream, with the event behind it, or the device is lost
	Foreign                     // it waits for a device of another driver: only the host can wait for that
	Early                       // it waits for something that nobody has issued
	Deferred                    // its action has it tried again later
)

var errEarly = errors.New("gpu: what is waited for has not been issued, or has been taken back")

var errForeign = errors.New("gpu: it waits for a device of another driver")

// give makes the native calls of a submission. The caller holds mu.
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
		if s.recorded = err == nil; s.recorded && s.Seen != nil {
			s.Seen.Recorded(s.event)
		}
	}
	if err != nil {
		if how = tl.broken(s, started); how == Refused {
			return how, tl.refuse(s, seq, err)
		}
	}
	s.Seq = seq
	s.LetGoAll()
	return how, err
}

// refuse takes back the uses of a submission that the driver has refused with err. If a dealloca may
// wait for the submission's number, a barrier takes the number. It returns err, or an error that the
// device is lost. The caller holds mu.
func (tl *Timeline) refuse(s *Submission, seq uint64, err error) error {
	if s.unused(Mark{tl, seq}) && tl.issued.Load() < seq {
		if failed := tl.putBarrier(s, seq); failed != nil {
			tl.Device.markLost(failed)
		}
	}
	return err
}

// findEvents finds the events behind the deps for which the stream must wait. The other deps it takes away. The caller holds no
// timeline's mu.
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
			err = m.Lost() // then it is never over
		}
		switch {
		case err != nil:
		case passed:
		case tl.Covers(m.Timeline, m.Seq):
			if m.Timeline != tl { // if it fails, this fails as well
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

// broken says what becomes of a submission that the driver has not taken as a whole. If the stream has got something of it,
// only an event can say when that is over; and if there cannot be one, nobody will ever know what the device still does: it is lost.
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

// start makes the native calls of a submission up to its event. It reports whether the stream has got any of them.
func (tl *Timeline) start(s *Submission, seq uint64) (started bool, err error) {
	if err := s.mayUse(Mark{tl, seq}); err != nil { // before it finds its memory: see uses
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
			if s.Action != nil { // the stream may not wait for whoever has had its memory
				s.Action.Undo(s, Refused)
			}
			return started, err
		}
	}
	if s.Seen != nil {
		s.Seen.Begins(s, started)
	}
	some, err := s.start(tl, dst, src)
	if s.Seen != nil {
		s.Seen.Begun(s, some)
	}
	if err != nil && !some && started && s.Action != nil && s.Action.Retries(s, err) { // it is issued anew later, but what is in the stream has a number now
		started = tl.putBarrier(s, seq) != nil
	}
	return started || some, err
}

// putBarrier issues a barrier that comes after all that a submission does for which the stream waits already, in its place. Its error is that of
// recording the event behind it: then the stream has no barrier.
func (tl *Timeline) putBarrier(s *Submission, seq uint64) error {
	if err := tl.Device.Native.Record(s.event.Handle, tl.Stream); err != nil {
		return err
	}
	b := tl.Get(work.Barrier)
	b.Seq, b.recorded = seq, true
	b.event, s.event = s.event, b.event // which is nil, or a spare one
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

// follow makes the stream wait for what a submission comes after.
func (tl *Timeline) follow(s *Submission, seq uint64) (started bool, err error) {
	for i, m := range s.Deps {
		if m.Timeline.Device != tl.Device && !m.Timeline.Device.lent.add(Mark{tl, seq}) { // that device is closed, and has passed all its work, if it was not lost
			if passed, err := m.status(); err != nil || !passed {
				return started, fmt.Errorf("it waits for work of device %s that has failed: %w", m.Timeline.Device.Info.Name, sema.ErrClosed)
			}
			continue
		}
		if e := s.events[i]; e != nil { // else it is done, and the host will know in a moment
			if err := tl.Device.Native.StreamWait(tl.Stream, e.Handle); err != nil {
				return started, err
			}
			started = true
			if !tl.Device.Caps.RerecordEvents {
				e.Hold()
				s.kept = append(s.kept, e)
			}
		}
		// The event may be behind more than that, but who comes after the rest must say so for itself: what is noted here is
		// also what the host must see done before this.
		tl.addCover(m)
		s.Follows.Add(m)
	}
	return started, nil
}

// publish tells the semaphores what is coming, now that the stream has got it.
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

// Poll asks the device whether it has done seq, and if so retires everything up to there; if not, whether the oldest work
// is done. It reports whether something was retired. It never blocks: if another goroutine is at it, that is good enough. If
// seq is the oldest, and so nothing else can be done before it, the device is asked up to so many times.
func (tl *Timeline) Poll(seq uint64, times int) bool {
	if (Mark{tl, seq}).decided() {
		return false
	}
	unmarked := tl.tryMark(seq) // before askMu is locked: nobody holds more than two mutexes
	return tl.askMu.TryLock() && tl.pollInTurn(seq, times, unmarked)
}

// pollInTurn is poll for a caller that holds askMu, which it lets go of.
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
	case err != nil: // the work may be going on, and next time the device may answer
		return false
	case done == 0:
		tl.wantFollowed()
		return false
	}
	return tl.retire(done)
}

// ask returns the number of the last submission up to seq that it finds done, or 0. It asks for seq itself, and if that is not done for
// the oldest.
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

// watch is how many times in a row a waiter asks about the oldest submission.
const watch = 8

// query asks whether a submission is done. If no event is behind it, or it has not been issued, that is the last one that has an
// event. at is the one that has the event asked for; it is below end, or 0 if there is none.
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
	if times > 1 && s != tl.ring.marked(tl.ring.head, at) { // something may be done before it
		times = 1
	}
	e.Hold() // it may be retired meanwhile, for something else that is done
	tl.ring.mu.Unlock()
	for ; times > 0 && !done && err == nil && tl.passed.Load() < at; times-- {
		done, err = tl.Device.Native.Query(e.Handle)
	}
	e.Drop()
	return at, done, err
}

// tidy retires what is done of the work up to seq, if that is much.
func (tl *Timeline) tidy(seq uint64) {
	if done := tl.passed.Load(); done < seq && !tl.reap(seq-tidyEvery/8) {
		tl.reap(done + (seq-done)/2)
	}
}

// reap retires what is done if everything up to seq is, and reports whether it is. An error is for those who wait to find.
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

// Busy reports whether work is issued that will be found done. Of a lost device nothing will.
func (tl *Timeline) Busy() bool {
	return tl.passed.Load() < tl.issued.Load() && tl.Device.lost.Load() == nil
}

// Load returns how much the stream has in flight.
func (tl *Timeline) Load() uint64 {
	passed := tl.passed.Load() // first, for it is never above what is issued then
	return tl.issued.Load() - passed
}

// Latest returns the number of the last work that the stream was given.
func (tl *Timeline) Latest() uint64 { return tl.issued.Load() }

// Locked calls a function while nothing is issued, and returns its error.
func (tl *Timeline) Locked(fn func() error) error {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	return fn()
}

// EachInFlight calls a function for the submissions in flight, oldest first, until it returns false. The
// function must lock nothing.
func (tl *Timeline) EachInFlight(fn func(*Submission) bool) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	for seq := tl.ring.head; seq <= tl.issued.Load(); seq++ {
		if !fn(tl.ring.at(seq)) {
			return
		}
	}
}

// inFlightAt calls a function for the submission with a number, if it is in flight. The function must lock
// nothing.
func (tl *Timeline) inFlightAt(seq uint64, fn func(*Submission)) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	if seq >= tl.ring.head && seq <= tl.issued.Load() {
		fn(tl.ring.at(seq))
	}
}
