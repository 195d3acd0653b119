package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Uses are the marks of the work that may touch an allocation of a pool, growing memory, or the
// buffers of a recording. Two kinds of submissions access these marks without a common lock:
//
//   - A submission that uses the memory first adds its mark, and then checks that the memory is
//     allocated (Timeline.start).
//   - A submission that frees the memory first records that the memory is freed, and then reads the
//     uses (Uses.Left).
//
// So either the submission that uses the memory finds the memory freed and fails, or the free finds
// the mark of that submission. A free need not wait for uses that it is ordered after anyway. If
// other uses are left, the free is parked until the streams have passed those uses. No stream waits
// for that, so a stuck stream does not block others. It does not matter whether the signals of the
// work were reached or have failed.
//
// Shrinking growing memory works in the same way: it lowers the size that work may use, and then
// reads the uses (Uses.InFlight).
type Uses struct {
	mu    sync.Mutex // protects the following fields; no other lock is taken while it is held
	marks Frontier
	// recordings has the uses of the recordings that contain the buffer. An execution adds its mark
	// to the uses of the executed recording, and not to the uses of each buffer.
	recordings []*Uses
	first      [1]Mark // the first storage of the field marks, for one mark
}

// Add records that the work with the mark m may use the memory.
func (u *Uses) Add(m Mark) {
	u.mu.Lock()
	if u.marks == nil {
		u.marks = u.first[:0]
	}
	u.marks.AddLive(m)
	u.mu.Unlock()
}

// Lower undoes Add for work that the driver has refused. The mark may also stand for earlier work
// of the timeline, which Add merged into it. So Lower reduces the number of the mark by one, and
// does not remove the mark.
func (u *Uses) Lower(m Mark) {
	u.mu.Lock()
	for i := range u.marks {
		if at := &u.marks[i]; at.Timeline == m.Timeline && at.Seq == m.Seq {
			at.Seq--
		}
	}
	u.mu.Unlock()
}

// Join adds the uses of a recording to the uses of a buffer that the recording contains.
func (u *Uses) Join(recording *Uses) {
	u.mu.Lock()
	u.recordings = append(u.recordings, recording)
	u.mu.Unlock()
}

// Leave undoes Join. The caller makes sure that no execution of the recording is in flight.
func (u *Uses) Leave(recording *Uses) {
	u.mu.Lock()
	if i := slices.Index(u.recordings, recording); i >= 0 {
		u.recordings = slices.Delete(u.recordings, i, i+1)
	}
	u.mu.Unlock()
}

// InFlight returns the uses that are not known to be done.
func (u *Uses) InFlight() Frontier { return u.Left(nil, nil) }

// Left returns the uses that a free on tl must still wait for. It leaves out a use that is done,
// and a use that the free is ordered after, by the free's stream or by the free's waits (deps). If
// tl is nil, no stream orders the free.
func (u *Uses) Left(tl *Timeline, deps Frontier) (left Frontier) {
	var ofMarks [8]Mark
	var ofRecordings [8]*Uses
	u.mu.Lock()
	marks, recordings := append(ofMarks[:0], u.marks...), append(ofRecordings[:0], u.recordings...)
	u.mu.Unlock()
	for _, m := range marks {
		covered := slices.ContainsFunc(deps, func(d Mark) bool { return d.Timeline == m.Timeline && d.Seq >= m.Seq })
		if !covered && (tl == nil || !tl.Covers(m.Timeline, m.Seq)) && !m.Retiring() {
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

// Signal blocks until the streams have passed all marks, and then signals 1 on the semaphore done.
// If the context ends first, nothing is signalled. If the device of a mark is lost, so that nobody
// will ever know whether its stream has passed the mark, Signal fails the semaphore.
func (f Frontier) Signal(ctx context.Context, done *sema.Semaphore) {
	if !f.Await(ctx) {
		return
	}
	if err := f.Lost(); err != nil {
		sema.ReleaseFromHost(done.Fail(err))
		return
	}
	done.Signal(1)
}

// Lost returns the first error of Mark.Lost for a mark of the frontier, or nil. If Lost returns an
// error, nobody will ever know whether the stream has passed that mark.
func (f Frontier) Lost() error {
	for _, m := range f {
		if err := m.Lost(); err != nil {
			return err
		}
	}
	return nil
}
