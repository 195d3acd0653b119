package gpu

import (
	"github.com/puregpu/puregpu/runtime/driver"
)

// Priority returns the queue's priority: the priority in [Options], or the nearest in the device's
// range. A lower number is more urgent: when multiprocessors of the device become free, blocks of
// kernels in the most urgent queue run first. Running blocks are not interrupted. The priority is
// only a hint to the driver: it says nothing about order, and copies and fills need not follow it.
// A communicator's queue has priority 0. The queue of an adopted stream has the stream's priority.
func (q *Queue) Priority() int {
	if q == nil {
		return 0
	}
	return q.priority
}

// newStream makes the stream of queue i, and returns the stream's priority.
func (d *Device) newStream(i int) (s driver.Stream, priority int, err error) {
	if i < len(d.opt.Priorities) && d.faces.Priorities != nil {
		priority = d.native.Caps.ClampPriority(d.opt.Priorities[i])
	}
	if priority == 0 {
		s, err = d.native.Native.NewStream()
	} else {
		s, err = d.faces.Priorities.NewPriorityStream(priority)
	}
	return s, priority, err
}
