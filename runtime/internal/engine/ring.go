package engine

import (
	"sync"
)

// inFlight returns how many submissions have been issued, and have neither been retired nor failed.
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

// A ring holds the submissions in flight by number. One goroutine at a time, which holds the timeline's mu, adds one behind
// the last; it takes the ring's mu only to make the ring larger. Everybody else takes mu.
type ring struct {
	mu   sync.Mutex
	head uint64 // number of the oldest
	buf  []*Submission
}

// put adds a submission. done is a number that has been retired.
func (r *ring) put(s *Submission, done uint64) {
	if s.Seq-done > uint64(len(r.buf)) {
		r.grow(s.Seq)
	}
	r.buf[s.Seq&uint64(len(r.buf)-1)] = s
}

// grow makes the ring larger, before a submission with a number is added.
func (r *ring) grow(seq uint64) {
	grown := make([]*Submission, max(64, 2*len(r.buf)))
	r.mu.Lock()
	for at := r.head; at < seq; at++ {
		grown[at&uint64(len(grown)-1)] = r.at(at)
	}
	r.buf = grown
	r.mu.Unlock()
}

// at returns the submission with a number that is in the ring.
func (r *ring) at(seq uint64) *Submission { return r.buf[seq&uint64(len(r.buf)-1)] }

// marked returns the first of the submissions from one that is in the ring up to another that has an event behind it, or nil. It
// has not far to look.
func (r *ring) marked(from, to uint64) *Submission {
	for ; from <= to; from++ {
		if s := r.at(from); s.recorded {
			return s
		}
	}
	return nil
}
