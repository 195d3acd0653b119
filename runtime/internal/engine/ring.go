package engine

import (
	"sync"
)

// inFlight returns how many submissions have been issued and are neither retired nor failed.
func (tl *Timeline) inFlight() int {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	last := tl.issued.Load()
	n := last + 1 - tl.ring.head
	if ranges := tl.failures.Load(); ranges != nil {
		for _, r := range *ranges {
			if from, to := max(r.from, tl.ring.head), min(r.to, last); from <= to {
				n -= to + 1 - from
			}
		}
	}
	return int(n)
}

// A ring holds the submissions in flight by number, from head to the timeline's issued.
//
// mu protects the following fields, and the recorded field of submissions in the ring. Submissions
// are added under the timeline's mu, and without the ring's mu: other goroutines read only numbers
// up to issued, which is raised afterwards. The ring's mu is locked only to make the ring larger.
type ring struct {
	mu   sync.Mutex
	head uint64 // number of the oldest
	buf  []*Submission
}

// put adds a submission. Everything up to done has been retired. The caller holds the timeline's
// mu.
func (r *ring) put(s *Submission, done uint64) {
	if s.Seq-done > uint64(len(r.buf)) {
		r.grow(s.Seq)
	}
	r.buf[s.Seq&uint64(len(r.buf)-1)] = s
}

// grow makes the ring larger, before the submission with the number seq is added.
func (r *ring) grow(seq uint64) {
	grown := make([]*Submission, max(64, 2*len(r.buf)))
	r.mu.Lock()
	for at := r.head; at < seq; at++ {
		grown[at&uint64(len(grown)-1)] = r.at(at)
	}
	r.buf = grown
	r.mu.Unlock()
}

// at returns the submission with a number, which must be in the ring.
func (r *ring) at(seq uint64) *Submission { return r.buf[seq&uint64(len(r.buf)-1)] }

// marked returns the first submission with a number in [from, to] that has an event recorded behind
// it, or nil. from must be in the ring. The search is short, because at least every 64th has one.
func (r *ring) marked(from, to uint64) *Submission {
	for ; from <= to; from++ {
		if s := r.at(from); s.recorded {
			return s
		}
	}
	return nil
}
