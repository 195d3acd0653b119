package gpu

import (
	"fmt"
)

// SetName gives the queue a name for errors, traces and [Device.Parked]. An empty name removes the
// queue's name.
func (q *Queue) SetName(name string) {
	if q != nil {
		q.name.Store(&name)
	}
}

// String names the queue and its device, for example: queue "copies" of H200, queue 0 of H200,
// native stream 0x7f10 of H200.
func (q *Queue) String() string {
	if q == nil || q.dev == nil {
		return "no queue"
	}
	return q.mention() + " of " + q.dev.native.Info.Name
}

// mention is like String, without the device.
func (q *Queue) mention() string {
	name := q.name.Load()
	switch {
	case name != nil && *name != "":
		return fmt.Sprintf("queue %q", *name)
	case q.tl.Adopted:
		return fmt.Sprintf("native stream %#x", uintptr(q.tl.Stream))
	case q.tl.Lane == nil:
		return fmt.Sprintf("queue %d", q.index)
	}
	return q.tl.Lane.Describe()
}
