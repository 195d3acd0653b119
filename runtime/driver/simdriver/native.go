package simdriver

import (
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
)

var (
	_ driver.Natives  = (*device)(nil)
	_ driver.Capturer = (*device)(nil)
)

// Enter makes the device current on the calling thread. It returns the index of the device that was
// current before plus 1, or 0 if none was.
func (v *device) Enter() (was uintptr, err error) {
	if err := v.enter(codeEnter, false); err != nil {
		return 0, err
	}
	if !v.d.caps.Native {
		return 0, v.cannot(codeEnter)
	}
	if before, ok := v.d.threads.bound(); ok {
		was = uintptr(before) + 1
	}
	v.d.threads.bind(v.index)
	return was, nil
}

// Leave restores the device that was current before Enter. If no device was current, the thread has
// no current device afterwards. Calls of Bind since Enter make no difference. Leave never fails.
// Counters do not count Leave.
func (v *device) Leave(was uintptr) error {
	if was == 0 {
		v.d.threads.forget()
	} else {
		v.d.threads.bind(int(was) - 1)
	}
	return nil
}

// A capture collects the operations of a stream that is being captured.
type capture struct {
	g   *graph
	op  operation // the operation being added
	bad error     // if not nil, EndCapture returns this error and no graph
}

// BeginCapture makes the stream put fills, copies and launches into a graph, each ordered after the
// previous one, instead of executing them.
func (v *device) BeginCapture(h driver.Stream) error {
	if err := v.enter(codeBeginCapture, true); err != nil {
		return err
	}
	if !v.d.caps.Capture {
		return v.cannot(codeBeginCapture)
	}
	s, err := v.stream(codeBeginCapture, h)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.captured.Load() != nil:
		return failf(codeBeginCapture, "stream %#x: %w: it is already capturing", uint64(h), ErrInvalidValue)
	case s.pending() > 0:
		return failf(codeBeginCapture, "stream %#x: %w: %d operations are pending", uint64(h), ErrBusy, s.pending())
	}
	s.captured.Store(&capture{g: &graph{dev: v, index: make(map[driver.Node]int)}})
	return nil
}

// EndCapture ends the capture and returns its graph.
func (v *device) EndCapture(h driver.Stream) (driver.Graph, error) {
	err, ok := v.end(codeEndCapture)
	if !ok {
		return 0, err
	}
	s, bad := v.stream(codeEndCapture, h)
	if bad != nil {
		return 0, bad
	}
	s.mu.Lock()
	c := s.captured.Swap(nil)
	s.mu.Unlock()
	switch {
	case err != nil:
		return 0, err
	case c == nil:
		return 0, failf(codeEndCapture, "stream %#x: %w: it is not capturing", uint64(h), ErrInvalidValue)
	case c.bad != nil:
		return 0, fail(codeEndCapture, c.bad)
	}
	g := v.d.graphs.add(c.g)
	if g == 0 {
		return 0, fail(codeEndCapture, errTooMany)
	}
	return driver.Graph(g), nil
}

// slot returns the place for the next operation. After the caller has set it, publish adds the
// operation to the stream, or to the stream's capture. The caller holds mu.
func (s *stream) slot(c code) *operation {
	if captured := s.captured.Load(); captured != nil {
		captured.op = operation{code: c}
		return &captured.op
	}
	return s.queue.slot(c)
}

// note adds c.op to the graph, as a node after the previous one. If a fault was to make c.op fail
// at execution, the capture fails instead, because a captured operation does not execute.
func (c *capture) note(d *Driver) {
	n := node{id: driver.Node(d.nodes.Add(1)), op: c.op, total: 1}
	if n.op.fail != nil {
		c.bad, n.op.fail = n.op.fail, nil
	}
	if c.g.total == maxNodes {
		c.bad = fmt.Errorf("%w: more than %d nodes", ErrInvalidValue, maxNodes)
		return
	}
	switch c.op.code {
	case codeFill:
		n.kind = driver.FillNode
	case codeLaunch:
		n.kind = driver.KernelNode
	default:
		n.kind = driver.CopyNode
	}
	if last := len(c.g.nodes) - 1; last >= 0 {
		n.after = []int{last}
	}
	n.op.node = n.id
	c.g.index[n.id] = len(c.g.nodes)
	c.g.nodes = append(c.g.nodes, n)
	c.g.total++
}

// setChild makes a child node do the work of another graph. The parameter child holds that graph's
// nodes. t is the task after the nodes of the present child graph. Both graphs must have the same
// number of nodes, with the same kinds, kernels and edges, and no child nodes. The caller holds mu
// of the outermost exec.
func (x *exec) setChild(t *task, child []node) error {
	if len(child) != len(t.inner) {
		return fmt.Errorf("%w: a child of %d nodes instead of %d", ErrInvalidValue, len(child), len(t.inner))
	}
	for i, in := range t.inner {
		was, now := &x.plan.ops[in.index], &child[i]
		if now.kind != in.kind || len(now.child) > 0 || in.inner != nil || now.op.code != was.code ||
			was.call != nil && was.call.f != now.op.call.f || !in.sameEdges(t.inner, now.after) {
			return fmt.Errorf("%w: node %d of the child has another kind, kernel or edges", ErrInvalidValue, i)
		}
	}
	x.fresh()
	for i, in := range t.inner {
		o := &x.plan.ops[in.index]
		id, call := o.node, o.call
		*o = child[i].op
		if o.node = id; o.call != nil {
			call.copy(o.call)
			o.call = call
		}
	}
	return nil
}

// sameEdges reports whether the predecessors of t are exactly tasks[i], for each i of the slice
// after, in this order. tasks are the tasks of a child's nodes. If the slice after is empty, t must
// have no predecessor in the child.
func (t *task) sameEdges(tasks []*task, after []int) bool {
	if len(after) == 0 {
		// The only predecessor must be the task before the child's nodes. The slice tasks does not
		// have that task.
		return len(t.after) == 1 && !slices.Contains(tasks, t.after[0])
	}
	return slices.EqualFunc(t.after, after, func(a *task, i int) bool { return i < len(tasks) && a == tasks[i] })
}

// fresh makes sure that no launch uses the current plan, so that the plan may change. The caller
// holds mu of the outermost exec.
func (x *exec) fresh() {
	if x.plan.launches.Load() > 0 {
		p := x.spare()
		p.copy(x.plan)
		x.plan = p
		if x.parent != nil { // the parent's plan must refer to p, and a launch may be using that plan too
			x.parent.fresh()
			x.parent.plan.ops[x.at].body = p
		}
	}
}
