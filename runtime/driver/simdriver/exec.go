package simdriver

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

// An exec is an instantiated graph. It includes the nodes of child graphs.
type exec struct {
	dev    *device
	graph  driver.Graph
	tasks  []*task // in an order that the edges allow
	nodes  map[driver.Node]*task
	timers []timing     // timers that nodes of the graph record, sorted by handle
	under  atomic.Int32 // number of launches in flight

	mu    sync.Mutex
	plan  *plan   // the plan of the next launch
	plans []*plan // all plans, which later launches use again
	last  mark    // behind the last launch, in its stream

	before [][]uint64 // for each task, a bit for each task before it; see findOrder
	tracks bool       // the tasks record which memory they use
	run    run

	conditions map[driver.Condition]*condition // conditions of the graph, shared with the bodies
	bodies     []*exec                         // execs of the conditional nodes' bodies
	parent     *exec                           // if this is the exec of a body, the exec that has the body's conditional node
	at         int                             // index of the conditional node's task in parent
}

// A timing is a timer that nodes of an exec record.
type timing struct {
	handle driver.Event
	event  *event
	marks  uint64 // number of nodes that record it
}

// A plan holds the operations of the tasks for a launch. A plan does not change while launches use
// it.
type plan struct {
	exec     *exec
	ops      []operation // one for each task
	launches atomic.Int32
}

// copy makes p equal to another plan of the exec.
func (p *plan) copy(other *plan) {
	for i := range p.ops {
		o, call := &p.ops[i], p.ops[i].call
		*o = other.ops[i]
		if o.call != nil {
			if call == nil {
				call = newCall(o.call.k)
			}
			call.copy(o.call)
			o.call = call
		}
	}
}

// Instantiate makes a graph ready to launch.
func (v *device) Instantiate(h driver.Graph) (driver.Exec, error) {
	if err := v.graphing(codeInstantiate); err != nil {
		return 0, err
	}
	g, err := v.graph(codeInstantiate, h)
	if err != nil {
		return 0, err
	}
	if err := g.notRoot(codeInstantiate, h); err != nil {
		return 0, err
	}
	g.mu.Lock()
	nodes := g.nodes
	g.mu.Unlock()
	x := &exec{dev: v, graph: h, nodes: make(map[driver.Node]*task), conditions: map[driver.Condition]*condition{}}
	x.build(nodes)
	x.track()
	hx := v.d.execs.add(x)
	if hx == 0 {
		return 0, fail(codeInstantiate, errTooMany)
	}
	return driver.Exec(hx), nil
}

// build makes the tasks of an exec.
func (x *exec) build(nodes []node) {
	x.plan = &plan{exec: x}
	x.plans = append(x.plans, x.plan)
	for i, t := range x.add(nodes, nil, "", 0) {
		x.nodes[nodes[i].id] = t
	}
	slices.SortFunc(x.timers, func(a, b timing) int { return cmp.Compare(a.handle, b.handle) })
	x.arrange()
	x.findOrder()
}

// add adds the nodes of a graph. Nodes without predecessors run after entry, if entry is not nil.
// add returns the task of each node; for a child node, this is the task after the child's nodes.
// The argument name is for nodes that have no name of their own. For the nodes of a child node, at
// any depth, outer is the outermost child node. Otherwise outer is 0.
func (x *exec) add(nodes []node, entry *task, name string, outer driver.Node) []*task {
	tasks := make([]*task, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		var after []*task
		for _, a := range n.after {
			after = append(after, tasks[a])
		}
		if len(after) == 0 && entry != nil {
			after = append(after, entry)
		}
		t := x.task(n, after)
		t.name, t.node = cmp.Or(n.name, name), cmp.Or(outer, n.id)
		tasks[i] = t
		if len(n.child) > 0 {
			// A child node becomes two tasks: t before the child's nodes, and another task after
			// its last nodes.
			inner := x.add(n.child, t, t.name, t.node)
			open := make([]bool, len(inner))
			for j := range n.child {
				open[j] = true
				for _, a := range n.child[j].after {
					open[a] = false
				}
			}
			var ends []*task
			for j, t := range inner {
				if open[j] {
					ends = append(ends, t)
				}
			}
			tasks[i] = x.task(&node{id: n.id, kind: driver.ChildNode}, ends)
			tasks[i].inner = inner
		}
		if n.kind == driver.RecordNode {
			x.record(n)
		}
	}
	return tasks
}

// task adds a task for a node.
func (x *exec) task(n *node, after []*task) *task {
	o := n.op
	if o.call != nil {
		o.call = newCall(o.call.k)
		o.call.copy(n.op.call)
	}
	if n.conditional() {
		o.cond = x.condition(n.test.Condition)
	}
	t := &task{exec: x, index: len(x.tasks), kind: n.kind, after: after}
	t.start = t.spawned
	x.tasks = append(x.tasks, t)
	x.plan.ops = append(x.plan.ops, o)
	if n.body != nil {
		x.addBody(t, n)
	}
	return t
}

// record counts n as a node that records a timer.
func (x *exec) record(n *node) {
	for i := range x.timers {
		if x.timers[i].handle == n.event {
			x.timers[i].marks++
			return
		}
	}
	x.timers = append(x.timers, timing{n.event, n.op.event, 1})
}

// DestroyExec destroys an exec. It fails while a launch is in flight.
func (v *device) DestroyExec(h driver.Exec) error {
	err, ok := v.end(codeDestroyExec)
	if !ok {
		return err
	}
	if !v.d.caps.Graphs {
		return v.cannot(codeDestroyExec)
	}
	x, bad := v.exec(codeDestroyExec, h)
	if bad != nil {
		return bad
	}
	if n := x.under.Load(); n > 0 && err == nil {
		return failf(codeDestroyExec, "exec %#x of device %d: %d launches are in flight: %w", uint64(h), v.index, n, ErrBusy)
	}
	v.d.execs.remove(uintptr(h))
	return err
}

// SetNode changes the operation of a node for later launches. Unlike other drivers it accepts any
// size, stride and kind of memory.
func (v *device) SetNode(h driver.Exec, nh driver.Node, op *driver.NodeOp) error {
	if _, err := v.submit(codeSetNode); err != nil {
		return err
	}
	if !v.d.caps.Graphs {
		return v.cannot(codeSetNode)
	}
	x, err := v.exec(codeSetNode, h)
	if err != nil {
		return err
	}
	if _, err := v.graph(codeSetNode, x.graph); err != nil {
		return err
	}
	t := x.nodes[nh]
	if t == nil {
		return failf(codeSetNode, "node %#x: %w: it is not in the graph that exec %#x was made from", uint64(nh), ErrInvalidHandle, uint64(h))
	}
	settable := t.kind == driver.TestNode || t.kind == driver.KernelNode || t.kind == driver.FillNode || t.kind == driver.CopyNode || t.kind == driver.ChildNode && v.d.caps.Capture
	if !settable {
		return failf(codeSetNode, "node %#x: %w: nodes of kind %d cannot be changed", uint64(nh), ErrInvalidValue, t.kind)
	}
	f, err := v.checkNode(codeSetNode, op)
	if err != nil {
		return err
	}
	if op.Kind != t.kind {
		return failf(codeSetNode, "node %#x: %w: its kind is %d and cannot change to %d", uint64(nh), ErrInvalidValue, t.kind, op.Kind)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if op.Kind == driver.ChildNode {
		child, err := v.graph(codeSetNode, op.Child)
		if err != nil {
			return err
		}
		child.mu.Lock()
		defer child.mu.Unlock()
		if err := checkChild(codeSetNode, child.nodes, t.exec.parent != nil); err != nil {
			return err
		}
		if err := t.exec.setChild(t, child.nodes); err != nil {
			return failf(codeSetNode, "node %#x: %w", uint64(nh), err)
		}
		return nil
	}
	x = t.exec // the same exec, or the exec of one of its bodies; the mutex locked above protects both
	if was := x.plan.ops[t.index].call; was != nil && was.attrs != op.Launch.Attrs {
		return failf(codeSetNode, "node %#x: %w: the attributes of its launch are %+v and cannot change to %+v", uint64(nh), ErrInvalidValue, was.attrs, op.Launch.Attrs)
	} else if was != nil && was.f != f {
		return failf(codeSetNode, "node %#x: %w: it launches kernel %s and cannot change to %s", uint64(nh), ErrInvalidValue, was.f.name, f.name)
	}
	if o := &x.plan.ops[t.index]; op.Kind == driver.TestNode && (o.cond != x.conditions[op.Test.Condition] || o.n != uint64(op.Test.Low) || o.stride != uint64(op.Test.High)) {
		return failf(codeSetNode, "node %#x: %w: only the address of a test can change", uint64(nh), ErrInvalidValue)
	}
	x.fresh()
	x.plan.ops[t.index].become(op, f)
	return nil
}

// spare returns a plan that no launch uses, and makes one if necessary. The caller holds mu.
func (x *exec) spare() *plan {
	for _, p := range x.plans {
		if p.launches.Load() == 0 {
			return p
		}
	}
	p := &plan{exec: x, ops: make([]operation, len(x.tasks))}
	x.plans = append(x.plans, p)
	return p
}

// SetNodes sets several nodes.
func (v *device) SetNodes(x driver.Exec, nodes []driver.Node, ops []driver.NodeOp) error {
	for i, n := range nodes {
		if err := v.SetNode(x, n, &ops[i]); err != nil {
			return err
		}
	}
	return nil
}

// LaunchGraph launches an exec with the operations that its nodes have now.
func (v *device) LaunchGraph(sh driver.Stream, h driver.Exec) error {
	later, err := v.submit(codeLaunchGraph)
	if err != nil {
		return err
	}
	if !v.d.caps.Graphs {
		return v.cannot(codeLaunchGraph)
	}
	x, err := v.exec(codeLaunchGraph, h)
	if err != nil {
		return err
	}
	s, err := v.working(codeLaunchGraph, sh)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.plan.usable(); err != nil {
		return err
	}
	for i := range x.timers { // in the order of handles, so that two launches do not deadlock
		x.timers[i].event.mu.Lock()
	}
	err = x.recordable()
	if err == nil {
		x.launch(s, later)
	}
	for i := range x.timers {
		x.timers[i].event.mu.Unlock()
	}
	return err
}

// usable returns an error if a library that a node needs is closed. Nodes of bodies count, also if
// the body will not run.
func (p *plan) usable() error {
	for i := range p.ops {
		if c := p.ops[i].call; c != nil && c.usable != nil {
			if err := c.usable(); err != nil {
				return failf(codeLaunchGraph, "%s: %w", c.f.name, err)
			}
		}
	}
	for _, b := range p.exec.bodies {
		if err := p.ops[b.at].body.usable(); err != nil {
			return err
		}
	}
	return nil
}

// recordable returns an error if the timers cannot be recorded now. The caller holds the mutexes of
// the timers.
func (x *exec) recordable() error {
	for i := range x.timers {
		t := &x.timers[i]
		if x.dev.d.events.get(uintptr(t.handle)) != t.event {
			return failf(codeLaunchGraph, "event %#x, which a node records: %w: it was destroyed", uint64(t.handle), ErrInvalidHandle)
		}
		if err := t.event.recordable(t.handle); err != nil {
			return fail(codeLaunchGraph, err)
		}
	}
	return nil
}

// launch adds a launch to a stream. The caller holds x.mu and the mutexes of the timers.
func (x *exec) launch(s *stream, later error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.slot(codeLaunchGraph)
	o.fail, o.plan, o.n = later, x.plan, s.launch.Load()
	x.plan.enter(1)
	x.under.Add(1)
	if l := x.last; l.stream != nil && l.stream != s && l.stream.done.Load() < l.seq && !l.stream.stopped.Load() {
		o.source, o.seq = l.stream, l.seq
	}
	var record uint64
	if len(x.timers) > 0 {
		record = x.dev.d.records.Add(1)
		o.record = record
	}
	s.publish()
	x.last = mark{s, s.tail.Load()}
	for i := range x.timers {
		t := &x.timers[i]
		t.event.stream, t.event.seq = s, x.last.seq
		t.event.timer.record, t.event.timer.marks = record, t.marks
	}
}

// end is called when a launch has executed, or never will.
func (p *plan) end(o *operation) {
	x := p.exec
	if x.dev.d.manual && x.run.launch == o {
		x.run.launch = nil
	}
	p.enter(-1)
	x.under.Add(-1)
}

// exec finds an exec of the device by handle.
func (v *device) exec(c code, h driver.Exec) (*exec, error) {
	x := v.d.execs.get(uintptr(h))
	if x == nil {
		return nil, failf(c, "exec %#x: %w: no such exec, or it was destroyed", uint64(h), ErrInvalidHandle)
	}
	if x.dev != v {
		return nil, failf(c, "exec %#x: %w: it belongs to device %d, not %d", uint64(h), ErrInvalidHandle, x.dev.index, v.index)
	}
	return x, nil
}
