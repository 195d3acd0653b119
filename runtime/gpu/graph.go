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
	nodes    []graphNode
	launched []mark    // the last time on each timeline
	old      []graphOf // that were given up, and may still run
}

// note notes that a graph has been launched.
func (x *graphOf) note(m mark) {
	for i := range x.launched {
		if x.launched[i].tl == m.tl {
			x.launched[i] = m
			return
		}
	}
	x.launched = append(x.launched, m)
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

// A graphNode is a node that depends on references, with where they were when it was last set.
type graphNode struct {
	node driver.Node
	cmd  int
	high bool // the second half of a fill of 8 bytes
	at   []driver.Ptr
}

// build makes the graph of a part with the addresses in present. It runs on a bound thread.
func (c *CommandBuffer) build(p *part) (err error) {
	g := c.dev.graphs
	made := graphOf{}
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
		halves := 1
		if cmd.op == opFill8 {
			halves = 2
		}
		for half := range halves {
			op := c.nodeOp(cmd, half == 1)
			n, err := g.AddNode(made.recorded, deps, &op)
			if err != nil {
				return fmt.Errorf("command %d, %s: %w", i, opNames[cmd.op], err)
			}
			ends[i-p.from] = append(ends[i-p.from], n)
			if cmd.moves {
				made.nodes = append(made.nodes, graphNode{node: n, cmd: i, high: half == 1, at: c.places(cmd, nil)})
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
		op = driver.NodeOp{Kind: driver.FillNode, Dst: c.present[cmd.dst], Pattern: cmd.pattern, Width: cmd.width, Count: cmd.n}
	case opFill8:
		op = driver.NodeOp{Kind: driver.FillNode, Dst: c.present[cmd.dst], Pattern: cmd.pattern, Width: 4, Count: cmd.n, Stride: 8}
		if high {
			op.Dst, op.Pattern = op.Dst+4, cmd.pattern2
		}
	case opCopy:
		op = driver.NodeOp{Kind: driver.CopyNode, Dst: c.present[cmd.dst], Src: c.present[cmd.src], Count: cmd.n}
	case opUpload:
		op = driver.NodeOp{Kind: driver.CopyNode, Dst: c.present[cmd.dst], Src: cmd.stage.ptr, Count: cmd.n}
	case opDispatch:
		c.setArgs(cmd)
		op = driver.NodeOp{Kind: driver.KernelNode, Launch: cmd.launch}
	case opTime:
		op = driver.NodeOp{Kind: driver.RecordNode, Event: cmd.timer}
	}
	return op
}

// places lists where the references of a command are now.
func (c *CommandBuffer) places(cmd *command, at []driver.Ptr) []driver.Ptr {
	for _, ref := range [...]int{cmd.dst, cmd.src} {
		if ref >= 0 {
			at = append(at, c.present[ref])
		}
	}
	for _, b := range cmd.bound {
		at = append(at, c.present[b.ref])
	}
	return at
}

// moved reports whether a node's references are somewhere else than when it was set, and notes where.
func (c *CommandBuffer) moved(n *graphNode) (moved bool) {
	cmd, i := c.cmds.at(n.cmd), 0
	note := func(ref int) {
		if n.at[i] != c.present[ref] {
			n.at[i], moved = c.present[ref], true
		}
		i++
	}
	for _, ref := range [...]int{cmd.dst, cmd.src} {
		if ref >= 0 {
			note(ref)
		}
	}
	for _, b := range cmd.bound {
		note(b.ref)
	}
	return moved
}

// unset notes that nobody knows where a node's references are.
func (n *graphNode) unset() {
	for i := range n.at {
		n.at[i] = ^driver.Ptr(0)
	}
}

// launch sets the nodes whose references have moved and launches the graph. What the driver will not set makes a new graph.
func (c *CommandBuffer) launch(tl *timeline, p *part) (started bool, err error) {
	g := c.dev.graphs
	anew := p.exec == 0
	if !anew && p.epoch != c.epoch && len(p.nodes) > 0 {
		if anew, err = c.set(p); err != nil {
			return false, err
		}
	}
	if anew {
		if err := c.dev.onBound(func() error { return c.build(p) }); err != nil {
			return false, fmt.Errorf("graph of %d commands: %w", p.to-p.from, err)
		}
	}
	p.epoch = c.epoch
	if err := g.LaunchGraph(tl.h, p.exec); err != nil {
		return false, err
	}
	p.note(mark{tl, tl.issued.Load() + 1})
	return true, nil
}

// set sets the nodes whose references have moved. It reports whether the graph has to be made anew.
func (c *CommandBuffer) set(p *part) (anew bool, err error) {
	c.nodes, c.ops = c.nodes[:0], c.ops[:0]
	for i := range p.nodes {
		n := &p.nodes[i]
		if c.moved(n) {
			c.nodes, c.ops = append(c.nodes, n.node), append(c.ops, c.nodeOp(c.cmds.at(n.cmd), n.high))
		}
	}
	if len(c.nodes) == 0 {
		return false, nil
	}
	if err = c.dev.graphs.SetNodes(p.exec, c.nodes, c.ops); err == nil {
		return false, nil
	}
	for i := range p.nodes {
		p.nodes[i].unset()
	}
	var e *driver.Error
	if errors.As(err, &e) && e.Lost {
		return false, err
	}
	return true, nil
}

// destroy gives back the graph and those that it replaced. It runs on the device's thread, when none runs any more.
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
