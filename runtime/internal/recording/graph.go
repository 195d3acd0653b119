package recording

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A graphOf is the graph of a part of a command buffer, for an instance.
type graphOf struct {
	recorded driver.Graph
	exec     driver.Exec
	nodes    []driver.Node   // the nodes of commands whose field moves is true: executions set these nodes
	ops      []driver.NodeOp // operations of nodes, with the values last set
	places   []place         // places of references and parameters in nodes, in the order of nodes
	epoch    int             // the recording's epoch when the nodes were set
	unknown  bool            // setting nodes failed, so their addresses are unknown
	natives  []nativeNode    // the captured nodes among nodes
	changed  []int32         // indices of the nodes that are being set, ascending
	launched engine.Frontier // behind the launches that may be in flight

	// Room for the nodes and ops that are being set.
	someNodes []driver.Node
	someOps   []driver.NodeOp

	old []graphOf // replaced graphs that may still run
}

// A place is a location in a node. It holds a word of a parameter, the address of a reference, or
// an address some bytes behind a reference.
type place struct {
	// The field at points into graphOf.ops, or into a kernel's arguments. The graphs of all
	// instances share the kernel's arguments.
	at     *driver.Ptr
	has    driver.Ptr // the address or word that was last set in this place
	behind driver.Ptr // bytes from the reference to the address; 0 for a parameter
	ref    int32      // index in execution.present
	node   int32      // index in nodes
	half   bool       // only the first 4 bytes are set
}

// put stores an address or a word in the place.
func (p *place) put(ptr driver.Ptr) {
	if p.half {
		*(*[4]byte)(unsafe.Pointer(p.at)) = *(*[4]byte)(unsafe.Pointer(&ptr))
		return
	}
	*p.at = ptr
}

// standInSize is the size of the stand-in: memory that a graph uses in place of memory whose
// address only an execution knows. Nodes write to one half of the stand-in and read the other.
const standInSize = 128 << 10

// standIn puts the stand-in's addresses into c.current.present for the dst and src of a part's
// commands, if these addresses are known only in an execution. So the graph can be made before the
// first execution, which then sets the nodes. standIn returns false in three cases: a command needs
// more than half of the stand-in and its node cannot be resized, a function of Native would get
// stand-in addresses, or the stand-in cannot be allocated. standIn runs on a bound thread.
func (c *Recording) standIn(p *part) bool {
	for cmd := range c.each(p) {
		if cmd.depends && cmd.op.Kind == work.Native {
			// The program's function must not get stand-in addresses.
			return false
		}
		if cmd.depends && cmd.op.Bytes() > standInSize/2 && !(c.dev.Engine.Caps.ResizeNodes && cmd.op.Resizable()) {
			return false
		}
	}
	base, err := c.dev.standIn()
	if err != nil {
		return false
	}
	for cmd := range c.each(p) {
		if cmd.dst >= 0 && c.refers[cmd.dst].depends() {
			c.current.present[cmd.dst] = base
		}
		if cmd.src >= 0 && c.refers[cmd.src].depends() {
			c.current.present[cmd.src] = base + standInSize/2
		}
	}
	return true
}

// build makes the graph of a part with the addresses in c.current.present. If stands is set,
// standIn has put addresses of the stand-in (see standInSize) into c.current.present. Then build
// cuts the operations that use the stand-in, so that each fits into half of the stand-in. build
// runs on a bound thread.
func (c *Recording) build(p *part, of *graphOf, stands bool) (err error) {
	g := c.dev.Faces.Graphs
	dynamic := 0
	for cmd := range c.each(p) {
		if cmd.moves {
			dynamic += cmd.nodes()
		}
	}
	// ops gets its full capacity now: places point into it, so append must not move it.
	made := graphOf{nodes: make([]driver.Node, 0, dynamic), ops: make([]driver.NodeOp, 0, dynamic)}
	defer func() {
		if err != nil {
			err = errors.Join(append([]error{err}, made.destroy(g)...)...)
		}
	}()
	if made.recorded, err = g.NewGraph(); err != nil {
		return err
	}
	of1 := building{made: &made, graph: made.recorded, list: &c.cmds, stands: stands}
	if _, err = c.addNodes(&of1, p.from, p.to); err != nil {
		return err
	}
	if made.exec, err = g.Instantiate(made.recorded); err != nil {
		return err
	}
	of.replace(made, g)
	return nil
}

// A building is a graph that is being made, or the body of one of its conditional nodes.
type building struct {
	made   *graphOf
	graph  driver.Graph // nodes are added to this graph
	list   *commandList // the list with its commands
	first  int          // index in list of command number 0
	body   *body        // the body that is being made, or nil for the whole graph
	of     int          // for a body: the number of the outermost control command around it
	stands bool         // addresses that only an execution knows are the stand-in's
}

// addNodes adds to a graph the nodes of the commands of b.list whose index i is in the range from
// <= i < to. It returns the nodes that have no successor.
func (c *Recording) addNodes(b *building, from, to int) (ends []driver.Node, err error) {
	g := c.dev.Faces.Graphs
	order := nodeOrder{from: from - b.first, ends: make([][]driver.Node, to-from)}
	for i := from; i < to; i++ {
		cmd, number := b.list.at(i), i-b.first
		switch kind := cmd.op.Kind; {
		case kind == work.Barrier:
			err = order.addBarrier(number, g, b.graph)
		case kind == work.Nothing, kind == work.Control && len(cmd.rare.cond.bodies) == 0:
			order.ends[i-from] = order.before(cmd)
		default:
			var nodes []driver.Node
			before := order.before(cmd)
			if nodes, err = c.addCommand(b, cmd, number, before); err == nil {
				order.add(number, before, nodes)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", c.nameIn(b, number), cmd.op.Kind, err)
		}
	}
	if len(order.open) == 0 {
		return order.barrier, nil
	}
	return order.open, nil
}

// observeNode tells the observer which command of the recording has made a node. For a node in a
// body, observeNode names the outermost control command around the body.
func (c *Recording) observeNode(b *building, n driver.Node, number int) {
	if o := c.dev.Memory.Observer; o != nil && o.TimesNodes() {
		if b.body != nil {
			number = b.of
		}
		o.Node(n, c.described, number)
	}
}

// nameIn returns a command's name for messages.
func (c *Recording) nameIn(b *building, number int) string {
	if b.body == nil {
		return c.names.of(number)
	}
	return b.body.nameOf(number)
}

// addCommand adds nodes for a command to a graph that is being made, behind the given nodes
// (before). It returns the added nodes.
func (c *Recording) addCommand(b *building, cmd *command, number int, before []driver.Node) (nodes []driver.Node, err error) {
	if cmd.op.Kind == work.Control {
		return c.addConditional(b, cmd, number, before)
	}
	made := b.made
	g, native, first := c.dev.Faces.Graphs, cmd.op.Kind == work.Native, cmd.op
	var x work.Extra
	c.extra(&x, cmd)
	if native {
		if x.Child, err = c.dev.capture(x.CallNative); err != nil {
			return nil, err
		}
	}
	if b.stands && cmd.depends {
		first.Cut(standInSize / 2) // a node may use only one half of the stand-in
	}
	for k := range cmd.op.Nodes() {
		does, err := first.Node(k, c.current.address(cmd.dst), c.current.address(cmd.src), &x)
		var n driver.Node
		if err == nil {
			if c.dev.Engine.Caps.ChecksOrder {
				does.Name = c.nameIn(b, number)
			}
			n, err = g.AddNode(b.graph, before, &does)
		}
		if native {
			err = errors.Join(err, g.DestroyGraph(x.Child)) // the node has a copy
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
		c.observeNode(b, n, number)
		if cmd.moves {
			does.Count = cmd.op.Count // without Cut: the node gets this size before its first launch
			made.noteNode(c, cmd, n, &does)
		}
	}
	return nodes, nil
}

// replace puts a new graph in place of the old one. It destroys the replaced graphs whose launches
// are over, and keeps the others for the next call.
func (x *graphOf) replace(made graphOf, g driver.Graphs) {
	old := x.old
	if x.old = nil; x.exec != 0 {
		old = append(old, *x)
	}
	for i := range old {
		if old[i].launched.Passed() {
			old[i].destroy(g) // ignore the errors: the new graph can be launched
		} else {
			made.old = append(made.old, old[i])
		}
	}
	*x = made
}

// A nodeOrder finds which nodes of a graph come before a command.
type nodeOrder struct {
	from    int             // the first command
	ends    [][]driver.Node // for each command, the nodes that its successors come after
	barrier []driver.Node   // the node that stands for the last barrier: later nodes come after it
	open    []driver.Node   // nodes since the last barrier that have no successor yet
}

// before returns the nodes that a command comes after.
func (o *nodeOrder) before(cmd *command) []driver.Node {
	if len(cmd.after) == 0 {
		return o.barrier
	}
	nodes := slices.Clone(o.barrier)
	for _, a := range cmd.after {
		if int(a) >= o.from { // commands of earlier parts come before this whole part
			nodes = addNodes(nodes, o.ends[int(a)-o.from])
		}
	}
	return nodes
}

// add records that a command has the given nodes, and that these come after the nodes in before.
func (o *nodeOrder) add(command int, before, nodes []driver.Node) {
	o.open = slices.DeleteFunc(o.open, func(n driver.Node) bool { return slices.Contains(before, n) })
	o.open = append(o.open, nodes...)
	o.ends[command-o.from] = nodes
}

// addBarrier makes all later nodes come after all earlier nodes. If several nodes have no
// successor, it adds an empty node behind them.
func (o *nodeOrder) addBarrier(command int, g driver.Graphs, in driver.Graph) error {
	if len(o.open) > 1 {
		n, err := g.AddNode(in, o.open, &driver.NodeOp{Kind: driver.EmptyNode})
		if err != nil {
			return err
		}
		o.open = []driver.Node{n}
	}
	if len(o.open) > 0 {
		o.barrier, o.open = o.open, nil
	}
	o.ends[command-o.from] = o.barrier
	return nil
}

// addNodes appends the nodes that are not in the list yet.
func addNodes(to, nodes []driver.Node) []driver.Node {
	for _, n := range nodes {
		if !slices.Contains(to, n) {
			to = append(to, n)
		}
	}
	return to
}

// noteNode adds the node n of cmd, with a copy of its operation *does, to the nodes that executions
// set. cmd.moves is true.
func (x *graphOf) noteNode(c *Recording, cmd *command, n driver.Node, does *driver.NodeOp) {
	x.nodes, x.ops = append(x.nodes, n), append(x.ops, *does)
	node := len(x.nodes) - 1
	if cmd.op.Kind == work.Native {
		x.natives = append(x.natives, nativeNode{int32(node), cmd})
	}
	put := func(at *driver.Ptr, ref int32) {
		if r := &c.refers[ref]; r.buffer.Late() || r.scratch != nil {
			x.places = append(x.places, place{at: at, has: *at, behind: *at - c.current.present[ref], ref: ref, node: int32(node)})
		}
	}
	if op := &x.ops[node]; cmd.dst >= 0 {
		put(&op.Dst, cmd.dst)
	}
	if op := &x.ops[node]; cmd.src >= 0 {
		put(&op.Src, cmd.src)
	}
	for _, b := range cmd.bound {
		put(work.Address(cmd.launch.Args[b.index]), b.ref)
	}
	if cmd.rare != nil {
		x.noteParams(c, cmd, node)
	}
}

// made reports whether there is a graph that can be launched.
func (x *graphOf) made() bool { return x.exec != 0 && !x.unknown }

// mayMake reports whether issuing a part of an execution may have to make an instance or a graph,
// or call functions of Native. mayMake may take a free instance for the execution.
func (p *Part) mayMake(s *engine.Submission) bool {
	c, x := p.recording, &p.recording.parts[p.part]
	if x.native || p.run != nil && !p.takeInstance(s) {
		return true
	}
	if !c.mu.TryLock() { // another goroutine may hold the lock while it makes a graph
		return true
	}
	defer c.mu.Unlock()
	return x.graph && !p.instance().graphs[p.part].made()
}

// makeGraph makes the graph of a part that is about to be issued, if the execution launches the
// part as a graph and the instance has no graph of the part that can be launched. The timeline is
// not locked yet.
func (c *Recording) makeGraph(b *instance, part int, binds []memory.Range, values []Value) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, x := &c.parts[part], &b.graphs[part]
	if !p.graph || x.made() || c.crosses(p, binds) || p.leavesOut(values) {
		return nil
	}
	if err := c.current.find(c.refers, b, binds, values); err != nil {
		return err
	}
	if err := c.remake(p, x); err != nil {
		return err
	}
	x.epoch = c.current.epoch
	return nil
}

// remake makes the graph of a part with the addresses in c.current.present. It replaces the old
// graph, if there is one.
func (c *Recording) remake(p *part, x *graphOf) error {
	err := c.dev.graph(func() error { return c.build(p, x, false) })
	if err != nil {
		return fmt.Errorf("graph of %d commands: %w", p.to-p.from, err)
	}
	return nil
}

// launch sets the nodes whose addresses or parameters have changed, and launches the graph. If
// there is no graph, or the driver cannot set a node, launch makes a new graph. The driver runs the
// launches of one graph one after the other. So the submission follows the graph's launches in
// flight on other timelines, without a wait in the stream.
func (c *Recording) launch(s *engine.Submission, tl *engine.Timeline, part int, x *graphOf) (started bool, err error) {
	anew := !x.made()
	if !anew && x.epoch != c.current.epoch {
		if anew, err = c.set(x); err != nil {
			return false, err
		}
	}
	if anew {
		if err := c.remake(&c.parts[part], x); err != nil {
			return false, err
		}
	}
	x.epoch = c.current.epoch
	if err := c.dev.Faces.Graphs.LaunchGraph(tl.Stream, x.exec); err != nil {
		return false, err
	}
	for _, m := range x.launched {
		if m.Timeline != tl && !m.Passed() {
			s.Follows.Add(m)
		}
	}
	x.launched.AddLive(tl.At(tl.Latest() + 1))
	return true, nil
}

// set sets only the nodes whose references have moved or whose parameters have new values. Setting
// a node costs more than the rest of an execution. set reports whether the graph must be made anew.
func (c *Recording) set(x *graphOf) (anew bool, err error) {
	x.changed = x.changed[:0]
	for i := range x.places {
		at := &x.places[i]
		ptr := c.current.present[at.ref] + at.behind
		if at.put(ptr); at.has == ptr {
			continue
		}
		at.has = ptr
		if n := len(x.changed); n == 0 || x.changed[n-1] != at.node {
			x.changed = append(x.changed, at.node)
		}
	}
	if len(x.changed) == 0 {
		return false, nil
	}
	if len(x.natives) > 0 {
		err = c.setNatives(x)
	} else {
		err = x.setChanged(c.dev.Faces.Graphs)
	}
	if err == nil {
		return false, nil
	}
	x.unknown = true
	var e *driver.Error
	if errors.As(err, &e) && e.Lost {
		return false, err
	}
	return true, nil
}

// setChanged sets the changed nodes in one call.
func (x *graphOf) setChanged(g driver.Graphs) error {
	first, n := x.changed[0], int32(len(x.changed))
	if x.changed[n-1] == first+n-1 { // they are adjacent
		return g.SetNodes(x.exec, x.nodes[first:first+n], x.ops[first:first+n])
	}
	x.someNodes, x.someOps = x.someNodes[:0], x.someOps[:0]
	for _, i := range x.changed {
		x.someNodes, x.someOps = append(x.someNodes, x.nodes[i]), append(x.someOps, x.ops[i])
	}
	return g.SetNodes(x.exec, x.someNodes, x.someOps)
}

// destroy destroys the graph and the graphs that it replaced. It runs on a bound thread, when no
// launch of them is in flight.
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

// A nativeNode is a captured node of a graph.
type nativeNode struct {
	node int32
	cmd  *command
}

// setNatives is like setChanged, for a graph with captured nodes. First it calls the functions of
// the changed captured nodes again, and captures their work.
func (c *Recording) setNatives(g *graphOf) error {
	return c.dev.Host.EnterNative(func() (err error) {
		var x work.Extra
		for _, n := range g.natives {
			if _, changed := slices.BinarySearch(g.changed, n.node); !changed {
				continue
			}
			x.Launch, x.Native = &n.cmd.launch, n.cmd.rare.native
			child, err := c.dev.capture(x.CallNative)
			if err != nil {
				return err
			}
			defer c.dev.Faces.Graphs.DestroyGraph(child) // ignore its error
			g.ops[n.node].Child = child
		}
		return g.setChanged(c.dev.Faces.Graphs)
	})
}
