package engine

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
type Uses struct {
	mu         sync.Mutex // protects the following; a leaf, but that of a recording may be locked under that of a buffer
	marks      Frontier
	recordings []*Uses // of recordings that hold the buffer: an execution adds one mark there for all buffers
	first      [1]Mark // the first storage of marks
}

// Add notes that the work at a mark may use the memory.
func (u *Uses) Add(m Mark) {
	u.mu.Lock()
	if u.marks == nil {
		u.marks = u.first[:0]
	}
	u.marks.AddLive(m)
	u.mu.Unlock()
}

// Lower takes back a mark whose work the stream has not got. That mark may stand for earlier work of
// the timeline too, so it goes down by one instead of away.
func (u *Uses) Lower(m Mark) {
	u.mu.Lock()
	for i := range u.marks {
		if at := &u.marks[i]; at.Timeline == m.Timeline && at.Seq == m.Seq {
			at.Seq--
		}
	}
	u.mu.Unlock()
}

// Join adds the uses of a recording to those of a buffer that it holds.
func (u *Uses) Join(recording *Uses) {
	u.mu.Lock()
	u.recordings = append(u.recordings, recording)
	u.mu.Unlock()
}

// Leave undoes join, when nothing executes the recording any more.
func (u *Uses) Leave(recording *Uses) {
	u.mu.Lock()
	if i := slices.Index(u.recordings, recording); i >= 0 {
		u.recordings = slices.Delete(u.recordings, i, i+1)
	}
	u.mu.Unlock()
}

// Left returns the uses that have not been passed, and that neither a timeline's next work nor deps come
// after.
func (u *Uses) Left(tl *Timeline, deps Frontier) (left Frontier) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range u.marks {
		if !tl.Covers(m.Timeline, m.Seq) && !slices.ContainsFunc(deps, func(d Mark) bool { return d.Timeline == m.Timeline && d.Seq >= m.Seq }) && !m.Retiring() {
			left.Add(m)
		}
	}
	for _, r := range u.recordings {
		for _, m := range r.Left(tl, deps) {
			left.Add(m)
		}
	}
	return left
}

// Signal signals a semaphore when the streams have passed the whole frontier, unless the context ends
// before. If one of their devices is lost, nobody can tell: the semaphore fails.
func (f Frontier) Signal(ctx context.Context, over *sema.Semaphore) {
	if !f.await(ctx) {
		return
	}
	if err := f.Lost(); err != nil {
		sema.ReleaseFromHost(over.Fail(err))
		return
	}
	over.Signal(1)
}

// Lost returns why a part of the frontier will never be known to be passed.
func (f Frontier) Lost() error {
	for _, m := range f {
		if err := m.Lost(); err != nil {
			return err
		}
	}
	return nil
}
