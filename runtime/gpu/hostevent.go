package gpu

import "github.com/puregpu/puregpu/runtime/gpu/internal/wake"

// A hostEvent is what a goroutine that has parked is woken by, with the timepoints that it has given to semaphores. There is no
// pool of them: a channel belongs to the bubble of testing/synctest that it was made in.
type hostEvent struct {
	woken  chan struct{}
	tps    []timepoint
	placed []bool // which of them semaphores have been given
	room   [2]timepoint
	roomed [2]bool
}

// newHostEvent makes one with n timepoints.
func newHostEvent(n int) *hostEvent {
	e := &hostEvent{woken: make(chan struct{}, 1)}
	e.tps, e.placed = e.room[:], e.roomed[:]
	if n > len(e.room) {
		e.tps, e.placed = make([]timepoint, n), make([]bool, n)
	}
	e.tps, e.placed = e.tps[:n], e.placed[:n]
	for i := range e.tps {
		e.tps[i].host, e.tps[i].index = e, -1
	}
	return e
}

// wake wakes the goroutine. It does not block.
func (e *hostEvent) wake() { wake.Nudge(e.woken) }

// takeBack takes back the timepoints that have not been released.
func (e *hostEvent) takeBack(points []Point) {
	for i := range e.tps {
		if e.placed[i] {
			points[i].Semaphore.cancel(&e.tps[i])
		}
	}
}
