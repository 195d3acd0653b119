package simdriver

import (
	"math/rand/v2"
	"sync"
)

// A stepper executes the operations of a driver with Config.Deterministic.
type stepper struct {
	mu    sync.Mutex // held by Step, so also while an operation executes
	rand  *rand.Rand
	ready []*stream
}

// Step executes one ready operation, and reports whether there was one. An operation is ready when
// all earlier operations of its stream have executed, its waits are complete, and the stream is not
// stalled. If several streams have a ready operation, [Config.Seed] chooses. A graph launch takes
// at least one step. It takes one step for each operation that its nodes execute, and one when a
// conditional node finds its condition false. Seed chooses among the ready nodes too. A Collect
// takes one step to begin, and one more to end if it waits for other ranks. Without
// [Config.Deterministic] Step does nothing and returns false.
//
// A kernel must not call Step or Run.
func (d *Driver) Step() bool {
	if !d.manual {
		return false
	}
	st := &d.steps
	st.mu.Lock()
	defer st.mu.Unlock()
	st.ready = st.ready[:0]
	d.mu.Lock()
	for _, s := range d.order {
		if s.dev.down.Load() != nil {
			s.drop()
		} else if o := s.peek(); o != nil && s.steppable(o) {
			st.ready = append(st.ready, s)
		}
	}
	d.mu.Unlock()
	if len(st.ready) == 0 {
		return false
	}
	s := st.ready[st.rand.IntN(len(st.ready))]
	o := s.peek()
	if o.code == codeLaunchGraph && o.fail == nil && !o.plan.exec.run.step(s, o, st.rand.IntN) {
		return true
	}
	if s.meet(o) {
		s.execute(o)
	}
	return true
}

// steppable reports whether Step can make progress with o, the stream's oldest operation.
func (s *stream) steppable(o *operation) bool {
	if o.begun() {
		return o.group.over.Load()
	}
	return !s.held() && o.ready()
}

// Run calls Step until no operation is ready. It returns the number of steps.
func (d *Driver) Run() int {
	n := 0
	for d.Step() {
		n++
	}
	return n
}
