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
//   - A dealloca marks the memory as freed, and then reads the uses (record.takeAway).
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
