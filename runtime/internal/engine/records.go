package engine

import (
	"sync"

	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// The type records is a timeline's free list of Submissions.
type records struct {
	mu    sync.Mutex // protects the following fields; no other lock is taken while it is held
	first *Submission
	kept  int // number of free Submissions that have an event
	stats sema.PoolStats
}

// Get returns a Submission for an operation of the given kind: a free one, or a new one if none is
// free.
func (tl *Timeline) Get(kind work.Kind) *Submission {
	r := &tl.free
	r.mu.Lock()
	s := r.first
	if s != nil {
		r.first = s.next
		r.stats.Free--
		if s.event != nil {
			r.kept--
		}
	} else {
		r.stats.Made++
		r.stats.Held++
	}
	r.mu.Unlock()
	if s == nil {
		s = tl.NewRecord()
	}
	s.next, s.Op.Kind, s.Action, s.UsesRest = nil, kind, nil, !kind.Plain()
	return s
}

// putAll puts Submissions into the free list. They are linked by next from first to last. If the
// timeline is closed, putAll trims the list.
func (tl *Timeline) putAll(first, last *Submission) {
	kept, n := 0, 1
	for s := first; s != last; s = s.next {
		n++
		if s.event != nil {
			kept++
		}
	}
	if last.event != nil {
		kept++
	}
	r := &tl.free
	r.mu.Lock()
	last.next, r.first = r.first, first
	r.kept += kept
	r.stats.Free += n
	r.mu.Unlock()
	if tl.closed.Load() {
		tl.Trim()
	}
}

// Trim discards the free Submissions, and puts their events back into the pool.
func (tl *Timeline) Trim() {
	r := &tl.free
	r.mu.Lock()
	s := r.first
	r.first, r.kept = nil, 0
	r.stats.Held -= r.stats.Free
	r.stats.Free = 0
	r.mu.Unlock()
	for ; s != nil; s = s.next {
		if s.event != nil {
			s.event.Drop()
		}
	}
}

// TrimRecords discards the device's free Submissions and timepoints. It also removes from the
// device's list the closed timelines that have no work left.
func (d *Device) TrimRecords() {
	d.removeSpent()
	for _, tl := range d.All() {
		tl.Trim()
	}
	d.timepoints.Trim()
}
