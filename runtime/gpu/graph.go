package gpu

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A graphOf is the graph of a part of a command buffer.
type graphOf struct {
	recorded driver.Graph
	exec     driver.Exec
	nodes    []driver.Node   // that depend on references
	ops      []driver.NodeOp // what each of them does, as it was last set
	places   []place         // in which addresses of references are there, by node
	unknown  bool            // nobody knows what its nodes do
	launched []mark          // the last time on each timeline
	old      []graphOf       // that were given up, and may still run
}

// A place is where a node has the address of a reference, or an address behind it.
type place struct {
	at     *driver.Ptr // in a node's op, or in the arguments of its kernel
	behind driver.Ptr
	ref    int32
	node   int32 // in nodes
}

// noteLaunch notes that a graph has been launched.
func (x *graphOf) noteLaunch(m mark) {
	for i := range x.launched {
		if x.launched[i].tl == m.tl {
			x.launched[i] = m
			return
		}
	}
	x.launched = append(x.launched, m)
}

// stuck reports whether a launch was given up, and may be under way for ever.
func (x *graphOf) stuck() bool {
	for _, m := range x.launched {
		if m.gone() != nil {
			return true
		}
	}
	return false
}

// idle reports whether no launch is under way, as far as is known. What was given up may be for ever.
func (x *graphOf) idle() bool {
	for _, m := range x.launched {
		if m.tl.done.Load() < m.seq || m.gone() != nil {
			return false
		}
	}
	return true
}

// scratchSize is how much memory stands for what is only known when a recording is executed: half of it for what is written, half for
// what is read.
const scratchSize = 128 << 10

// standIn has memory stand for what the fills and copies of a part are given only when it is executed, so that its graph can be made
// before: the first execution sets them. It reports false if they cannot be set from that, or there is no memory. It runs on a
// bound thread.
func (c *CommandBuffer) standIn(p *part) bool {
	for i := p.from; i < p.to; i++ {
		cmd := c.cmds.at(i)
		if cmd.depends && cmd.extent() > scratchSize/2 && (cmd.op == opFill8 || !c.dev.caps.ResizeNodes) {
			return false
		}
	}
	base, err := c.dev.scratch()
	if err != nil {
		return false
	}
	for i := p.from; i < p.to; i++ {
		cmd := c.cmds.at(i)
		if cmd.dst >= 0 && c.refers[cmd.dst].depends() {
			c.present[cmd.dst] = base
		}
		if cmd.src >= 0 && c.refers[cmd.src].depends() {
			c.present[cmd.src] = base + scratchSize/2
		}
	}
	return true
}

// extent is how many bytes a fill or a copy moves.
func (cmd *command) extent() uint64 {
	switch cmd.op {
	case opFill:
		return cmd.n * uint64(cmd.width)
	case opFill8:
		return cmd.n * 8
	}
	return cmd.n
}

// scratch returns memory of scratchSize, which stays until the device is closed. It runs on a bound thread.
func (d *Device) scratch() (driver.Ptr, error) {
	d.scratchMu.Lock()
	defer d.scratchMu.Unlock()
	if d.scratched.Size == 0 {
		m, err := d.drv.Alloc(DeviceMem, scratchSize)
		if err != nil {
			d.check(err)
			return 0, err
		}
		d.scratched = m
	}
	return d.scratched.Ptr, nil
}

// cut takes off an op what does not fit into the memory that stands for something.
func cut(op *driver.NodeOp) {
	switch {
	case op.Kind == driver.FillNode && op.Stride == 0:
		op.Count = min(op.Count, scratchSize/2/uint64(op.Width))
	case op.Kind == driver.CopyNode:
		op.Count = min(op.Count, scratchSize/2)
	}
}

// build makes the graph of a part with the addresses in present, where memory may stand for what is yet to be known. It runs on a
// bound thread.
func (c *CommandBuffer) build(p *part, stands bool) (err error) {
	g := c.dev.graphs
	dynamic := 0
	for i := p.from; i < p.to; i++ {
		if cmd := c.cmds.at(i); cmd.moves {
			dynamic += cmd.halves()
		}
	}
	made := graphOf{nodes: make([]driver.Node, 0, dynamic), ops: make([]driver.NodeOp, 0, dynamic)} // which places point into
	defer func() {
		if err != nil {
			err = errors.Join(append([]error{err}, made.destroy(g)...)...)
		}
	}()
	if made.recorded, err = g.NewGraph(); err != nil {
		return err
	}
	ends := make([][]driver.Node, p.to-p.from) // of each command: who comes after it comes after these
	var barrier, open []driver.Node            // what the last barrier is, and what has come since and has no successor
	use := func(deps []driver.Node) {
		for _, d := range deps {
			for i, o := range open {
				if o == d {
					open[i] = open[len(open)-1]
					open = open[:len(open)-1]
					break
				}
			}
		}
	}
	for i := p.from; i < p.to; i++ {
		cmd := c.cmds.at(i)
		if cmd.op == opBarrier {
			switch len(open) {
			case 0:
			case 1:
				barrier, open = []driver.Node{open[0]}, nil
			default:
				n, err := g.AddNode(made.recorded, open, &driver.NodeOp{Kind: driver.EmptyNode})
				if err != nil {
					return fmt.Errorf("command %d, barrier: %w", i, err)
				}
				barrier, open = []driver.Node{n}, nil
			}
			ends[i-p.from] = barrier
			continue
		}
		deps := barrier
		if len(cmd.after) > 0 {
			deps = append([]driver.Node(nil), barrier...)
			for _, a := range cmd.after {
				if int(a) >= p.from { // else a host call is in between
					deps = addNodes(deps, ends[int(a)-p.from])
				}
			}
		}
		if cmd.op == opNothing {
			ends[i-p.from] = deps
			continue
		}
		for half := range cmd.halves() {
			op := c.nodeOp(cmd, half == 1)
			first := op
			if stands && cmd.depends {
				cut(&first)
			}
			n, err := g.AddNode(made.recorded, deps, &first)
			if err != nil {
				return fmt.Errorf("command %d, %s: %w", i, opNames[cmd.op], err)
			}
			ends[i-p.from] = append(ends[i-p.from], n)
			if cmd.moves {
				made.noteNode(c, cmd, n, &op)
			}
		}
		use(deps)
		open = append(open, ends[i-p.from]...)
	}
	if made.exec, err = g.Instantiate(made.recorded); err != nil {
		return err
	}
	old := p.old
	if p.graphOf.old = nil; p.exec != 0 {
		old = append(old, p.graphOf)
	}
	for i := range old {
		if old[i].idle() {
			old[i].destroy(g) // an error is no reason not to go on
		} else {
			made.old = append(made.old, old[i])
		}
	}
	p.graphOf = made
	return nil
}

// addNodes adds those that are not there.
func addNodes(to, nodes []driver.Node) []driver.Node {
next:
	for _, n := range nodes {
		for _, t := range to {
			if t == n {
				continue next
			}
		}
		to = append(to, n)
	}
	return to
}

// nodeOp says what a command does, with the addresses in present.
func (c *CommandBuffer) nodeOp(cmd *command, high bool) (op driver.NodeOp) {
	switch cmd.op {
	case opFill:
		op = driver.NodeOp{Kind: driver.FillNode, Dst: c.present[cmd.dst], Pattern: cmd.pattern, Width: int(cmd.width), Count: cmd.n}
	case opFill8:
		op = driver.NodeOp{Kind: driver.FillNode, Dst: c.present[cmd.dst], Pattern: cmd.pattern, Width: 4, Count: cmd.n, Stride: 8}
		if high {
			op.Dst, op.Pattern = op.Dst+4, cmd.pattern2
		}
	case opCopy:
		op = driver.NodeOp{Kind: driver.CopyNode, Dst: c.present[cmd.dst], Src: c.present[cmd.src], Count: cmd.n}
	case opUpload:
		op = driver.NodeOp{Kind: driver.CopyNode, Dst: c.present[cmd.dst], Src: cmd.rare.stage.ptr, Count: cmd.n}
	case opDispatch:
		c.setArgs(cmd)
		op = driver.NodeOp{Kind: driver.KernelNode, Launch: cmd.launch}
	case opTime:
		op = driver.NodeOp{Kind: driver.RecordNode, Event: cmd.rare.timer}
	}
	return op
}

// halves is how many nodes a command has.
func (cmd *command) halves() int {
	if cmd.op == opFill8 {
		return 2
	}
	return 1
}

// noteNode notes a node that depends on references.
func (x *graphOf) noteNode(c *CommandBuffer, cmd *command, n driver.Node, does *driver.NodeOp) {
	x.nodes, x.ops = append(x.nodes, n), append(x.ops, *does)
	node := len(x.nodes) - 1
	put := func(at *driver.Ptr, ref int32) {
		if c.refers[ref].buffer.late() {
			x.places = append(x.places, place{at: at, behind: *at - c.present[ref], ref: ref, node: int32(node)})
		}
	}
	if op := &x.ops[node]; cmd.dst >= 0 {
		put(&op.Dst, cmd.dst)
	}
	if op := &x.ops[node]; cmd.src >= 0 {
		put(&op.Src, cmd.src)
	}
	for _, b := range cmd.bound {
		put((*driver.Ptr)(&c.args[b.word]), b.ref)
	}
}

// launch sets the nodes whose references have moved and launches the graph. What the driver will not set makes a new graph, and so
// does a launch that was given up: launches of one graph come one after the other.
func (c *CommandBuffer) launch(s *submission, tl *timeline, p *part) (started bool, err error) {
	g := c.dev.graphs
	anew := p.exec == 0 || p.unknown || p.stuck()
	if !anew && p.epoch != c.epoch {
		if anew, err = c.set(p); err != nil {
			return false, err
		}
	}
	if anew {
		if err := c.dev.onBound(func() error { return c.build(p, false) }); err != nil {
			return false, fmt.Errorf("graph of %d commands: %w", p.to-p.from, err)
		}
	}
	p.epoch = c.epoch
	if err := g.LaunchGraph(tl.h, p.exec); err != nil {
		return false, err
	}
	for _, m := range p.launched {
		if m.tl != tl && m.tl.done.Load() < m.seq {
			s.follows = append(s.follows, m)
		}
	}
	p.noteLaunch(mark{tl, tl.issued.Load() + 1})
	return true, nil
}

// set sets the nodes whose references have moved, with those in between, where they are few: a call takes as long as they do. It
// reports whether the graph has to be made anew.
func (c *CommandBuffer) set(p *part) (anew bool, err error) {
	from, to := int32(0), int32(0) // of nodes that are to be set
	for i := range p.places {
		at := &p.places[i]
		ptr := c.present[at.ref] + at.behind
		if *at.at == ptr {
			continue
		}
		if *at.at = ptr; from == to || at.node > to+1 {
			if err = c.setNodes(p, from, to); err != nil {
				break
			}
			from = at.node
		}
		to = at.node + 1
	}
	if err == nil {
		err = c.setNodes(p, from, to)
	}
	if err == nil {
		return false, nil
	}
	p.unknown = true
	var e *driver.Error
	if errors.As(err, &e) && e.Lost {
		return false, err
	}
	return true, nil
}

func (c *CommandBuffer) setNodes(p *part, from, to int32) error {
	if from == to {
		return nil
	}
	return c.dev.graphs.SetNodes(p.exec, p.nodes[from:to], p.ops[from:to])
}

// destroy gives back the graph and those that it replaced. It runs on a bound thread, when none runs any more.
func (x *graphOf) destroy(g driver.Graphs) (errs []error) {
	if x.exec != 0 {
		errs = append(errs, g.DestroyExec(x.exec))
	}
	if x.recorded != 0 {
		errs = append(errs, g.DestroyGraph(x.recorded))
	}
	for i := range x.old {
		errs = append(errs, x.old[i].destroy(g)...)
	}
	*x = graphOf{}
	return errs
}
