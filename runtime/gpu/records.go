package gpu

import (
	"sync"

	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A records holds the records of a timeline's submissions that are free.
type records struct {
	mu    sync.Mutex // protects what follows; a leaf
	first *submission
	kept  int // events of the free ones
	stats ObjectStats
}

// get takes a record. The zero queue, which takes no work, has one made.
func (q *Queue) get(kind work.Kind) *submission {
	if q.tl == nil {
		return newSubmission(q)
	}
	r := &q.tl.free
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
		s = newSubmission(q)
	}
	s.next, s.op.Kind, s.act, s.cold = nil, kind, actions[kind], !kind.Plain()
	return s
}

// putAll puts a chain of records back.
func (tl *timeline) putAll(first, last *submission) {
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
		tl.trim()
	}
}

// trim drops the free records, whose events go back to the pool.
func (tl *timeline) trim() {
	r := &tl.free
	r.mu.Lock()
	s := r.first
	r.first, r.kept = nil, 0
	r.stats.Held -= r.stats.Free
	r.stats.Free = 0
	r.mu.Unlock()
	for ; s != nil; s = s.next {
		if s.event != nil {
			s.event.drop()
		}
	}
}

// addTo adds the records to what a device holds.
func (r *records) addTo(s *Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Events.Free += r.kept
	s.Records.Made += r.stats.Made
	s.Records.Held += r.stats.Held
	s.Records.Free += r.stats.Free
}
