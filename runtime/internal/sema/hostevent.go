package sema

import (
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A hostEvent wakes a goroutine that is blocked in Wait or WaitIssued. It contains the timepoints
// that the goroutine registers with semaphores. After the wait, the semaphore of the first point
// usually keeps the host event for a later wait (see hostEvent.finish). In a testing/synctest
// bubble a host event is used only once, because its channel belongs to the bubble.
type hostEvent struct {
	woken  chan struct{}
	passed atomic.Int32 // number of calls of wake: one for each released timepoint
	tps    []Timepoint
	room   [2]Timepoint // storage of tps for up to two points
	once   bool         // the host event is not reused
	next   *hostEvent   // in the semaphore's list of unused host events; protected by the semaphore's mu
}

// hostEventFor returns a host event with a timepoint for each point.
func hostEventFor(points []Point) *hostEvent {
	var e *hostEvent
	once := len(points) == 0 || wake.Bubbled()
	if !once {
		e = points[0].Semaphore.takeHostEvent()
	}
	if e == nil {
		e = &hostEvent{woken: make(chan struct{}, 1), once: once}
		e.tps = e.room[:]
	}
	n := len(points)
	if n > cap(e.tps) {
		e.tps = make([]Timepoint, n)
	}
	e.tps = e.tps[:n]
	for i := range e.tps {
		e.tps[i] = Timepoint{host: e, index: -1}
	}
	return e
}

// wake wakes the goroutine. It is called once for each released timepoint. It does not block.
func (e *hostEvent) wake() {
	e.passed.Add(1)
	wake.Nudge(e.woken)
}

// finish ends a wait. It cancels the timepoints that have not been released, and gives the host
// event to the semaphore of the first point for reuse. The host event is not reused if e.once is
// set, or if hostEvent.wake has yet to be called for a released timepoint.
func (e *hostEvent) finish(points []Point) {
	released := int32(0)
	for i := range e.tps {
		if t := &e.tps[i]; t.on != nil && !t.Cancel() {
			released++
		}
	}
	if e.once || e.passed.Load() != released {
		return
	}
	e.passed.Store(0)
	select {
	case <-e.woken: // if a call of wake has yet to send, that does no harm: the next wait checks its points again
	default:
	}
	points[0].Semaphore.keepHostEvent(e)
}

func (s *Semaphore) takeHostEvent() *hostEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil || s.list.idle == nil {
		return nil
	}
	e := s.list.idle
	s.list.idle, e.next = e.next, nil
	return e
}

func (s *Semaphore) keepHostEvent(e *hostEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list != nil {
		e.next, s.list.idle = s.list.idle, e
	}
}
