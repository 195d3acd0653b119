package gpu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A timeline is a stream with its work numbered in order: one number says what is done.
type timeline struct {
	dev *Device
	h   driver.Stream

	mu     sync.Mutex // held while work is issued
	issued atomic.Uint64
	done   atomic.Uint64
	wanted atomic.Uint64 // somebody is parked until this is done

	coverMu sync.Mutex // a leaf
	cover   []covered

	ringMu sync.Mutex // a leaf
	ring   ring

	askMu    sync.Mutex // one at a time asks the device
	failed   int        // how often in a row that failed; under askMu
	retireMu sync.Mutex // one at a time retires; held for no timeline while another's is taken

	goneMu sync.Mutex // a leaf
	gone   []gone

	replacing atomic.Bool     // the device's thread will call replace
	old       []driver.Stream // streams that will never move again; the thread's, as is:
	limbo     []*submission   // what is in them
}

// gone says that the work from one number up to another was given up, and why.
type gone struct {
	from, to uint64 // without from
	err      error
}

// losses counts how often work was given up anywhere. While it is 0 nobody need look for that.
var losses atomic.Int64

// gone returns why the work at a mark was given up, if it was.
func (m mark) gone() error {
	if losses.Load() == 0 {
		return nil
	}
	m.tl.goneMu.Lock()
	defer m.tl.goneMu.Unlock()
	for _, g := range m.tl.gone {
		if m.seq > g.from && m.seq <= g.to {
			return g.err
		}
	}
	return nil
}

// stuck returns why the oldest work will never be done: it comes after something that was given up. Where it comes after
// something that is only late, those who can tell are asked.
func (tl *timeline) stuck() (err error) {
	if losses.Load() == 0 {
		return nil
	}
	var late []mark
	tl.ringMu.Lock()
	if s := tl.ring.front(); s != nil {
		for _, m := range s.follows {
			if err = m.gone(); err != nil {
				break
			}
			if m.tl.done.Load() < m.seq {
				late = append(late, m)
			}
		}
	}
	tl.ringMu.Unlock()
	for _, m := range late {
		if m.tl.dev.caps.SubmitAnywhere {
			m.tl.poll(m.seq)
		} else {
			m.tl.want(m.seq)
		}
	}
	return err
}

// replace gives up a stream that is stuck, with what is in it, and takes another. It runs on the device's thread. What the
// work holds stays until the device is closed, for nobody knows what becomes of the stream.
func (tl *timeline) replace() {
	defer tl.replacing.Store(false)
	if tl.dev.lost.Load() != nil {
		return
	}
	h, err := tl.dev.drv.NewStream()
	if err != nil {
		tl.dev.lose(err)
		return
	}
	tl.mu.Lock()
	if err = tl.stuck(); err == nil {
		tl.mu.Unlock()
		tl.old = append(tl.old, h)
		return
	}
	tl.old = append(tl.old, tl.h)
	tl.h = h
	tl.coverMu.Lock()
	tl.cover = nil
	tl.coverMu.Unlock()
	list := tl.drain(err)
	tl.mu.Unlock()
	for s := list; s != nil; {
		next := s.next
		s.next = nil
		tl.limbo = append(tl.limbo, s)
		release(tl.dev.failSignals(s, err), tl.dev)
		s = next
	}
}

// maxFailed is how often in a row asking a device may fail before it counts as lost.
const maxFailed = 8

// A mark is a place in a timeline.
type mark struct {
	tl  *timeline
	seq uint64
}

// covered says that a timeline's work is ordered after seq of another, from its own number at on.
type covered struct {
	of  *timeline
	seq uint64
	at  uint64
}

// covers reports whether all later work is ordered after seq of another timeline already.
func (tl *timeline) covers(of *timeline, seq uint64) bool {
	if of == tl || of.done.Load() >= seq {
		return true
	}
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	for i := range tl.cover {
		if tl.cover[i].of == of {
			return tl.cover[i].seq >= seq
		}
	}
	return false
}

// addCover notes a wait for seq of another timeline, and whatever that one had waited for by then.
func (tl *timeline) addCover(of *timeline, seq, at uint64) {
	var inherited [16]covered
	n := 0
	of.coverMu.Lock()
	for _, c := range of.cover {
		if c.at <= seq && c.of != tl && n < len(inherited) {
			inherited[n] = c
			n++
		}
	}
	of.coverMu.Unlock()
	tl.coverMu.Lock()
	defer tl.coverMu.Unlock()
	tl.note(of, seq, at)
	for _, c := range inherited[:n] {
		tl.note(c.of, c.seq, at)
	}
}

func (tl *timeline) note(of *timeline, seq, at uint64) {
	for i := range tl.cover {
		if c := &tl.cover[i]; c.of == of {
			if seq > c.seq {
				c.seq, c.at = seq, at
			}
			return
		}
	}
	tl.cover = append(tl.cover, covered{of, seq, at})
}

// want has the device's thread ask until seq is done.
func (tl *timeline) want(seq uint64) {
	for {
		now := tl.wanted.Load()
		if now >= seq {
			return
		}
		if tl.wanted.CompareAndSwap(now, seq) {
			tl.dev.signalThread()
			return
		}
	}
}

// tidyEvery is after how many submissions in flight the submitter looks which are done; a power of two.
const tidyEvery = 64

// issue gives a submission whose waits are all issued to the device, and publishes what it signals. It runs in the caller
// or on the device's thread.
func (tl *timeline) issue(s *submission, onThread bool) {
	if err := tl.dev.halted(); err != nil {
		tl.dev.failSubmission(s, err)
		return
	}
	e, err := tl.dev.events.get(onThread) // before the lock: the pool may have to grow on the device's thread
	if err != nil {
		tl.dev.check(err)
		tl.dev.failSubmission(s, err)
		return
	}
	tidy, middle := false, uint64(0)
	tl.mu.Lock()
	how, err := tl.submit(s, e)
	var released *timepoint
	switch how {
	case issuedWork:
		released = tl.publish(s)
	case issuedBroken: // its signals fail now, and what it holds stays until the stream has passed it
		released = tl.dev.failSignals(s, err)
	}
	if how == issuedWork || how == issuedBroken {
		tl.ringMu.Lock() // only now may it be retired, and recycled
		tl.ring.push(s)
		tidy = tl.ring.n&(tidyEvery-1) == 0
		middle = tl.ring.front().seq + uint64(tl.ring.n/2)
		tl.ringMu.Unlock()
	}
	tl.mu.Unlock()
	var on *Device
	if onThread {
		on = tl.dev
	}
	switch how {
	case notIssued:
		e.drop()
		tl.dev.failSubmission(s, err)
	case refused:
		e.drop()
		tl.dev.check(err)
		tl.dev.failSubmission(s, err)
	case nothingToDo:
		e.drop()
		release(tl.dev.complete(s), on)
	case foreign:
		e.drop()
		s.hostly = true
		s.q.enlist(s, onThread)
	default:
		if how == issuedBroken {
			tl.dev.check(err)
		}
		release(released, on)
		if tidy && (onThread || tl.dev.caps.SubmitAnywhere) {
			tl.poll(middle) // so that records and events come back though nobody waits
		}
		if tl.dev.lost.Load() != nil { // it may have been lost before this was in the ring
			tl.dev.failInFlight()
		}
	}
}

// An outcome is what became of a submission that was to be issued.
type outcome int

const (
	notIssued    outcome = iota // what it waits for has failed
	refused                     // by the driver; the stream has nothing of it
	issuedWork                  // it is in the stream
	issuedBroken                // a part of it is in the stream, with the event behind it
	nothingToDo                 // a barrier whose waits have all been reached
	foreign                     // it waits for a device of another driver, which only the host can do
)

// submit makes the native calls. e is the event to record.
func (tl *timeline) submit(s *submission, e *event) (outcome, error) {
	if err := tl.dev.halted(); err != nil {
		return notIssued, err
	}
	defer func() {
		for i := range s.deps {
			s.deps[i].event.drop()
			s.deps[i] = point{}
		}
		s.deps = s.deps[:0]
	}()
	s.follows = s.follows[:0]
	ahead := false
	for _, w := range s.waits {
		switch how, p, err := w.Semaphore.resolve(w.Value, nil); how {
		case failed:
			return notIssued, err
		case unknown:
			return notIssued, fmt.Errorf("gpu: a wait for %d was taken back after it had been issued", w.Value)
		case ordered:
			ahead = true
			switch {
			case p.tl.dev.of != tl.dev.of:
				p.event.drop()
				return foreign, nil
			case tl.covers(p.tl, p.seq):
				p.event.drop()
				if err := (mark{p.tl, p.seq}).gone(); err != nil {
					return notIssued, err
				}
			default:
				s.deps = addDep(s.deps, p)
			}
		}
	}
	if s.op == opBarrier && !ahead {
		return nothingToDo, nil
	}
	seq := tl.issued.Load() + 1
	started, err := tl.start(s, seq)
	if err == nil {
		started = true
		err = tl.dev.drv.Record(e.h, tl.h)
	}
	switch {
	case err == nil:
	case !started:
		return refused, err
	default:
		// The stream has got something of it, and only an event can say when that is over. If there cannot be one, nobody
		// will ever know what the device still does.
		if again := tl.dev.drv.Record(e.h, tl.h); again != nil {
			tl.dev.lost.CompareAndSwap(nil, tl.dev.lostBy(again))
			return refused, err
		}
	}
	s.seq, s.event = seq, e
	tl.issued.Store(seq)
	if err != nil {
		return issuedBroken, err
	}
	return issuedWork, nil
}

// start makes the native calls of a submission up to its event. It reports whether the stream has got any of them.
func (tl *timeline) start(s *submission, seq uint64) (started bool, err error) {
	for _, p := range s.deps {
		if p.tl.dev != tl.dev && !p.tl.dev.lend(mark{tl, seq}) {
			continue // that device is closed: its work is done, or was given up
		}
		if err := tl.dev.drv.StreamWait(tl.h, p.event.h); err != nil {
			return started, err
		}
		started = true
		tl.addCover(p.tl, p.seq, seq)
		s.follows = append(s.follows, mark{p.tl, p.seq})
		if !tl.dev.caps.RerecordEvents {
			p.event.hold()
			s.held = append(s.held, p.event)
		}
	}
	return started, s.start(tl)
}

// addDep keeps, of the points on one timeline, the last.
func addDep(deps []point, p point) []point {
	for i := range deps {
		if deps[i].tl == p.tl {
			if p.seq > deps[i].seq {
				deps[i], p = p, deps[i]
			}
			p.event.drop()
			return deps
		}
	}
	return append(deps, p)
}

// publish tells the semaphores what is coming, now that the event has been recorded.
func (tl *timeline) publish(s *submission) *timepoint {
	var released timepointList
	for _, p := range s.signals {
		released.join(p.Semaphore.publish(point{p.Value, tl, s.seq, s.event}))
	}
	return released.first
}

// start makes the native call of the operation itself.
func (s *submission) start(tl *timeline) error {
	d := tl.dev.drv
	switch s.op {
	case opFill:
		return d.Fill(tl.h, s.dst, s.pattern, s.width, s.n)
	case opCopy:
		return d.Copy(tl.h, s.dst, s.src, s.n)
	case opUpload:
		return d.Upload(tl.h, s.dst, s.stage.host, s.n)
	case opDownload:
		return d.Download(tl.h, s.stage.host, s.src, s.n)
	case opDispatch:
		return d.Launch(tl.h, &s.launch)
	}
	return nil
}

// poll asks the device whether it has done seq, and if so retires everything up to there; if not, whether the oldest work
// is done. It reports whether something was retired. It never blocks: if another goroutine is at it, that is good enough.
func (tl *timeline) poll(seq uint64) bool {
	if tl.done.Load() >= seq || !tl.askMu.TryLock() {
		return false
	}
	done, err := tl.ask(seq)
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
		if tl.stuck() != nil && tl.replacing.CompareAndSwap(false, true) {
			tl.dev.post(tl.replace)
		}
		return false
	}
	tl.retire(done)
	return true
}

// ask returns the number of the last submission up to seq that it finds done, or 0. It asks for seq itself, then for the
// oldest, and from there on in growing steps.
func (tl *timeline) ask(seq uint64) (done uint64, err error) {
	at, ok, err := tl.query(seq)
	switch {
	case err != nil || at == 0:
		return 0, err
	case ok:
		return at, nil
	}
	last := at // not done
	for next, step := tl.done.Load()+1, uint64(1); next < last; next, step = done+step, 2*step {
		at, ok, err := tl.query(next)
		if at == 0 || !ok || err != nil {
			return done, err
		}
		done = at
	}
	return done, nil
}

// query asks whether a submission is done, or the newest if seq has not been issued. at is the one that was asked for, 0
// if nothing is in flight.
func (tl *timeline) query(seq uint64) (at uint64, done bool, err error) {
	tl.ringMu.Lock()
	s := tl.ring.find(seq)
	if s == nil {
		tl.ringMu.Unlock()
		return 0, false, nil
	}
	at, e := s.seq, s.event
	e.hold() // it may be retired meanwhile, for something else that is done
	tl.ringMu.Unlock()
	done, err = tl.dev.drv.Query(e.h)
	e.drop()
	return at, done, err
}

// retire completes all work up to seq, which is done, and before it whatever it came after on other timelines: who sees one
// submission done sees everything that it waited for done.
func (tl *timeline) retire(seq uint64) {
	for {
		before := tl.retireReady(seq)
		if before.tl == nil {
			return
		}
		before.tl.retire(before.seq)
		if before.tl.done.Load() < before.seq {
			runtime.Gosched() // it is being issued
		}
	}
}

// retireReady completes work up to seq, or up to a submission that came after something which is not complete; that it
// returns.
func (tl *timeline) retireReady(seq uint64) (before mark) {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	for {
		tl.ringMu.Lock()
		s := tl.ring.front()
		if s == nil || s.seq > seq {
			tl.ringMu.Unlock()
			return mark{}
		}
		for _, m := range s.follows {
			if m.tl.done.Load() < m.seq {
				tl.ringMu.Unlock()
				return m
			}
		}
		tl.ring.pop()
		tl.ringMu.Unlock()
		now := s.seq
		var err error
		for _, m := range s.follows {
			if err == nil {
				err = m.gone()
			}
		}
		var released *timepoint
		if err == nil {
			released = tl.dev.complete(s)
		} else {
			released = tl.dev.failSignals(s, err)
			tl.dev.recycle(s)
		}
		tl.done.Store(now)
		release(released, tl.dev)
	}
}

// drain takes everything out of the ring and gives it up.
func (tl *timeline) drain(err error) (first *submission) {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	if from, to := tl.done.Load(), tl.issued.Load(); from < to {
		tl.goneMu.Lock()
		tl.gone = append(tl.gone, gone{from, to, err})
		tl.goneMu.Unlock()
		losses.Add(1)
	}
	tl.ringMu.Lock()
	defer tl.ringMu.Unlock()
	end := &first
	for s := tl.ring.front(); s != nil; s = tl.ring.front() {
		tl.ring.pop()
		s.next = nil
		*end, end = s, &s.next
	}
	tl.done.Store(tl.issued.Load())
	return first
}

// busy reports whether work is issued that is not known to be done.
func (tl *timeline) busy() bool { return tl.done.Load() < tl.issued.Load() }

// A ring is a queue of submissions in a circular buffer.
type ring struct {
	buf  []*submission // a power of two
	head int
	n    int
}

func (r *ring) push(s *submission) {
	if r.n == len(r.buf) {
		grown := make([]*submission, max(64, 2*len(r.buf)))
		for i := range r.n {
			grown[i] = r.buf[(r.head+i)&(len(r.buf)-1)]
		}
		r.buf, r.head = grown, 0
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = s
	r.n++
}

func (r *ring) front() *submission {
	if r.n == 0 {
		return nil
	}
	return r.buf[r.head]
}

func (r *ring) pop() {
	r.buf[r.head] = nil
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
}

// find returns the submission with a sequence number, or the newest one if it has not come that far.
func (r *ring) find(seq uint64) *submission {
	if r.n == 0 {
		return nil
	}
	first := r.buf[r.head].seq // numbers in the ring have no gaps
	i := r.n - 1
	if seq < first+uint64(i) {
		i = int(max(seq, first) - first)
	}
	return r.buf[(r.head+i)&(len(r.buf)-1)]
}
