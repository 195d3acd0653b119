package gpu

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A timeline is a stream with its work numbered in order: one number says what is done.
type timeline struct {
	dev   *Device
	ch    *Channel // nil if it is a queue's of the program
	h     driver.Stream
	lives atomic.Uint32 // how many streams it has had before

	mu     sync.Mutex // held while work is issued; nobody waits for another timeline's then
	tidyAt uint64     // the number at which the submitter looks what is done
	light  uint64     // how many of those without an event behind them take the device no time
	loose  bool       // the stream has been given work that has no number
	issued atomic.Uint64
	marked atomic.Uint64 // the last with an event behind it; changed under mu
	done   atomic.Uint64
	wanted atomic.Uint64 // somebody is parked until this is done

	coverMu sync.Mutex // a leaf
	cover   []covered

	ring ring // from the oldest that is not retired to issued

	seen  atomic.Uint64 // of issued, by those who ask again and again
	leave atomic.Int32  // for so many rounds they do not
	vain  atomic.Uint32 // how often nothing was found done, while nothing was lost anywhere
	slow  uint64        // an alloca that may be stuck, and
	since time.Time     // since when it seems to be; under the ring's mu

	askMu    sync.Mutex // one at a time asks the device
	failed   int        // how often in a row that failed; under askMu
	retireMu sync.Mutex // one at a time retires; held for no timeline while another's is taken

	goneMu sync.Mutex // a leaf
	gone   []gone

	replacing atomic.Bool     // the device's thread will call replace
	old       []driver.Stream // streams that were given up; the thread's, as is:
	limbo     []*submission   // what is in them
}

func newTimeline(d *Device) *timeline {
	tl := &timeline{dev: d, tidyAt: tidyEvery}
	tl.ring.head = 1
	return tl
}

// maxFailed is how often in a row asking a device may fail before it counts as lost.
const maxFailed = 8

// A mark is a place in a timeline.
type mark struct {
	tl  *timeline
	seq uint64
}

// want has the device asked until seq is done.
func (tl *timeline) want(seq uint64) {
	for {
		now := tl.wanted.Load()
		if now >= seq {
			return
		}
		if tl.wanted.CompareAndSwap(now, seq) {
			tl.dev.signalAsker()
			return
		}
	}
}

// urge has the device asked once about seq, by the caller where any thread may ask.
func (tl *timeline) urge(seq uint64) {
	if tl.dev.caps.SubmitAnywhere {
		tl.poll(seq, 1)
	} else {
		tl.want(seq)
	}
}

// tidyEvery is after how many submissions the submitter looks which are done, so that records and events come back though
// nobody waits. If many are in flight it looks more rarely.
const tidyEvery = 128

// issue gives a submission whose waits are all issued to the device, and publishes what it signals. It runs in the caller
// or on a thread to which the device is bound.
func (tl *timeline) issue(s *submission, onThread bool) (outcome, error) {
	if err := tl.dev.halted(); err != nil {
		tl.dev.failSubmission(s, err)
		return notIssued, err
	}
	if !s.gathered { // before the lock, as is all that follows: it may need an event of another timeline
		switch how, err := s.gather(); how {
		case failed:
			tl.dev.failSubmission(s, err)
			return notIssued, err
		case unknown:
			tl.dev.failSubmission(s, errTakenBack)
			return notIssued, errTakenBack
		}
	}
	if s.event == nil {
		e, err := tl.dev.events.get(onThread) // the pool may have to grow on the device's thread
		if err != nil {
			tl.dev.check(err)
			tl.dev.failSubmission(s, err)
			return refused, err
		}
		s.event = e
	}
	if s.op == opAlloca {
		if err := s.prepare(); err != nil {
			tl.dev.check(err)
			tl.dev.failSubmission(s, err)
			return refused, err
		}
	}
	tl.mu.Lock()
	how, err := tl.submit(s)
	for how == unmarked {
		tl.mu.Unlock()
		err = s.markDeps()
		tl.mu.Lock()
		if how = notIssued; err == nil {
			how, err = tl.submit(s)
		}
	}
	var released *timepoint
	tidy, flying := uint64(0), uint64(0)
	if how == issuedWork || how == issuedBroken {
		wanted := false
		if how == issuedWork {
			released, wanted = tl.publish(s)
		} else { // its signals fail now, and what it holds stays until the stream has passed it
			released = tl.dev.failSignals(s, err)
		}
		seq, done := s.seq, tl.done.Load()
		tl.ring.put(s, done)
		if s.op == opAlloca && how == issuedBroken {
			s.spoil(tl)
		}
		recorded := s.recorded
		tl.issued.Store(seq) // only now may it be retired, and recycled
		if recorded {
			tl.noteMark(seq)
		}
		if wanted {
			tl.want(seq)
		}
		if tl.wanted.Load() >= seq { // who found it published, and not yet in the ring, may have signalled too early
			tl.dev.signalAsker()
		}
		if seq >= tl.tidyAt {
			flying = seq - done
			tl.tidyAt = seq + max(tidyEvery, flying/2)
			tidy = seq
		}
	}
	tl.mu.Unlock()
	var on *Device
	if onThread {
		on = tl.dev
	}
	switch how {
	case notIssued, refused:
		if how == refused {
			tl.dev.check(err)
		}
		if s.op == opAlloca {
			s.unprepare(isFailed)
		}
		tl.dev.failSubmission(s, err)
	case foreign:
		if s.op == opAlloca {
			s.unprepare(isPending)
		}
		s.letGoAll()
		s.hostly = true
		s.q.enlist(s, onThread)
	default:
		if how == issuedBroken {
			tl.dev.check(err)
		}
		if released != nil {
			release(released, on)
		}
		if flying > tidyEvery/2 && (onThread || tl.dev.caps.SubmitAnywhere) {
			tl.tidy(tidy)
		}
		if tl.dev.lost.Load() != nil { // it may have been lost before this was in the ring
			tl.dev.failInFlight()
		}
	}
	return how, err
}

// An outcome is what became of a submission that was to be issued.
type outcome int

const (
	notIssued    outcome = iota // what it waits for has failed, or cannot be waited for
	refused                     // by the driver; the stream has nothing of it
	issuedWork                  // it is in the stream
	issuedBroken                // a part of it is in the stream, with the event behind it
	foreign                     // it waits for a device of another driver, which only the host can do
	unmarked                    // it waits for work of another timeline that no event is behind yet
)

var errTakenBack = errors.New("gpu: a wait was taken back after it had been issued")

// submit makes the native calls.
func (tl *timeline) submit(s *submission) (outcome, error) {
	if err := tl.dev.halted(); err != nil {
		return notIssued, err
	}
	brief := tl.dev.caps.SubmitAnywhere && s.brief(tl)
	for i := range s.deps {
		p := &s.deps[i]
		if p.tl == nil {
			continue
		}
		if p.tl.dev != tl.dev && p.tl.dev.of != tl.dev.of {
			return foreign, nil
		}
		if tl.covers(p.tl, p.seq) {
			if err := p.gone(); err != nil {
				return notIssued, err
			}
			s.letGo(i)
			continue
		}
		brief = false
		if p.event == nil {
			ok := false
			if p.event, ok = p.tl.eventBehind(p.seq); !ok {
				return unmarked, nil
			}
			if p.event == nil { // done, or given up, since covers looked
				if err := p.gone(); err != nil {
					return notIssued, err
				}
			}
		}
	}
	if !brief {
		if err := tl.mark(); err != nil {
			return refused, err
		}
	}
	seq := tl.issued.Load() + 1
	started, err := tl.start(s, seq)
	switch {
	case err == nil && brief && tl.unmarked(s, seq):
	case err == nil:
		err = tl.dev.drv.Record(s.event.h, tl.h)
		s.recorded = err == nil
	}
	switch {
	case err == nil:
	case !started:
		return refused, err
	default:
		// The stream has got something of it, and only an event can say when that is over. If there cannot be one, nobody
		// will ever know what the device still does.
		if again := tl.dev.drv.Record(s.event.h, tl.h); again != nil {
			tl.dev.lost.CompareAndSwap(nil, tl.dev.lostBy(again))
			return refused, err
		}
		s.recorded = true
	}
	s.seq = seq
	s.letGoAll()
	if err != nil {
		return issuedBroken, err
	}
	return issuedWork, nil
}

// start makes the native calls of a submission up to its event. It reports whether the stream has got any of them.
func (tl *timeline) start(s *submission, seq uint64) (started bool, err error) {
	dst, err := s.dst.resolve()
	if err != nil {
		return false, err
	}
	src, err := s.src.resolve()
	if err != nil {
		return false, err
	}
	if err := s.borrow(mark{tl, seq}); err != nil {
		return false, err
	}
	for i := range s.deps {
		p := &s.deps[i]
		if p.tl == nil || p.tl.dev != tl.dev && !p.tl.dev.lend(mark{tl, seq}) {
			continue // there is no need, or that device is closed: its work is done, or was given up
		}
		if p.event != nil { // else it is done, and the host will know in a moment
			if err := tl.dev.drv.StreamWait(tl.h, p.event.h); err != nil {
				return started, err
			}
			started = true
			if !tl.dev.caps.RerecordEvents {
				p.event.hold()
				s.held = append(s.held, p.event)
			}
		}
		// The event may be behind more than that, but who comes after the rest must say so for itself: what is noted here is
		// also what the host must see done before this.
		tl.addCover(p.tl, p.seq, seq)
		s.follows = append(s.follows, p.mark)
	}
	some, err := s.start(tl, dst, src)
	return started || some, err
}

// borrow tells the devices of others' buffers that the work is about to use them.
func (s *submission) borrow(to mark) (err error) {
	use := func(b *Buffer) {
		if err == nil && b != nil && b.dev != to.tl.dev && !b.dev.lend(to) {
			err = fmt.Errorf("a buffer of device %s: %w", b.dev.info.Name, ErrClosed)
		}
	}
	for _, b := range s.keep {
		if b != nil && b.dev != to.tl.dev {
			use(b)
		}
	}
	if !s.cold {
		return err
	}
	for i := range s.bound {
		use(s.bound[i].held)
	}
	for i := range s.binds {
		use(s.binds[i].Buffer)
	}
	if s.recording != nil {
		for _, b := range s.recording.foreign {
			use(b)
		}
	}
	return err
}

// publish tells the semaphores what is coming, now that the stream has got it.
func (tl *timeline) publish(s *submission) (*timepoint, bool) {
	if len(s.signals) == 1 {
		return s.signals[0].Semaphore.publish(point{value: s.signals[0].Value, tl: tl, seq: s.seq})
	}
	var released timepointList
	wanted := false
	for _, p := range s.signals {
		list, want := p.Semaphore.publish(point{value: p.Value, tl: tl, seq: s.seq})
		released.join(list)
		wanted = wanted || want
	}
	return released.first, wanted
}

// start makes the native calls of the operation itself. It reports whether the stream has got any of them.
func (s *submission) start(tl *timeline, dst, src driver.Ptr) (started bool, err error) {
	d := tl.dev.drv
	switch s.op {
	case opFill:
		err = d.Fill(tl.h, dst, s.pattern, s.width, s.n)
	case opFill8:
		if err = d.FillStrided(tl.h, dst, s.pattern, 8, s.n); err == nil {
			started = true
			err = d.FillStrided(tl.h, dst+4, s.pattern2, 8, s.n)
		}
	case opCopy:
		err = d.Copy(tl.h, dst, src, s.n)
	case opUpload:
		err = d.Upload(tl.h, dst, s.stage.host, s.n)
	case opDownload:
		err = d.Download(tl.h, s.stage.host, src, s.n)
	case opPrefetch:
		err = d.(driver.Prefetcher).Prefetch(tl.h, dst, s.n, MemKind(s.width))
	case opDispatch:
		for i := range s.bound {
			ptr, err := s.bound[i].at.resolve()
			if err != nil {
				return false, err
			}
			s.args[s.bound[i].word] = uint64(ptr)
		}
		err = d.Launch(tl.h, &s.launch)
	case opAlloca:
		return s.alloca(tl)
	case opDealloca:
		err = s.keep[0].deallocate(tl)
	case opExecute:
		return s.execute(tl)
	case opCollect:
		return s.collect(tl)
	}
	return started || err == nil, err
}

// poll asks the device whether it has done seq, and if so retires everything up to there; if not, whether the oldest work
// is done. It reports whether something was retired. It never blocks: if another goroutine is at it, that is good enough. If
// seq is the oldest, and so nothing else can be done before it, the device is asked up to so many times.
func (tl *timeline) poll(seq uint64, times int) bool {
	if tl.done.Load() >= seq || !tl.askMu.TryLock() {
		return false
	}
	done, err := tl.ask(seq, times)
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
		switch err := tl.stuck(); {
		case err == nil:
		case tl.ch != nil:
			tl.ch.fail(err)
		case tl.replacing.CompareAndSwap(false, true):
			tl.dev.post(tl.replace)
		}
		return false
	}
	return tl.retire(done)
}

// ask returns the number of the last submission up to seq that it finds done, or 0. It asks for seq itself, then for the
// oldest, and from there on in growing steps.
func (tl *timeline) ask(seq uint64, times int) (done uint64, err error) {
	if err := tl.tryMark(seq); err != nil {
		return 0, err
	}
	at, ok, err := tl.query(seq, math.MaxUint64, times)
	switch {
	case err != nil || at == 0:
		return 0, err
	case ok:
		return at, nil
	}
	last := at // not done
	for next, step := tl.done.Load()+1, uint64(1); next < last; next, step = done+step, 2*step {
		at, ok, err := tl.query(next, last, 1)
		if at == 0 || !ok || err != nil {
			return done, err
		}
		done = at
	}
	return done, nil
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
	for ; times > 0 && !done && err == nil && tl.done.Load() < at; times-- {
		done, err = tl.dev.drv.Query(e.h)
	}
	e.drop()
	return at, done, err
}

// tidy retires what is done of the work up to seq, if that is much.
func (tl *timeline) tidy(seq uint64) {
	if done := tl.done.Load(); done < seq && !tl.reap(seq-tidyEvery/8) {
		tl.reap(done + (seq-done)/2)
	}
}

// reap retires what is done if everything up to seq is, and reports whether it is. An error is for those who wait to find.
func (tl *timeline) reap(seq uint64) bool {
	if tl.done.Load() >= seq || !tl.askMu.TryLock() {
		return true
	}
	at, done, err := tl.query(seq, math.MaxUint64, 1)
	tl.askMu.Unlock()
	if at == 0 || !done || err != nil {
		return false
	}
	return tl.retire(at)
}

// busy reports whether work is issued that is not known to be done.
func (tl *timeline) busy() bool { return tl.done.Load() < tl.issued.Load() }
