package trace

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/latest"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// The commands of a graph are nodes. No event lies between them. So their times come from a
// driver.NodeTimer: the device itself, or a profiler. With the times of a node, the timer reports
// the node's number and the number of the submission that launched the graph, if it knows them. The
// times may come before or after the record of the submission.

// nodeTimes finds when the commands of a device's graphs ran.
type nodeTimes struct {
	nodeTimer driver.NodeTimer // nil: the nodes of graphs are not timed

	nodesMu  sync.Mutex // protects nodes and launches; no other lock is taken while it is held
	nodes    latest.Map[uint64, nodeOf]
	launches latest.Map[uint64, *launchOf] // by the number of the submission

	room []driver.NodeTime // storage for the results of NodeTimes; protected by deviceTimes.askMu
}

// mostNodes is the number of nodes that a device's observer remembers for certain: the nodes that
// were used last. The observer remembers at most twice as many.
const mostNodes = 1 << 19

// A nodeOf says which command a node of a graph executes.
type nodeOf struct {
	recording *observe.Recording
	command   int
}

// A launchOf is a launch of a graph. The fields next and to are indexes of commands of the
// recording: to is the first index behind the graph. When the number of a node is unknown, the
// method observer.nodeOf searches the commands i with next <= i < to.
type launchOf struct {
	recording *observe.Recording
	next, to  int
}

// findTimer finds the timer of the nodes of the device's graphs. It returns the timer's name, or an
// error if the timer cannot be used. It returns "" and nil if there is no timer or none is needed.
func (o *observer) findTimer() (source string, err error) {
	if o.times != CommandTimes {
		return "", nil
	}
	if own, ok := o.core.Native.(driver.NodeTimer); ok && o.core.Caps.NodeTimes {
		o.nodeTimer = own
		return o.core.Driver.Name(), nil
	}
	p := observe.Profilers.Load()
	if p == nil || p.Driver != o.core.Driver.Name() {
		return "", nil
	}
	if source, err = p.Start(); err != nil {
		return "", err
	}
	o.nodeTimer = p.Timer(o.core.Native)
	return source, nil
}

// TimesNodes reports whether the nodes of graphs are timed.
func (o *observer) TimesNodes() bool { return o.nodeTimer != nil }

// Describes returns true, because the trace lists the commands of recordings.
func (o *observer) Describes() bool { return true }

// NewRecordingID returns the next number for a recording.
func (o *observer) NewRecordingID() uint64 { return o.tracer.recordings.Add(1) }

// Node notes the command that a node executes. If the timer has no number for the node, the method
// nodeOf later finds the command by the name of the command's kernel.
func (o *observer) Node(n driver.Node, r *observe.Recording, command int) {
	ids := o.nodeTimer.NodeIDs(nil, n)
	o.nodesMu.Lock()
	defer o.nodesMu.Unlock()
	for _, id := range ids {
		o.nodes.Set(id, nodeOf{r, command})
	}
}

// launchBegins locks the goroutine to its thread until launchEnds, and tells the timer that this
// thread is about to launch a graph. It does nothing if the nodes are not timed or the submission
// launches no graph.
func (x *span) launchBegins(s *engine.Submission) {
	if x.nodeTimer == nil || !x.rec.Graph || x.rec.recorded == nil {
		return
	}
	x.nodesMu.Lock()
	x.launches.Set(x.rec.ID, &launchOf{x.rec.recorded, x.rec.First, x.rec.First + x.rec.Commands})
	x.nodesMu.Unlock()
	runtime.LockOSThread()
	x.nodeTimer.BeginLaunch(s.Timeline.Stream, x.rec.ID)
	x.launching = s.Timeline.Stream
}

// launchEnds tells the timer that the thread has launched the graph, and unlocks the goroutine from
// the thread. It does nothing if launchBegins did nothing.
func (x *span) launchEnds() {
	if x.launching != 0 {
		x.nodeTimer.EndLaunch(x.launching)
		runtime.UnlockOSThread()
		x.launching = 0
	}
}

// askNodes makes records of the nodes whose times have become known. If last is set, it waits for
// the times of all work that the device has done. The caller holds deviceTimes.askMu.
func (o *observer) askNodes(last bool) {
	if o.nodeTimer == nil {
		return
	}
	o.room = o.nodeTimer.NodeTimes(o.room[:0], last)
	slices.SortStableFunc(o.room, func(a, b driver.NodeTime) int { return a.Begun.Compare(b.Begun) })
	for i := range o.room {
		t := &o.room[i]
		if n := o.nodeOf(t); n.recording != nil {
			o.pushNode(t, n)
		}
	}
}

// nodeOf finds the command of a node, by the node's number. If the number is unknown, nodeOf takes
// the launch's next command with the same kernel. The result is zero if there is none.
func (o *observer) nodeOf(t *driver.NodeTime) nodeOf {
	o.nodesMu.Lock()
	defer o.nodesMu.Unlock()
	if n, ok := o.nodes.Of(t.Node); ok && t.Node != 0 {
		return n
	}
	l, ok := o.launches.Of(t.Launch)
	if !ok || t.Launch == 0 || t.Kernel == "" {
		return nodeOf{}
	}
	for i := l.next; i < l.to; i++ {
		if l.recording.Commands[i].Kernel == t.Kernel {
			l.next = i + 1
			return nodeOf{l.recording, i}
		}
	}
	return nodeOf{}
}

// pushNode adds the record of a node. For a node of a command of the kind work.Native it takes the
// kernel's name from the timer: the command's function may launch several kernels, and only the
// timer knows their names.
func (o *observer) pushNode(t *driver.NodeTime, n nodeOf) {
	c := &n.recording.Commands[n.command]
	begun := max(t.Begun.Sub(o.tracer.start), 1)
	r := Record{Kind: KindNode, ID: t.Launch, Device: o.dev, Op: c.Kind.String(), Label: c.Label, Kernel: c.Kernel, Bytes: c.Bytes, Grid: c.Grid, Block: c.Block,
		Recording: n.recording.ID, Command: n.command, Timed: DeviceTime, Begun: begun, Ended: max(t.Ended.Sub(o.tracer.start), begun), Done: o.tracer.now(), recorded: n.recording}
	if c.Kind == work.Native {
		r.Kernel = cmp.Or(t.Kernel, c.Kernel)
	}
	o.tracer.push(&r)
}
