package simdriver

import (
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.NodeTimer = (*device)(nil)

// nodeTimes holds the times that NodeTimes has not returned yet.
type nodeTimes struct {
	mu   sync.Mutex
	list []driver.NodeTime
}

// maxNodeTimes is the maximum number of times that a device keeps. The device drops later times.
const maxNodeTimes = 1 << 20

// NodeIDs appends the node's only number, which is its handle.
func (v *device) NodeIDs(to []uint64, n driver.Node) []uint64 {
	return append(to, uint64(n))
}

// BeginLaunch sets the launch number of the graphs that are launched in a stream until EndLaunch.
// The device records the times of their nodes.
func (v *device) BeginLaunch(h driver.Stream, launch uint64) {
	if s := v.d.streams.get(uintptr(h)); s != nil {
		s.launch.Store(launch)
	}
}

// EndLaunch ends the effect of BeginLaunch.
func (v *device) EndLaunch(h driver.Stream) { v.BeginLaunch(h, 0) }

// NodeTimes appends the recorded times and forgets them.
func (v *device) NodeTimes(to []driver.NodeTime, _ bool) []driver.NodeTime {
	t := &v.nodeTimes
	t.mu.Lock()
	defer t.mu.Unlock()
	to, t.list = append(to, t.list...), t.list[:0]
	return to
}

// begins notes the time at which a task begins, if its launch has a launch number.
func (t *task) begins() {
	if t.exec.run.number != 0 {
		t.begun, t.ended = time.Now(), time.Time{}
	}
}

// ends notes the time at which a task ends, if its launch has a launch number.
func (t *task) ends() {
	if t.exec.run.number != 0 {
		t.ended = time.Now()
	}
}

// tellTimes adds the times of the tasks of an executed launch to the list for NodeTimes, if the
// launch has a launch number. The lock makes launches in different streams look ordered to the race
// detector.
func (r *run) tellTimes(x *exec) {
	if r.number == 0 {
		return
	}
	list := &x.dev.nodeTimes
	list.mu.Lock()
	defer list.mu.Unlock()
	for _, t := range x.tasks {
		if !t.active() || t.kind == driver.RecordNode || t.ended.IsZero() || len(list.list) >= maxNodeTimes {
			continue
		}
		n := driver.NodeTime{Node: uint64(t.node), Launch: r.number, Begun: t.begun, Ended: t.ended}
		if call := r.plan.ops[t.index].call; call != nil {
			n.Kernel = call.f.name
		}
		list.list = append(list.list, n)
	}
}
