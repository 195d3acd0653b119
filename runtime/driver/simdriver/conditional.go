package simdriver

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Conditionals = (*device)(nil)

// A condition is the condition of a conditional node in an exec. Test nodes set the condition.
type condition struct{ on atomic.Bool }

// top returns the graph that g belongs to. This is g itself, unless g is a body.
func (g *graph) top() *graph {
	if g.root != nil {
		return g.root
	}
	return g
}

// ReadyConditionals does nothing, because the simulated GPU needs no preparation.
func (v *device) ReadyConditionals() error {
	return v.enterIf(codeReadyConditionals, true, v.d.caps.Conditionals)
}

// NewCondition makes a condition. In a new exec the condition is false until a test node sets it.
func (v *device) NewCondition(h driver.Graph) (driver.Condition, error) {
	if err := v.enterIf(codeNewCondition, true, v.d.caps.Conditionals); err != nil {
		return 0, err
	}
	g, err := v.graph(codeNewCondition, h)
	if err != nil {
		return 0, err
	}
	g = g.top()
	g.mu.Lock()
	defer g.mu.Unlock()
	c := driver.Condition(v.d.nodes.Add(1))
	if g.conditions == nil {
		g.conditions = map[driver.Condition]bool{}
	}
	g.conditions[c] = false
	return c, nil
}

// checkCondition returns an error if c is not a condition of the graph. If takes is true, c is for
// a conditional node, and must not have been used for another conditional node.
func (g *graph) checkCondition(code code, c driver.Condition, takes bool) error {
	g = g.top()
	g.mu.Lock()
	defer g.mu.Unlock()
	taken, ok := g.conditions[c]
	switch {
	case !ok:
		return failf(code, "condition %#x: %w: the graph has no such condition", uint64(c), ErrInvalidHandle)
	case takes && taken:
		return failf(code, "condition %#x: %w: another conditional node has it", uint64(c), ErrInvalidValue)
	}
	g.conditions[c] = takes || taken
	return nil
}

// AddConditional adds a conditional node. after must not name a node twice.
func (v *device) AddConditional(h driver.Graph, after []driver.Node, op *driver.NodeOp) (driver.Node, driver.Graph, error) {
	if err := v.enterIf(codeAddConditional, true, v.d.caps.Conditionals); err != nil {
		return 0, 0, err
	}
	if op == nil || op.Kind != driver.IfNode && op.Kind != driver.WhileNode {
		return 0, 0, failf(codeAddConditional, "no conditional node: %w", ErrInvalidValue)
	}
	g, err := v.graph(codeAddConditional, h)
	if err == nil {
		err = g.checkCondition(codeAddConditional, op.Test.Condition, true)
	}
	if err != nil {
		return 0, 0, err
	}
	body := &graph{dev: v, index: map[driver.Node]int{}, root: g.top()}
	g.mu.Lock()
	n, err := g.add(codeAddConditional, h, node{kind: op.Kind, name: op.Name, test: op.Test, body: body, total: 1}, after)
	g.mu.Unlock()
	if err != nil {
		return 0, 0, err
	}
	hb := driver.Graph(v.d.graphs.add(body))
	if hb == 0 {
		return 0, 0, fail(codeAddConditional, errTooMany)
	}
	root := g.top()
	root.mu.Lock()
	root.bodies = append(root.bodies, hb)
	root.mu.Unlock()
	return n, hb, nil
}

// conditional reports whether a node is a conditional node or a test node.
func (n *node) conditional() bool { return n.body != nil || n.kind == driver.TestNode }

// checkChild returns an error if a graph with these nodes cannot be a child graph. ofBody says
// whether the parent is a body.
func checkChild(c code, nodes []node, ofBody bool) error {
	if slices.ContainsFunc(nodes, func(n node) bool { return n.conditional() }) {
		return failf(c, "%w: a child graph with conditional nodes or tests", ErrInvalidValue)
	}
	if ofBody && slices.ContainsFunc(nodes, func(n node) bool { return n.kind == driver.RecordNode }) {
		return failf(c, "%w: a child that records an event, in the body of a conditional node", ErrInvalidValue)
	}
	return nil
}

// addBody makes the exec of a conditional node's body.
func (x *exec) addBody(t *task, n *node) {
	b := &exec{dev: x.dev, graph: x.graph, nodes: x.nodes, conditions: x.conditions, parent: x, at: t.index}
	n.body.mu.Lock()
	nodes := n.body.nodes
	n.body.mu.Unlock()
	b.build(nodes)
	t.body = b
	x.bodies = append(x.bodies, b)
	x.plan.ops[t.index].body = b.plan
}

// condition returns the exec's condition for the handle c, and makes it at the first call.
func (x *exec) condition(c driver.Condition) *condition {
	at := x.conditions[c]
	if at == nil {
		at = new(condition)
		x.conditions[c] = at
	}
	return at
}

// track sets x.tracks, which says whether the tasks of an exec record the memory that they use.
// Tasks do that if the graph leaves some tasks unordered, or if x is the exec of a body and the
// parent's tasks do that.
func (x *exec) track() {
	x.tracks = x.before != nil || x.parent != nil && x.parent.tracks
	for _, b := range x.bodies {
		b.track()
	}
}

// enter adds n to the number of launches that use the plan and the plans of its bodies. A plan
// without launches may be changed together with the plans of its bodies, so enter changes the
// number of p last.
func (p *plan) enter(n int32) {
	for _, b := range p.exec.bodies {
		p.ops[b.at].body.enter(n)
	}
	p.launches.Add(n)
}

// testNow executes a test node.
func (s *stream) testNow(o *operation) error {
	if o.src%4 != 0 {
		e := s.dev.d.miss(o.src, 4)
		e.Align = 4
		return s.blame(o, e)
	}
	b, e := s.dev.reach(o.src, 4)
	if e != nil {
		return s.blame(o, e)
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	o.cond.on.Store(n >= o.n && n <= o.stride)
	return nil
}

// branch executes the body of a conditional task as often as the condition says.
func (r *run) branch(t *task, o *operation) error {
	t.uses.begin()
	for o.cond.on.Load() && !r.over() {
		t.launch = operation{code: codeLaunchGraph, plan: o.body}
		if err := t.body.run.execute(r.stream, &t.launch); err != nil {
			return err
		}
		t.gather()
		if t.kind == driver.IfNode {
			break
		}
		runtime.Gosched()
	}
	return nil
}

// stepBody executes one step of a conditional task. It reports whether the task has more steps.
func (r *run) stepBody(t *task, s *stream, choose func(int) int) (more bool, err error) {
	o := &r.plan.ops[t.index]
	if !t.going {
		if !o.cond.on.Load() {
			return false, nil
		}
		t.going, t.launch, t.body.run.launch = true, operation{code: codeLaunchGraph, plan: o.body}, nil
	}
	if !t.body.run.step(s, &t.launch, choose) {
		return true, nil
	}
	t.going = false
	t.gather()
	return t.kind == driver.WhileNode, t.launch.fail
}

// gather adds the memory that the last run of the body has used to the uses of the conditional
// task, up to maxRuns accesses. It leaves out repeated accesses. It also leaves out the writes of
// kernels with a View, because those writes are uncertain.
func (t *task) gather() {
	if !t.exec.tracks {
		return
	}
	for _, in := range t.body.tasks {
		for _, a := range in.uses.known {
			a.task = t
			if a.write && len(in.uses.views) > 0 || len(t.uses.known) >= maxRuns || slices.Contains(t.uses.known, a) {
				continue
			}
			t.uses.known = append(t.uses.known, a)
		}
	}
}

// notRoot returns an error if the graph is a body, for calls that need a whole graph.
func (g *graph) notRoot(c code, h driver.Graph) error {
	if g.root == nil {
		return nil
	}
	return failf(c, "graph %#x: %w: it is the body of a conditional node, and belongs to that node's graph", uint64(h), ErrInvalidValue)
}
