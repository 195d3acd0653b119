package gpu

import (
	"fmt"
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

	retireMu sync.Mutex // one at a time asks the device and retires
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
	e, err := tl.dev.events.get(onThread) // before the lock: the pool may have to grow on the device's thread
	if err != nil {
		tl.dev.failSubmission(s, err)
		return
	}
	tidy, middle := false, uint64(0)
	tl.mu.Lock()
	how, err := tl.submit(s, e)
	var released *timepoint
	if how == issuedWork {
		released = tl.publish(s)
		tl.ringMu.Lock() // only now may it be retired, and recycled
		tl.ring.push(s)
		tidy = tl.ring.n&(tidyEvery-1) == 0
		middle = tl.ring.front().seq + uint64(tl.ring.n/2)
		tl.ringMu.Unlock()
	}
	tl.mu.Unlock()
	if how != issuedWork {
		e.drop()
	}
	var on *Device
	if onThread {
		on = tl.dev
	}
	switch {
	case err != nil:
		tl.dev.failSubmission(s, err)
	case how == nothingToDo:
		release(tl.dev.complete(s), on)
	case how == foreign:
		s.hostly = true
		s.q.enlist(s, onThread)
	default:
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
	notIssued   outcome = iota
	issuedWork          // it is in the stream
	nothingToDo         // a barrier whose waits have all been reached
	foreign             // it waits for a device of another driver, which only the host can do
)

// submit makes the native calls. e is the event to record.
func (tl *timeline) submit(s *submission, e *event) (outcome, error) {
	if err := tl.dev.failed(); err != nil {
		return notIssued, err
	}
	defer func() {
		for i := range s.deps {
			s.deps[i].event.drop()
			s.deps[i] = point{}
		}
		s.deps = s.deps[:0]
	}()
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
			default:
				s.deps = addDep(s.deps, p)
			}
		}
	}
	if s.op == opBarrier && !ahead {
		return nothingToDo, nil
	}
	seq := tl.issued.Load() + 1
	for _, p := range s.deps {
		if err := tl.dev.drv.StreamWait(tl.h, p.event.h); err != nil {
			return notIssued, err
		}
		tl.addCover(p.tl, p.seq, seq)
		if !tl.dev.caps.RerecordEvents {
			p.event.hold()
			s.held = append(s.held, p.event)
		}
	}
	if err := s.start(tl); err != nil {
		return notIssued, err
	}
	if err := tl.dev.drv.Record(e.h, tl.h); err != nil {
		return notIssued, err
	}
	s.seq, s.event = seq, e
	tl.issued.Store(seq)
	return issuedWork, nil
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
	var first *timepoint
	end := &first
	for _, p := range s.signals {
		*end = p.Semaphore.publish(point{p.Value, tl, s.seq, s.event})
		for *end != nil {
			end = &(*end).next
		}
	}
	return first
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
	if tl.done.Load() >= seq || !tl.retireMu.TryLock() {
		return false
	}
	retired, err := tl.ask(seq)
	tl.retireMu.Unlock()
	if err != nil {
		tl.dev.lose(err)
		return true
	}
	return retired
}

func (tl *timeline) ask(seq uint64) (retired bool, err error) {
	tl.ringMu.Lock()
	oldest, newest := tl.ring.front(), tl.ring.find(seq)
	tl.ringMu.Unlock()
	if oldest == nil {
		return false, nil
	}
	for _, s := range [...]*submission{newest, oldest} {
		done, err := tl.dev.drv.Query(s.event.h)
		if err != nil {
			return false, err
		}
		if done {
			tl.retire(s.seq)
			return true, nil
		}
		if newest == oldest {
			break
		}
	}
	return false, nil
}

// retire completes all work up to seq. The caller holds retireMu.
func (tl *timeline) retire(seq uint64) {
	for {
		tl.ringMu.Lock()
		s := tl.ring.front()
		if s == nil || s.seq > seq {
			tl.ringMu.Unlock()
			return
		}
		tl.ring.pop()
		tl.ringMu.Unlock()
		tl.done.Store(s.seq)
		release(tl.dev.complete(s), tl.dev)
	}
}

// drain takes everything out of the ring, for a device that is lost.
func (tl *timeline) drain() (first *submission) {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
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
