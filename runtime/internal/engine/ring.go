package engine

import (
	"sync"
)

// inFlight returns the number of submissions that have been issued and have neither been retired
// nor failed.
func (tl *Timeline) inFlight() int {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	last := tl.issued.Load()
	n := last + 1 - tl.ring.head
	if ranges := tl.failures.Load(); ranges != nil {
		for _, r := range *ranges {
			if from, to := max(r.first, tl.ring.head), min(r.last, last); from <= to {
				n -= to + 1 - from
			}
		}
	}
	return int(n)
}

// A ring holds the submissions of a timeline that are in flight, by number, from ring.head to
// Timeline.issued. It is a ring buffer.
//
// mu protects the following fields, and Submission.recorded of submissions in the ring. One thing
// is done without mu: a goroutine that holds Timeline.mu adds a submission. That is safe because
// other goroutines read only numbers up to Timeline.issued, which is raised afterwards. To make the
// ring larger, that goroutine locks mu.
type ring struct {
	mu   sync.Mutex
	head uint64 // number of the oldest submission in flight
	buf  []*Submission
}

// put adds a submission. done is a number up to which all submissions have left the ring. The
// caller holds Timeline.mu.
func (r *ring) put(s *Submission, done uint64) {
	if s.Seq-done > uint64(len(r.buf)) {
		r.grow(s.Seq)
	}
	r.buf[s.Seq&uint64(len(r.buf)-1)] = s
}

// grow makes the ring larger, so that the submission with the number seq fits.
func (r *ring) grow(seq uint64) {
	grown := make([]*Submission, max(64, 2*len(r.buf)))
	r.mu.Lock()
	for at := r.head; at < seq; at++ {
		grown[at&uint64(len(grown)-1)] = r.at(at)
	}
	r.buf = grown
	r.mu.Unlock()
}

// at returns the submission with the number seq, which must be in the ring.
func (r *ring) at(seq uint64) *Submission { return r.buf[seq&uint64(len(r.buf)-1)] }

// marked returns the first submission with a number in [from, to] that has an event recorded right
// behind it, or nil. All numbers in [from, to] must be in the ring. The search is short: at least
// every 64th submission has an event recorded behind it (markEvery).
func (r *ring) marked(from, to uint64) *Submission {
	for ; from <= to; from++ {
		if s := r.at(from); s.recorded {
			return s
		}
	}
	return nil
}
