package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Uses are the marks of the work that may touch memory of a pool. Two sides use them without a
// common lock:
//
//   - A submission adds its mark, and then checks that the memory is allocated (Timeline.start).
//   - An operation that frees the memory marks it as freed, and then reads the uses (Left).
//
// So either the submission finds the memory freed and fails, or the free finds its mark. Uses that
// the free is ordered after anyway cost nothing. If others are left, the free is parked until their
// streams have passed them. No stream waits for that, so a stuck stream does not block others. Only
// the streams count. Whether the signals of the work were reached or have failed does not matter.
type Uses struct {
	mu         sync.Mutex // a leaf; protects the following fields
	marks      Frontier
	recordings []*Uses // of recordings that hold the buffer: an execution adds its mark only there
	first      [1]Mark // first storage of marks
}

// Add records that the work at m may use the memory.
func (u *Uses) Add(m Mark) {
	u.mu.Lock()
	if u.marks == nil {
		u.marks = u.first[:0]
	}
	u.marks.AddLive(m)
	u.mu.Unlock()
}

// Lower undoes Add for work that the driver has refused. The mark may stand for earlier work of the
// timeline too, so it is lowered by one and not removed.
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

// Leave undoes Join. The caller calls it when no execution of the recording is in flight any more.
func (u *Uses) Leave(recording *Uses) {
	u.mu.Lock()
	if i := slices.Index(u.recordings, recording); i >= 0 {
		u.recordings = slices.Delete(u.recordings, i, i+1)
	}
	u.mu.Unlock()
}

// Left returns the uses that are not done, and that the next work of tl is not ordered after,
// neither by its stream nor by deps.
func (u *Uses) Left(tl *Timeline, deps Frontier) (left Frontier) {
	var ofMarks [8]Mark
	var ofRecordings [8]*Uses
	u.mu.Lock()
	marks, recordings := append(ofMarks[:0], u.marks...), append(ofRecordings[:0], u.recordings...)
	u.mu.Unlock()
	for _, m := range marks {
		covered := slices.ContainsFunc(deps, func(d Mark) bool { return d.Timeline == m.Timeline && d.Seq >= m.Seq })
		if !covered && !tl.Covers(m.Timeline, m.Seq) && !m.Retiring() {
			left.Add(m)
		}
	}
	for _, r := range recordings {
		for _, m := range r.Left(tl, deps) {
			left.Add(m)
		}
	}
	return left
}

// Signal waits until the streams have passed all marks, and then signals a semaphore. It does
// nothing if the context ends first. If the device of a mark is lost, so that nobody will ever
// know, Signal fails the semaphore.
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

// Lost returns why one of the marks will never be known to be passed, or nil.
func (f Frontier) Lost() error {
	for _, m := range f {
		if err := m.Lost(); err != nil {
			return err
		}
	}
	return nil
}
