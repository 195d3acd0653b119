package gpu

import (
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A hostEvent is what a goroutine that has parked is woken by, with the timepoints that it has given to semaphores. When it is used no
// more the first semaphore keeps it for the next who parks. One that was made in a bubble of testing/synctest is used once: its channel
// belongs to that bubble.
type hostEvent struct {
	woken  chan struct{}
	passed atomic.Int32 // how many timepoints have been passed on, which nobody but their owner looks at any more
	tps    []timepoint
	placed []bool // which of them semaphores have been given
	room   [2]timepoint
	roomed [2]bool
	once   bool       // to be used once
	next   *hostEvent // kept by the same semaphore
}

// hostEventFor returns one with a timepoint for each point.
func hostEventFor(points []Point) *hostEvent {
	var e *hostEvent
	once := len(points) == 0 || wake.Bubbled()
	if !once {
		e = points[0].Semaphore.takeHostEvent()
	}
	if e == nil {
		e = &hostEvent{woken: make(chan struct{}, 1), once: once}
		e.tps, e.placed = e.room[:], e.roomed[:]
	}
	n := len(points)
	if n > cap(e.tps) {
		e.tps, e.placed = make([]timepoint, n), make([]bool, n)
	}
	e.tps, e.placed = e.tps[:n], e.placed[:n]
	for i := range e.tps {
		e.tps[i] = timepoint{host: e, index: -1}
	}
	clear(e.placed)
	return e
}

// wake wakes the goroutine, for one of the timepoints. It does not block.
func (e *hostEvent) wake() {
	e.passed.Add(1)
	wake.Nudge(e.woken)
}

// takeBack takes back the timepoints that have not been released. If nobody has any of the others in hand the event can be used again.
func (e *hostEvent) takeBack(points []Point) {
	released := int32(0)
	for i := range e.tps {
		if e.placed[i] && !points[i].Semaphore.cancel(&e.tps[i]) {
			released++
		}
	}
	if e.once || e.passed.Load() != released {
		return
	}
	e.passed.Store(0)
	select {
	case <-e.woken: // who wakes it later than now does no harm: a wait looks whether it is over
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
