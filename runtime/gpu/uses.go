package gpu

import (
	"context"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Uses say which work may touch memory of a pool. They order two sides without a common lock:
//
//   - A submission adds its mark, and then checks that the memory is allocated (timeline.start).
//   - A dealloca marks the memory as freed, and then reads the uses (submission.takeAway).
//
// So the submission finds the memory freed and fails, or the dealloca finds its mark. Uses that the
// order of the dealloca covers cost nothing. If others are left, the dealloca is parked until their
// streams have passed them. No stream waits for them, so a stuck stream holds up no other. Whether the
// signals of the work were reached or have failed does not matter.
type uses struct {
	mu         sync.Mutex // protects the following; a leaf, but that of a recording may be locked under that of a buffer
	marks      frontier
	recordings []*uses // of recordings that hold the buffer: an execution adds one mark there for all buffers
	first      [1]mark // the first storage of marks
}

// add notes that the work at a mark may use the memory.
func (u *uses) add(m mark) {
	u.mu.Lock()
	if u.marks == nil {
		u.marks = u.first[:0]
	}
	u.marks.addLive(m)
	u.mu.Unlock()
}

// lower takes back a mark whose work the stream has not got. That mark may stand for earlier work of
// the timeline too, so it goes down by one instead of away.
func (u *uses) lower(m mark) {
	u.mu.Lock()
	for i := range u.marks {
		if at := &u.marks[i]; at.tl == m.tl && at.seq == m.seq {
			at.seq--
		}
	}
	u.mu.Unlock()
}

// join adds the uses of a recording to those of a buffer that it holds.
func (u *uses) join(recording *uses) {
	u.mu.Lock()
	u.recordings = append(u.recordings, recording)
	u.mu.Unlock()
}

// leave undoes join, when nothing executes the recording any more.
func (u *uses) leave(recording *uses) {
	u.mu.Lock()
	if i := slices.Index(u.recordings, recording); i >= 0 {
		u.recordings = slices.Delete(u.recordings, i, i+1)
	}
	u.mu.Unlock()
}

// left returns the uses that have not been passed, and that neither a timeline's next work nor deps come
// after.
func (u *uses) left(tl *timeline, deps frontier) (left frontier) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range u.marks {
		if !tl.covers(m.tl, m.seq) && !slices.ContainsFunc(deps, func(d mark) bool { return d.tl == m.tl && d.seq >= m.seq }) && !m.retiring() {
			left.add(m)
		}
	}
	for _, r := range u.recordings {
		for _, m := range r.left(tl, deps) {
			left.add(m)
		}
	}
	return left
}

// uses notes that the submission may use the memory that it names. It is about to be issued at the
// mark. The caller holds the timeline's mu.
func (s *submission) uses(m mark) {
	s.eachUse(func(u *uses) { u.add(m) })
}

// unused undoes uses, as the driver has refused the submission. It reports whether a dealloca may have
// seen the mark. Then that dealloca waits for a number that no work has.
func (s *submission) unused(m mark) (seen bool) {
	if s.freed {
		return false
	}
	s.eachUse(func(u *uses) { u.lower(m) })
	for b := range s.named {
		seen = seen || b.from == pooled && b.state.Load() == isFreed
	}
	return seen || s.cold && s.recording != nil // any of its buffers may have been freed
}

// eachUse calls a function for the uses of all that the submission names. A dealloca uses no memory.
func (s *submission) eachUse(fn func(*uses)) {
	if s.freed {
		return
	}
	for b := range s.named {
		if b.from == pooled {
			fn(&b.uses)
		}
	}
	if s.cold && s.recording != nil {
		s.recording.eachUse(fn)
	}
}

// eachUse calls a function for the uses of the recording and of the recordings nested in it.
func (c *CommandBuffer) eachUse(fn func(*uses)) {
	fn(&c.uses)
	for _, n := range c.nested {
		n.eachUse(fn)
	}
}

// takeAway marks the memory of a dealloca as freed, once the waits have been found. It returns deferred if
// the dealloca does not come after all work that may use the memory.
func (s *submission) takeAway() (outcome, error) {
	b := s.keep[0]
	if !s.freed {
		if !b.state.CompareAndSwap(isLive, isFreed) {
			if _, err := (address{late: b}).resolve(); err != nil {
				return refused, err
			}
			return refused, ErrUnallocated
		}
		s.freed = true
	}
	if s.left = b.uses.left(s.q.tl, s.deps); len(s.left) > 0 {
		return deferred, errInUse
	}
	return issuedWork, nil
}

// A parkedFree is a dealloca that is parked until streams have passed the uses of its memory.
type parkedFree struct {
	left   frontier
	cancel context.CancelFunc // ends the wait
	over   chan struct{}      // closed when the dealloca has been issued, is given up, or has something else to wait for
}

// parkedFrees are those of a device's memory.
type parkedFrees struct {
	mu  sync.Mutex // protects all; a leaf
	all []*parkedFree
}

func (f *parkedFrees) add(p *parkedFree) {
	f.mu.Lock()
	f.all = append(f.all, p)
	f.mu.Unlock()
}

func (f *parkedFrees) remove(p *parkedFree) {
	f.mu.Lock()
	f.all = slices.DeleteFunc(f.all, func(q *parkedFree) bool { return q == p })
	f.mu.Unlock()
}

// ready returns those whose uses have been passed. They are about to be tried again.
func (f *parkedFrees) ready() (ready []*parkedFree) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.all {
		if p.left.passed() {
			ready = append(ready, p)
		}
	}
	return ready
}

// awaitUses parks a dealloca until the streams have passed the uses that its own order does not cover.
func (s *submission) awaitUses() {
	ctx, cancel := context.WithCancel(context.Background())
	over := new(sema.Semaphore)
	s.endAwait()
	s.awaiting = &parkedFree{s.left, cancel, make(chan struct{})}
	s.keep[0].dev.frees.add(s.awaiting)
	s.waits = append(s.waits, sema.Point{Semaphore: over, Value: 1})
	s.letGoAll()
	go s.left.signal(ctx, over)
	s.q.enlistAgain(s)
}

// endAwait undoes awaitUses, when over is to be closed.
func (s *submission) endAwait() {
	if p := s.awaiting; p != nil {
		s.awaiting = nil
		p.cancel()
		s.keep[0].dev.frees.remove(p)
		close(p.over)
	}
}

// signal signals a semaphore when the streams have passed the whole frontier, unless the context ends
// before. If one of their devices is lost, nobody can tell: the semaphore fails.
func (f frontier) signal(ctx context.Context, over *sema.Semaphore) {
	if !f.await(ctx) {
		return
	}
	if err := f.lost(); err != nil {
		sema.ReleaseFromHost(over.Fail(err))
		return
	}
	over.Signal(1)
}

// lost returns why a part of the frontier will never be known to be passed.
func (f frontier) lost() error {
	for _, m := range f {
		if err := m.lost(); err != nil {
			return err
		}
	}
	return nil
}

// giveUpFree undoes takeAway, if the dealloca was not issued: the memory is allocated again. If a lost
// device uses it, the buffer is closed: the memory goes back to the pool when that device is closed and
// no longer holds the buffer.
func (s *submission) giveUpFree() {
	s.endAwait()
	if !s.freed {
		return
	}
	s.freed = false
	if b := s.keep[0]; b.state.CompareAndSwap(isFreed, isLive) && s.left.lost() != nil {
		b.Close()
	}
	s.left = nil
}
