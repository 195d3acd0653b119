package gpu

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

// A timeline is a stream with its work numbered in order: one number says what is done.
type timeline struct {
	dev   *nativeDevice
	queue fmt.Stringer // what errors call the queue that takes the work
	lane  lane         // nil if it is a queue's of the program
	h     driver.Stream

	newRecord func() *submission // makes a record
	free      records            // of submissions

	// The stream of an adopted queue is somebody else's, and may be given work by others: all that the queue gives it has an event behind it, and
	// once the queue is closed it is not touched any more, which is set under mu.
	adopted bool
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
	cover   frontier   // what the stream has waited for

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

func newTimeline(d *nativeDevice, queue fmt.Stringer) *timeline {
	tl := &timeline{dev: d, queue: queue, tidyAt: tidyEvery}
	tl.ring.head = 1
	return tl
}

// maxFailed is how often in a row asking a device may fail before it counts as lost.
const maxFailed = 8

// want has the device asked until seq is done.
func (tl *timeline) want(seq uint64) {
	for {
		now := tl.wanted.Load()
		if now >= seq {
			return
		}
		if tl.wanted.CompareAndSwap(now, seq) {
			tl.dev.poller.Signal()
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
func (tl *timeline) issue(s *submission) (outcome, error) {
	if s.event == nil || s.act != nil {
		if how, err := tl.equip(s); err != nil {
			return how, err
		}
	}
	if how, err := tl.lockFor(s); err != nil {
		tl.dismiss(s, how, err)
		return how, err
	}
	how, err := tl.give(s)
	if how == refused && s.act != nil && s.act.retries(s, err) {
		how, err = tl.giveCollected(s, err)
	}
	if how != issuedWork && how != issuedBroken {
		last := tl.issued.Load()
		tl.mu.Unlock()
		if how == refused {
			tl.loseBehind(last, last) // a barrier may hold the submission's waits
		}
		tl.dismiss(s, how, err)
		return how, err
	}
	released, wanted := tl.announce(s, err)
	seq, abroad := s.seq, s.abroad()
	many := tl.enter(s, wanted)
	tl.mu.Unlock()
	if err != nil {
		tl.dev.check(err)
	}
	if released != nil {
		if tl.lane != nil { // its thread can issue what comes next, and need not wake the device's
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
	if tl.dev.lost.Load() != nil { // so may this one
		tl.dev.failInFlight()
	}
	return how, err
}

// announce publishes the signals of a submission that the stream has got. With an error the stream
// has got a part of it: the signals fail now, and the submission keeps all that it holds until the
// stream has passed it. announce reports whether somebody waits for the work, and returns the
// timepoints to release. The caller holds mu.
func (tl *timeline) announce(s *submission, err error) (released *sema.Timepoint, wanted bool) {
	wanted = s.lends
	if s.act != nil {
		wanted = s.act.issued(s, tl, err != nil) || wanted // before anybody can come after it
	}
	if err != nil {
		return tl.dev.failSignals(s, err), wanted
	}
	released, want := tl.publish(s)
	return released, wanted || want
}

// enter puts a submission into the ring, has the device asked about it if somebody waits, and reports
// whether it is time to tidy. After that the submission may be retired and recycled. The caller holds
// mu.
func (tl *timeline) enter(s *submission, wanted bool) (many bool) {
	seq, done, recorded, lands := s.seq, tl.passed.Load(), s.recorded, s.delivers
	tl.ring.put(s, done)
	tl.issued.Store(seq) // only now may it be retired, and recycled
	if recorded {
		tl.marked.Store(seq)
	}
	// Who found the signals published, and the submission not yet in the ring, may have looked too early.
	if wanted || tl.wanted.Load() >= seq || tl.dev.short.Load() > 0 {
		tl.awaited(seq)
	} else if lands {
		tl.landLater(seq)
	}
	return seq >= tl.tidyAt && tl.tidyLater(seq, done)
}

// equip gives a submission what it needs and the timeline need not be locked for, since a pool may have to grow. An error is
// issue's.
func (tl *timeline) equip(s *submission) (how outcome, err error) {
	err = tl.dev.halted()
	if err == nil && !s.gathered {
		how, err = s.gatherAll()
	}
	if err == nil && s.event == nil {
		how = refused
		if tl.lane != nil { // whose thread is bound
			s.event, err = tl.dev.events.get()
		} else {
			s.event, err = tl.dev.events.await()
		}
	}
	if err == nil && s.act != nil {
		how, err = s.act.prepare(s)
	}
	if err != nil {
		tl.dismiss(s, how, err)
	}
	return how, err
}

// lockFor finds what a submission comes after, with the events behind that, and locks the timeline. With an error nothing is locked.
func (tl *timeline) lockFor(s *submission) (how outcome, err error) {
	if !s.gathered {
		tl.mu.Lock()
		if n := len(s.waits); n == 0 || n == 1 && s.waits[0] == tl.last && tl.last.Semaphore.Failed() == nil {
			s.gathered = true // it comes after nothing but what is in front of it
			return issuedWork, nil
		}
		tl.mu.Unlock()
		if err = tl.dev.halted(); err == nil {
			how, err = s.gatherAll()
		}
	}
	if err == nil && len(s.deps) > 0 {
		how, err = s.findEvents()
	}
	if err == nil {
		tl.mu.Lock()
	}
	return how, err
}

// dismiss ends the issue of a submission of which the stream has got nothing. But for one that is early, it fails.
func (tl *timeline) dismiss(s *submission, how outcome, err error) {
	if s.act != nil {
		s.act.undo(s, how)
	}
	switch how {
	case early, deferred:
	case foreign:
		s.letGoAll()
		s.mode = untilReached
		tl.enlistAgain(s)
	case refused:
		tl.dev.check(err)
		fallthrough
	default:
		tl.dev.failSubmission(s, err)
	}
}

// issueReady is issue for a submission that was parked until somebody had issued all that it waits for.
func (tl *timeline) issueReady(s *submission) (outcome, error) {
	how, err := tl.issue(s)
	if how == early { // the producer has gone
		tl.dev.failSubmission(s, err)
	}
	return how, err
}

// awaited has the device asked until seq is done, for somebody is parked until then.
func (tl *timeline) awaited(seq uint64) {
	if tl.wanted.Load() >= seq {
		tl.dev.poller.Signal()
	} else {
		tl.want(seq)
	}
}

// tidyLater says when the submitter is to look again what is done, and reports whether so much is in flight that it is to look now.
func (tl *timeline) tidyLater(seq, done uint64) bool {
	tl.tidyAt = seq + max(tidyEvery, (seq-done)/2)
	return seq-done > tidyEvery/2
}

// An outcome is what became of a submission that was to be issued.
type outcome int

const (
	notIssued    outcome = iota // what it waits for has failed, or cannot be waited for
	refused                     // by the driver; the stream has nothing of it
	issuedWork                  // it is in the stream
	issuedBroken                // a part of it is in the stream, with the event behind it, or the device is lost
	foreign                     // it waits for a device of another driver: only the host can wait for that
	early                       // it waits for something that nobody has issued
	deferred                    // its action has it tried again later
)

var errEarly = errors.New("gpu: what is waited for has not been issued, or has been taken back")

var errForeign = errors.New("gpu: it waits for a device of another driver")

// give makes the native calls of a submission. The caller holds mu.
func (tl *timeline) give(s *submission) (outcome, error) {
	if err := tl.halted(); err != nil {
		return notIssued, err
	}
	if s.mayHoldUp(tl) {
		if err := tl.mark(); err != nil {
			return refused, err
		}
	}
	how, seq := issuedWork, tl.issued.Load()+1
	started, err := tl.start(s, seq)
	if err == nil && tl.records(s, seq) {
		err = tl.dev.drv.Record(s.event.h, tl.h)
		if s.recorded = err == nil; s.recorded && s.seen != nil {
			s.seen.recorded(s.event)
		}
	}
	if err != nil {
		if how = tl.broken(s, started); how == refused {
			return how, tl.refuse(s, seq, err)
		}
	}
	s.seq = seq
	s.letGoAll()
	return how, err
}

// refuse takes back the uses of a submission that the driver has refused with err. If a dealloca may
// wait for the submission's number, a barrier takes the number. It returns err, or an error that the
// device is lost. The caller holds mu.
func (tl *timeline) refuse(s *submission, seq uint64, err error) error {
	if s.unused(mark{tl, seq}) && tl.issued.Load() < seq {
		if failed := tl.putBarrier(s, seq); failed != nil {
			tl.dev.markLost(failed)
		}
	}
	return err
}

// findEvents finds the events behind the deps for which the stream must wait. The other deps it takes away. The caller holds no
// timeline's mu.
func (s *submission) findEvents() (outcome, error) {
	tl := s.tl
	for _, m := range s.deps {
		if m.tl.dev != tl.dev && m.tl.dev.of != tl.dev.of {
			return foreign, errForeign
		}
	}
	left := s.deps[:0]
	for _, m := range s.deps {
		passed, err := m.status()
		if err != nil {
			err = s.waitFailed()
		}
		if err == nil {
			err = m.lost() // then it is never over
		}
		switch {
		case err != nil:
		case passed:
		case tl.covers(m.tl, m.seq):
			if m.tl != tl { // if it fails, this fails as well
				s.follows.add(m)
			}
		default:
			var e *event
			if e, err = m.event(); err == nil {
				left, s.events = append(left, m), append(s.events, e)
			}
		}
		if err != nil {
			return notIssued, err
		}
	}
	clear(s.deps[len(left):])
	s.deps = left
	return issuedWork, nil
}

// broken says what becomes of a submission that the driver has not taken as a whole. If the stream has got something of it,
// only an event can say when that is over; and if there cannot be one, nobody will ever know what the device still does: it is lost.
func (tl *timeline) broken(s *submission, started bool) outcome {
	if !started {
		return refused
	}
	err := tl.dev.drv.Record(s.event.h, tl.h)
	if err != nil {
		tl.dev.markLost(err)
	}
	s.recorded = err == nil
	return issuedBroken
}

// start makes the native calls of a submission up to its event. It reports whether the stream has got any of them.
func (tl *timeline) start(s *submission, seq uint64) (started bool, err error) {
	if err := s.mayUse(mark{tl, seq}); err != nil { // before it finds its memory: see uses
		return false, err
	}
	dst, err := s.dst.resolve()
	if err != nil {
		return false, err
	}
	src, err := s.src.resolve()
	if err != nil {
		return false, err
	}
	if len(s.deps) > 0 {
		if started, err = tl.follow(s, seq); err != nil {
			if s.act != nil { // the stream may not wait for whoever has had its memory
				s.act.undo(s, refused)
			}
			return started, err
		}
	}
	if s.seen != nil {
		s.seen.begins(s, started)
	}
	some, err := s.start(tl, dst, src)
	if s.seen != nil {
		s.seen.begun(s, some)
	}
	if err != nil && !some && started && s.act != nil && s.act.retries(s, err) { // it is issued anew later, but what is in the stream has a number now
		started = tl.putBarrier(s, seq) != nil
	}
	return started || some, err
}

// putBarrier issues a barrier that comes after all that a submission does for which the stream waits already, in its place. Its error is that of
// recording the event behind it: then the stream has no barrier.
func (tl *timeline) putBarrier(s *submission, seq uint64) error {
	if err := tl.dev.drv.Record(s.event.h, tl.h); err != nil {
		return err
	}
	b := tl.get(work.Barrier)
	b.seq, b.recorded = seq, true
	b.event, s.event = s.event, b.event // which is nil, or a spare one
	b.follows, s.follows = s.follows, b.follows
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
func (tl *timeline) follow(s *submission, seq uint64) (started bool, err error) {
	for i, m := range s.deps {
		if m.tl.dev != tl.dev && !m.tl.dev.lent.add(mark{tl, seq}) { // that device is closed, and has passed all its work, if it was not lost
			if passed, err := m.status(); err != nil || !passed {
				return started, fmt.Errorf("it waits for work of device %s that has failed: %w", m.tl.dev.info.Name, sema.ErrClosed)
			}
			continue
		}
		if e := s.events[i]; e != nil { // else it is done, and the host will know in a moment
			if err := tl.dev.drv.StreamWait(tl.h, e.h); err != nil {
				return started, err
			}
			started = true
			if !tl.dev.caps.RerecordEvents {
				e.hold()
				s.kept = append(s.kept, e)
			}
		}
		// The event may be behind more than that, but who comes after the rest must say so for itself: what is noted here is
		// also what the host must see done before this.
		tl.addCover(m)
		s.follows.add(m)
	}
	return started, nil
}

// publish tells the semaphores what is coming, now that the stream has got it.
func (tl *timeline) publish(s *submission) (*sema.Timepoint, bool) {
	if len(s.signals) == 1 {
		tl.last = s.signals[0]
		return tl.last.Semaphore.Publish(sema.Signal{Value: tl.last.Value, Producer: tl, Seq: s.seq}, nil)
	}
	tl.last = sema.Point{}
	var released sema.List
	wanted := false
	for _, p := range s.signals {
		list, want := p.Semaphore.Publish(sema.Signal{Value: p.Value, Producer: tl, Seq: s.seq}, nil)
		released.Join(list)
		wanted = wanted || want
	}
	return released.First(), wanted
}

// poll asks the device whether it has done seq, and if so retires everything up to there; if not, whether the oldest work
// is done. It reports whether something was retired. It never blocks: if another goroutine is at it, that is good enough. If
// seq is the oldest, and so nothing else can be done before it, the device is asked up to so many times.
func (tl *timeline) poll(seq uint64, times int) bool {
	if (mark{tl, seq}).decided() {
		return false
	}
	unmarked := tl.tryMark(seq) // before askMu is locked: nobody holds more than two mutexes
	return tl.askMu.TryLock() && tl.pollInTurn(seq, times, unmarked)
}

// pollInTurn is poll for a caller that holds askMu, which it lets go of.
func (tl *timeline) pollInTurn(seq uint64, times int, unmarked error) bool {
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
		tl.dev.lose(err)
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
func (tl *timeline) ask(seq uint64, times int) (done uint64, err error) {
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
func (tl *timeline) query(seq, end uint64, times int) (at uint64, done bool, err error) {
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
	at, e := s.seq, s.event
	if times > 1 && s != tl.ring.marked(tl.ring.head, at) { // something may be done before it
		times = 1
	}
	e.hold() // it may be retired meanwhile, for something else that is done
	tl.ring.mu.Unlock()
	for ; times > 0 && !done && err == nil && tl.passed.Load() < at; times-- {
		done, err = tl.dev.drv.Query(e.h)
	}
	e.drop()
	return at, done, err
}

// tidy retires what is done of the work up to seq, if that is much.
func (tl *timeline) tidy(seq uint64) {
	if done := tl.passed.Load(); done < seq && !tl.reap(seq-tidyEvery/8) {
		tl.reap(done + (seq-done)/2)
	}
}

// reap retires what is done if everything up to seq is, and reports whether it is. An error is for those who wait to find.
func (tl *timeline) reap(seq uint64) bool {
	if (mark{tl, seq}).decided() || !tl.askMu.TryLock() {
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

// busy reports whether work is issued that will be found done. Of a lost device nothing will.
func (tl *timeline) busy() bool {
	return tl.passed.Load() < tl.issued.Load() && tl.dev.lost.Load() == nil
}

// load returns how much the stream has in flight.
func (tl *timeline) load() uint64 {
	passed := tl.passed.Load() // first, for it is never above what is issued then
	return tl.issued.Load() - passed
}

// latest returns the number of the last work that the stream was given.
func (tl *timeline) latest() uint64 { return tl.issued.Load() }

// locked calls a function while nothing is issued, and returns its error.
func (tl *timeline) locked(fn func() error) error {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	return fn()
}

// eachInFlight calls a function for the submissions in flight, oldest first, until it returns false. The
// function must lock nothing.
func (tl *timeline) eachInFlight(fn func(*submission) bool) {
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
func (tl *timeline) inFlightAt(seq uint64, fn func(*submission)) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	if seq >= tl.ring.head && seq <= tl.issued.Load() {
		fn(tl.ring.at(seq))
	}
}
