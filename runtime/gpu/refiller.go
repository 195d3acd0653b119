package gpu

import (
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/gpu/internal/work"
)

// Events and staging memory are made by a refiller: a goroutine with a thread to which the device is bound, that comes when a pool runs
// low and goes when it has made some. Who submits takes what is there. A submission that finds a pool empty is starved: it waits in its
// device's backlog until the refiller has made more, and fails if that fails, by the refiller's error.
//
// Queues promise the order of their own calls to memory that is allocated and deallocated without lists of points. So while a
// device has a backlog all that is submitted to it joins that at the end, also what may have to wait for something else: that is
// looked at when its turn comes, for it may come after what is in front of it. The backlog is issued from the front, by one at a time:
// the device's thread, which the refiller wakes, or whoever submits next.

// A backlog holds the starved submissions of a device, in order, and what was submitted after them.
type backlog struct {
	n     atomic.Int32 // how many there are, which includes one that is being issued
	turn  sync.Mutex   // held by who issues them
	again atomic.Bool  // whoever has turn is to look again
	mu    sync.Mutex   // a leaf; protects the list
	first *submission
	last  *submission
}

// farAhead is from how many submissions in the backlog on whoever submits waits for those who issue it. Else a program that submits
// without end, and faster than that, would never see the end of the backlog.
const farAhead = 1024

// push puts a submission at the end.
func (b *backlog) push(s *submission) {
	b.mu.Lock()
	s.next = nil
	if b.first == nil {
		b.first = s
	} else {
		b.last.next = s
	}
	b.last = s
	b.n.Add(1)
	b.mu.Unlock()
}

// pop takes the first submission off the list, or returns nil.
func (b *backlog) pop() *submission {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.first
	if s != nil {
		b.first, s.next = s.next, nil
	}
	return s
}

// unpop puts back what pop has returned.
func (b *backlog) unpop(s *submission) {
	b.mu.Lock()
	if s.next = b.first; b.first == nil {
		b.last = s
	}
	b.first = s
	b.mu.Unlock()
}

// fail has those fail that lack something.
func (b *backlog) fail(lacks func(*submission) bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := b.first; s != nil; s = s.next {
		if lacks(s) {
			s.err.CompareAndSwap(nil, &failure{err})
		}
	}
}

// lacks reports whether a submission needs an event, or staging memory.
func (s *submission) lacks() bool { return s.event == nil || s.lacksStaging() }

func (s *submission) lacksStaging() bool {
	return s.cold && s.op.Kind == work.Download && s.stage == nil
}

// supply gives a submission what it lacks, and reports whether that was there. What is not there is being made from then on.
func (s *submission) supply() bool {
	d := s.q.dev
	if s.event == nil {
		s.event = d.events.take()
	}
	if s.event != nil && s.lacksStaging() {
		s.stage = d.stage.take(int(s.op.Count))
	}
	return !s.lacks()
}

// starve puts a submission into the backlog.
func (d *Device) starve(s *submission) {
	s.letGoAll() // it is found again when it is issued
	s.since = now()
	s.span.parked()
	d.backlog.push(s)
	// The pool may have been refilled since it was found empty.
	d.feed()
}

// awaitBacklog is for who submits far ahead of those who issue the backlog. What these issue may come back to the backlog, so they do not wait here.
func (d *Device) awaitBacklog() {
	if d.backlog.n.Load() > farAhead {
		d.backlog.turn.Lock()
		d.feedInTurn()
		d.feed()
	}
}

// feed issues the backlog, unless somebody else is at it, who then looks again.
func (d *Device) feed() {
	b := &d.backlog
	for b.again.Store(true); b.again.Load() && b.turn.TryLock(); {
		d.feedInTurn()
	}
}

// feedInTurn issues the backlog, as far as there is what the submissions lack. Those for which it could not be made fail. The caller
// holds turn, which feedInTurn lets go of.
func (d *Device) feedInTurn() {
	b := &d.backlog
	defer b.turn.Unlock()
	b.again.Store(false)
	for s := b.pop(); s != nil; s = b.pop() {
		if f := s.err.Load(); f != nil {
			s.q.tl.dismiss(s, refused, f.err)
			b.n.Add(-1)
			continue
		}
		if d.halted() == nil && !s.supply() { // else it fails, whatever it lacks
			b.unpop(s)
			return
		}
		s.fed = true
		if how, _ := s.q.tl.issue(s); how == early {
			s.q.enlistAgain(s)
		}
		b.n.Add(-1)
	}
}

// refill has a goroutine fill a pool, and calls empty when it is through, which reports whether there is nothing in the pool all the
// same. Then those in the backlog fail that lack what it has.
func (d *Device) refill(fill func() error, empty func() bool, lacks func(*submission) bool) {
	if !d.enter() { // what is in the backlog fails because of that
		empty()
		return
	}
	go func() {
		defer d.making.Done()
		err := d.bound(fill)
		if err != nil {
			d.check(err)
		}
		if empty() && err != nil {
			d.backlog.fail(lacks, err)
		}
		if d.backlog.n.Load() > 0 {
			d.signalThread()
		}
	}()
}
