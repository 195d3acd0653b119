package gpu

import (
	"time"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A commOwner is a Device that implements comm.Owner.
type commOwner Device

// NewTimeline makes a queue for a communicator, and returns the timeline of the queue.
func (o *commOwner) NewTimeline() *engine.Timeline { return newQueue((*Device)(o), -1).tl }

// CommunicatorFailed tells the tracer that a communicator has failed.
func (o *commOwner) CommunicatorFailed(err error) {
	observe.Tell(o.memory.Observer, observe.Lost, time.Now(), "", 0, err)
}

// FailOwed fails the semaphores in owed, which a group of a communicator was to signal. tl is the
// communicator's timeline.
func (o *commOwner) FailOwed(tl *engine.Timeline, err error, owed []*sema.Semaphore) {
	all := make([]*Semaphore, len(owed))
	for i, s := range owed {
		all[i] = outer(s)
	}
	FailAll(&SubmitError{Op: work.Collect.String(), Queue: queueOf(tl).mention(), Device: o.native.Info.Name, Err: err}, all...)
}
