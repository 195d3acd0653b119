package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

// A smallRing is a tracer with room for a few records. Except during smallRing.sample, the test
// takes the records rarely, so the tracer drops many.
type smallRing struct {
	tracer *trace.Tracer
	named  []*gpu.Semaphore // the tracer records the name of one that is used, if there is room

	mu     sync.Mutex           // held while records are taken and checked; protects the following fields
	closed map[*gpu.Device]bool // the devices whose closing was recorded
	subs   map[uint64]bool      // IDs of submissions seen
	labels map[string]labelled  // by label
	names  map[string]bool      // names seen
	taken  uint64               // number of records taken
	wrong  []error              // the first errors
	room   [4]trace.Record      // storage for Take
}

// A labelled counts the submissions with one label. It also has the semaphore values that the last
// of these submissions waits for and signals.
type labelled struct {
	times          int
	waits, signals []uint64
}

func newSmallRing(t *testing.T, r *rand.Rand) *smallRing {
	s := &smallRing{closed: map[*gpu.Device]bool{}, subs: map[uint64]bool{}, labels: map[string]labelled{}, names: map[string]bool{}}
	var err error
	s.tracer, err = trace.NewTracer(trace.TracerOptions{Records: 1 << r.IntN(4), Times: trace.Times(r.IntN(3))})
	must(t, err)
	return s
}

// name gives the semaphores names. Later smallRing.tell checks that the tracer records the names.
func (s *smallRing) name(all ...*gpu.Semaphore) {
	for i, x := range all {
		x.SetName(s.nameOf(i))
	}
	s.named = all
}

func (s *smallRing) nameOf(i int) string { return fmt.Sprintf("semaphore %d", i) }

// take takes up to four records and checks them. It reports whether there were any.
func (s *smallRing) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tracer.Take(s.room[:])
	s.taken += uint64(n)
	for i := range s.room[:n] {
		if err := s.look(&s.room[i]); err != nil && len(s.wrong) < 10 {
			s.wrong = append(s.wrong, err)
		}
	}
	return n > 0
}

// sample takes records and calls Tracer.Sample again and again, on another goroutine. The returned
// function ends that goroutine.
func (s *smallRing) sample() (end func()) {
	if s == nil {
		return func() {}
	}
	var ended atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !ended.Load() {
			for s.take() {
			}
			s.tracer.Sample()
			runtime.Gosched()
		}
	})
	return func() {
		ended.Store(true)
		wg.Wait()
	}
}

// look checks and counts a record.
func (s *smallRing) look(r *trace.Record) error {
	// Two kinds of records may come after the record that a device was closed: records of
	// submissions that fail because the device is closed, and records of calls.
	if r.Device != nil && s.closed[r.Device] && r.Kind != trace.KindCall && (r.Kind != trace.KindSubmission || r.Err == nil) {
		return fmt.Errorf("%v %d, %s %q, behind the record that its device was closed: submitted at %v, done at %v: %v", r.Kind, r.ID, r.Op, r.Label, r.Submitted, r.Done, r.Err)
	}
	switch r.Kind {
	case trace.KindClosed:
		s.closed[r.Device] = true
	case trace.KindName:
		s.names[r.Label] = true
	case trace.KindSubmission:
		if s.subs[r.ID] {
			return fmt.Errorf("two records of submission %d", r.ID)
		}
		s.subs[r.ID] = true
		if r.Submitted <= 0 || r.Done < r.Submitted || r.Op == "" || r.Queue == nil || r.Queue.Device() != r.Device {
			return fmt.Errorf("the record of a submission: %+v", *r)
		}
		x := s.labels[r.Label]
		x.times++
		x.waits, x.signals = x.waits[:0], x.signals[:0]
		for _, p := range r.Waits {
			x.waits = append(x.waits, p.Value)
		}
		for _, p := range r.Signals {
			x.signals = append(x.signals, p.Value)
		}
		s.labels[r.Label] = x
	}
	return nil
}

// tell submits barriers that use the semaphores in smallRing.named, until the tracer has recorded
// the names of these semaphores. If a name is not recorded after 100 barriers, tell returns an
// error. The tracer soon has room, because no other work is submitted.
func (s *smallRing) tell(dev *gpu.Device) error {
	for i, x := range s.named {
		for try := 0; ; try++ {
			for s.take() {
			}
			if s.mu.Lock(); s.names[s.nameOf(i)] {
				s.mu.Unlock()
				break
			}
			s.mu.Unlock()
			if try == 100 {
				return fmt.Errorf("the name of %v was never recorded", x)
			}
			if err := dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{x.At(0)}}, gpu.Barrier()); err != nil {
				return err
			}
		}
	}
	return nil
}

// check compares the records with the tracer's statistics and with the graph. Each submission, and
// each opening and closing of a device, must have one record, or the tracer must count that record
// as dropped.
func (s *smallRing) check(of *graph) error {
	for s.take() {
	}
	st := s.tracer.Stats()
	made := uint64(2 * len(of.devs)) // records of opening and closing each device
	err := errors.Join(s.wrong...)
	for id := range s.subs {
		if id == 0 || id > st.Submissions {
			err = errors.Join(err, fmt.Errorf("the record of submission %d, of %d", id, st.Submissions))
		}
	}
	missing := st.Submissions - uint64(len(s.subs))
	switch {
	case st.Records != s.taken:
		err = errors.Join(err, fmt.Errorf("%d records were taken, and %d noted", s.taken, st.Records))
	case missing > st.Dropped:
		err = errors.Join(err, fmt.Errorf("of %d submissions %d have no record, and %d records were dropped", st.Submissions, missing, st.Dropped))
	case st.Records+st.Dropped < st.Submissions+made:
		err = errors.Join(err, fmt.Errorf("%d submissions, and %d more records were made: %+v", st.Submissions, made, st))
	}
	for _, x := range of.nodes {
		r, ok := s.labels[x.label]
		if !ok || !simple[x.what] || x.label == "" {
			continue
		}
		same := r.times == 1 && len(r.waits) == len(x.order.Wait) && len(r.signals) == 1 && r.signals[0] == x.done.Value
		for i := range r.waits {
			same = same && r.waits[i] == x.order.Wait[i].Value
		}
		if !same {
			err = errors.Join(err, fmt.Errorf("%s, %s: %d records, with waits for %v, and signals %v; it was submitted with %v and %v", x.label, x.what, r.times,
				r.waits, r.signals, x.order.Wait, x.order.Signal))
		}
	}
	return err
}
