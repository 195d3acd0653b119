package recording

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A control command reads a number from memory and executes one of its bodies, or none. A loop has
// one body, and reads the number and executes the body again and again, until the number is outside
// the body's bounds. Bodies are other recordings. There are two ways to run a control command.
//
// In a graph, each body has a test node and a conditional node. The graph of the conditional node
// has the body's commands, which the outer recording copies to its list Recording.bodies. All test
// nodes come before all conditional nodes, because a body may change the number. A loop has one
// more test at the end of its body.
//
// On the host, a control command is a part of its own. Package gpu reads the number and executes
// the body as a recording, in a goroutine (see Part.Control).

// A conditional is the data of a control command.
type conditional struct {
	loop   bool
	bodies []body
	refs   [2]int32 // the number and the bodies have the references from refs[0] to refs[1]-1
	why    string   // why the host runs the command; "" if a graph can run it
}

// A body is a body of a conditional. A body runs if the number that the command reads is at least
// low and at most high.
type body struct {
	low, high uint32
	child     *Recording
	binds     []bindRef
	params    []nestedParam
	from, to  int    // if a graph can run the body: its commands are Recording.bodies from..to-1
	name      string // the body's name in messages
}

// A bindRef is the range that a control command binds to a binding of a body.
type bindRef struct {
	ref  int32  // index in Recording.refers of a reference to the start of the range
	size uint64 // size of the range; bindingSize means up to the end of the bound memory
}

// nameOf returns the name of a command of the body for messages.
func (b *body) nameOf(number int) string { return b.name + b.child.names.of(number) }

// A Body is a body of a control command that is to be recorded. A body runs if the number that the
// command reads is at least Low and at most High.
type Body struct {
	Low, High uint32
	Child     *Recording
	Binds     []memory.Range
	Given     []Given
	Uses      []Use
}

// Control records a command that reads a number of 4 bytes and executes the body whose bounds
// contain the number. The bounds of the bodies do not overlap. If loop is set, there is one body,
// and the command repeats reading and executing until the number is out of the body's bounds.
func (c *Recording) Control(number memory.Range, loop bool, bodies []Body, after []Command) (Command, error) {
	var wrong error
	for i := range bodies { // check before c.mu is locked, because mayNest locks the child's mu
		if err := c.mayNest(bodies[i].Child); err != nil && wrong == nil {
			wrong = inBody(bodies, i, err)
		}
	}
	if err := c.Begin(work.Control); err != nil {
		return -1, err
	}
	defer c.Leave()
	if wrong != nil {
		return -1, c.Fail(work.Control, wrong)
	}
	if err := c.checkAfter(work.Control, after); err != nil {
		return -1, err
	}
	src, err := c.refer(work.Control, number, 4)
	if err != nil {
		return -1, err
	}
	x := &conditional{loop: loop, bodies: make([]body, len(bodies)), why: c.noConditionals()}
	if x.why == "" && c.dev.Memory.Foreign(number.Buffer) {
		x.why = "the number is in memory of another device"
	}
	words, refers := 0, 0
	for i := range bodies {
		b := &bodies[i]
		if x.bodies[i], err = c.newBody(b); err != nil {
			return -1, c.Fail(work.Control, inBody(bodies, i, err))
		}
		if why := b.Child.noBody(); why != "" && x.why == "" {
			x.why = why
		}
		words, refers = words+len(b.Child.args)+work.Padding, refers+len(b.Child.refers)
	}
	if err := c.roomFor(words, refers); err != nil {
		return -1, c.Fail(work.Control, err)
	}
	held := 0
	for ; held < len(bodies) && engine.HoldLive(&bodies[held].Child.refs, 1); held++ {
	}
	at := Command(-1)
	if err = errs.ErrClosed; held == len(bodies) {
		at, err = c.record(&command{op: work.Op{Kind: work.Control}, dst: -1, src: src, rare: c.cmds.rare(rareCommand{cond: x})}, after)
	}
	if err != nil {
		for _, b := range bodies[:held] {
			b.Child.release()
		}
		return -1, c.Fail(work.Control, err)
	}
	x.refs[0] = src
	for i := range x.bodies {
		b := &x.bodies[i]
		b.name = fmt.Sprintf("%s, body %d, ", c.names.of(int(at)), i)
		c.held.addNested(b.child)
		forwardLimits(b.params, func(Command) Command { return at })
		if x.why == "" {
			c.copyBody(b, bodies[i].Binds)
		}
	}
	x.refs[1] = int32(len(c.refers))
	return at, nil
}

// inBody adds the number of a body to an error, if the command has several bodies.
func inBody(bodies []Body, i int, err error) error {
	if len(bodies) == 1 {
		return err
	}
	return fmt.Errorf("body %d: %w", i, err)
}

// newBody checks a body, and makes references to the ranges that are bound to its bindings.
func (c *Recording) newBody(b *Body) (body, error) {
	if err := checkBindings(b.Child.slots, b.Binds, c.dev, c); err != nil {
		return body{}, err
	}
	params, err := c.checkNested(b.Child, b.Given, b.Uses)
	if err != nil {
		return body{}, err
	}
	x := body{low: b.Low, high: b.High, child: b.Child, params: params, binds: make([]bindRef, len(b.Binds))}
	if err := c.roomFor(0, len(b.Binds)); err != nil {
		return body{}, err
	}
	for i, r := range b.Binds {
		s := &b.Child.slots[i]
		x.binds[i] = bindRef{int32(len(c.refers)), r.Size}
		c.refers = append(c.refers, reference{buffer: r.Buffer, offset: r.Offset, size: s.size, align: s.align,
			late: r.Buffer.HasNoAddress(), written: s.written, used: s.used, valued: s.valued})
	}
	return x, nil
}

// noConditionals returns why no graph of the recording can run a conditional, or "".
func (c *Recording) noConditionals() string {
	switch {
	case c.mode == StreamMode:
		return "the command buffer has StreamMode"
	case c.dev.Faces.Conditions == nil || c.dev.Faces.Graphs == nil:
		return "the device has no conditional nodes"
	case c.dev.timesCalls():
		return "a tracer times the commands"
	}
	if err := c.dev.readyConditionals(); err != nil {
		return err.Error()
	}
	return ""
}

// noBody returns why the commands of a recording cannot be the body of a conditional node, or "".
func (c *Recording) noBody() string {
	if c.mode == StreamMode {
		return "a body has StreamMode"
	}
	if c.refused != nil {
		return c.refused.Error()
	}
	for i := range c.cmds.n {
		cmd := c.cmds.at(i)
		switch kind := cmd.op.Kind; {
		case kind == work.Control:
			if why := cmd.rare.cond.why; why != "" {
				return why
			}
		case kind == work.HostCall, kind == work.Collect, kind == work.Timestamp, kind != work.Barrier && kind != work.Nothing && c.noNode(cmd):
			what := kind.String() + ", which no conditional node can do"
			if kind == work.Native {
				what = "call of a library, which cannot be captured"
			}
			return fmt.Sprintf("a body has a %s (its %s)", what, c.names.of(i))
		}
	}
	return ""
}

// readyConditionals makes the driver prepare the device for conditional nodes, once.
func (d *Device) readyConditionals() error {
	d.condMu.Lock()
	defer d.condMu.Unlock()
	if d.condReady {
		return nil
	}
	err := d.Engine.Do(d.Faces.Conditions.ReadyConditionals)
	if err != nil {
		d.Engine.Check(err)
		return err
	}
	d.condReady = true
	return nil
}

// copyBody copies the commands of a body to c.bodies, with their references and arguments. In c,
// all scratch memory of the body is one scratch buffer with the same layout.
func (c *Recording) copyBody(b *body, binds []memory.Range) {
	child := b.child // the child recording has ended, so its commands do not change
	var scratch *memory.Buffer
	by := c.takeData(child, binds, func(r *reference) {
		if scratch == nil {
			scratch = c.newScratch(child.scratch.layout.Size)
		}
		r.buffer, r.scratch, r.late = scratch, nil, true
	})
	b.from, b.to = c.bodies.n, c.bodies.n+child.cmds.n
	by.body = b.to
	c.copyTo(&c.bodies, &child.cmds, by, b.params)
	c.copyTo(&c.bodies, &child.bodies, by, b.params)
}

// copyTo copies the commands of another recording's list (from), and appends the copies to a list
// of c (to). c already has the other recording's references and arguments. In each copy, numbers
// are shifted by the given shift, and the other recording's parameters are replaced as params says.
func (c *Recording) copyTo(to, from *commandList, by shift, params []nestedParam) {
	for i := range from.n {
		cmd := c.shifted(*from.at(i), by, params)
		c.nestParams(&cmd, params)
		to.add(&cmd)
	}
}

// shifted returns a copy of a nested recording's conditional for the outer recording. In the copy,
// the numbers of references and of body commands are shifted by the given shift, and the nested
// recording's parameters are replaced as params says.
func (x *conditional) shifted(by shift, params []nestedParam) *conditional {
	n := *x
	n.bodies = slices.Clone(x.bodies)
	n.refs[0], n.refs[1] = x.refs[0]+by.ref, x.refs[1]+by.ref
	for i := range n.bodies {
		b := &n.bodies[i]
		b.from, b.to = b.from+by.body, b.to+by.body
		b.binds = slices.Clone(b.binds)
		for k := range b.binds {
			b.binds[k].ref += by.ref
		}
		b.params = slices.Clone(b.params)
		for k := range b.params {
			if p := &b.params[k]; p.outer != nil {
				as := &params[p.outer.index]
				p.outer, p.value = as.outer, as.value
			}
		}
	}
	return &n
}

// conditionals counts the conditionals that graphs run among the commands [from, to).
func (c *Recording) conditionals(from, to int) (n int) {
	for i := from; i < to; i++ {
		if cmd := c.cmds.at(i); cmd.op.Kind == work.Control && cmd.rare.cond.why == "" {
			n++
		}
	}
	return n
}

// each returns the commands of a part. After each control command that the graph runs come the
// commands of its bodies.
func (c *Recording) each(p *part) iter.Seq[*command] {
	return func(yield func(*command) bool) { c.eachOf(&c.cmds, p.from, p.to, yield) }
}

func (c *Recording) eachOf(l *commandList, from, to int, yield func(*command) bool) bool {
	for i := from; i < to; i++ {
		cmd := l.at(i)
		if !yield(cmd) {
			return false
		}
		if cmd.op.Kind != work.Control || cmd.rare.cond.why != "" {
			continue
		}
		for _, b := range cmd.rare.cond.bodies {
			if !c.eachOf(&c.bodies, b.from, b.to, yield) {
				return false
			}
		}
	}
	return true
}

// graphsCan reports whether graphs can run the conditionals of a layout in an execution. The
// arguments binds and given are the execution's bindings and parameters. The result is false if a
// part with conditionals cannot use its graph.
func (c *Recording) graphsCan(l layout, binds []memory.Range, given []Given) bool {
	var some [16]Value
	values := some[:0]
	for i := l.from; i < l.to; i++ {
		p := &c.parts[i]
		if !p.tests {
			continue
		}
		if len(p.grids) > 0 && len(values) == 0 {
			values = c.values(values, given)
		}
		if c.crosses(p, binds) || p.leavesOut(values) {
			return false
		}
	}
	return true
}

// nodes returns the number of graph nodes that contain addresses or parameters of a command. For a
// control command, these are its test nodes.
func (cmd *command) nodes() int {
	if cmd.op.Kind != work.Control {
		return cmd.op.Nodes()
	}
	n := len(cmd.rare.cond.bodies)
	if cmd.rare.cond.loop {
		n *= 2
	}
	return n
}

// addConditional adds the nodes of a control command to a graph that is being made. The parameter
// before lists the nodes that the test nodes depend on. addConditional returns the conditional
// nodes.
func (c *Recording) addConditional(to *building, cmd *command, number int, before []driver.Node) (nodes []driver.Node, err error) {
	x, conditions, name := cmd.rare.cond, c.dev.Faces.Conditions, ""
	if c.dev.Engine.Caps.ChecksOrder {
		name = c.nameIn(to, number)
	}
	tests := make([]driver.NodeOp, len(x.bodies))
	ready := make([]driver.Node, len(x.bodies))
	for i := range x.bodies {
		b := &x.bodies[i]
		condition, err := conditions.NewCondition(to.graph)
		if err != nil {
			return nil, err
		}
		tests[i] = driver.NodeOp{Kind: driver.TestNode, Src: c.current.address(cmd.src), Name: name,
			Test: driver.Test{Condition: condition, Low: b.low, High: b.high}}
		if ready[i], err = c.addTest(to, to.graph, cmd, &tests[i], before); err != nil {
			return nil, err
		}
	}
	for i := range x.bodies {
		b, op := &x.bodies[i], driver.NodeOp{Kind: driver.IfNode, Test: tests[i].Test, Name: name}
		if x.loop {
			op.Kind = driver.WhileNode
		}
		n, graph, err := conditions.AddConditional(to.graph, ready, &op)
		if err != nil {
			return nil, err
		}
		c.observeNode(to, n, number)
		nodes = append(nodes, n)
		in := building{made: to.made, graph: graph, list: &c.bodies, first: b.from, body: b, stands: to.stands, of: number}
		if to.body != nil {
			in.of = to.of
		}
		ends, err := c.addNodes(&in, b.from, b.to)
		if err == nil && x.loop {
			_, err = c.addTest(to, graph, cmd, &tests[i], ends)
		}
		if err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// addTest adds a test node of a control command to a graph.
func (c *Recording) addTest(to *building, graph driver.Graph, cmd *command, op *driver.NodeOp, before []driver.Node) (driver.Node, error) {
	n, err := c.dev.Faces.Graphs.AddNode(graph, before, op)
	if err == nil && cmd.moves {
		to.made.noteNode(c, cmd, n, op)
	}
	return n, err
}

// WhyHost returns why the host runs a control command of a recording that has ended, or "" if a
// graph can run it.
func (c *Recording) WhyHost(at Command) (why string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.ended:
		return "", errs.Argument("control", "the command buffer has not ended")
	case at < 0 || int(at) >= c.cmds.n || c.cmds.at(int(at)).op.Kind != work.Control:
		return "", errs.Argument("control", "command %d is no control command", at)
	}
	if c.refused != nil {
		return c.refused.Error(), nil
	}
	return c.cmds.at(int(at)).rare.cond.why, nil
}

// A Branch is a body of a control command in an execution. A body runs if the number that the
// command reads is at least Low and at most High.
type Branch struct {
	Low, High uint32
	Recording *Recording
	Binds     []memory.Range
	Given     []Given
}

// Control describes the control step that a submission runs. It returns the range of the number,
// whether the step is a loop, and the bodies.
func (p *Part) Control() (number memory.Range, loop bool, bodies []Branch) {
	c := p.recording
	cmd := c.parts[p.part].control
	x := cmd.rare.cond
	for i := range x.bodies {
		b := &x.bodies[i]
		to := Branch{Low: b.low, High: b.high, Recording: b.child}
		for _, r := range b.binds {
			to.Binds = append(to.Binds, p.rangeOf(r.ref, r.size))
		}
		for _, q := range b.params {
			v := q.value
			if q.outer != nil {
				v = p.values[q.outer.index]
			}
			to.Given = append(to.Given, Given{q.inner, v})
		}
		bodies = append(bodies, to)
	}
	return p.rangeOf(cmd.src, c.refers[cmd.src].size), x.loop, bodies
}

// HasLanes reports whether the recording, or a body that the host runs, has collectives.
func (c *Recording) HasLanes() bool {
	return slices.ContainsFunc(c.parts, func(p part) bool {
		return p.lane != nil || p.control != nil && slices.ContainsFunc(p.control.rare.cond.bodies, func(b body) bool { return b.child.HasLanes() })
	})
}

// rangeOf returns the memory of a reference in the submission's execution. For a binding, this is
// the memory that is bound. For scratch memory, it is the memory of the execution's instance. The
// range has the given size, or is shorter if the memory ends earlier.
func (p *Part) rangeOf(ref int32, size uint64) memory.Range {
	r := &p.recording.refers[ref]
	at := memory.Range{Buffer: r.buffer, Offset: r.offset, Size: size}
	end := at.Buffer.Size()
	if slot := slotOf(r.buffer); slot >= 0 {
		bound := &p.binds[slot]
		at.Buffer, at.Offset, end = bound.Buffer, bound.Offset+r.offset, bound.Offset+bound.Size
	} else if r.scratch != nil {
		at.Buffer = p.instance().mem
		end = at.Buffer.Size()
	}
	at.Size = min(at.Size, end-at.Offset)
	return at
}

// Abandon is called when the submission's control step has failed. Work of a body may be in flight
// up to the mark m. If keep is set, work in streams other than that of m may be in flight too, and
// the execution keeps its instance for ever.
func (p *Part) Abandon(m engine.Mark, keep bool) {
	r := p.run
	if r == nil || r.instance == nil {
		return
	}
	r.of.instances.mu.Lock()
	defer r.of.instances.mu.Unlock()
	if r.begun, r.instance.last = true, m; keep {
		r.left = math.MaxInt
	}
}
