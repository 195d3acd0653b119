package simdriver

import (
	"fmt"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Graphs = (*device)(nil)

// maxNodes is the maximum number of nodes in a graph, including those of its children.
const maxNodes = 1 << 20

// A graph is a list of nodes.
type graph struct {
	dev *device

	mu    sync.Mutex
	nodes []node // in an order that the edges allow
	index map[driver.Node]int
	total int // number of nodes, including nodes of child graphs

	conditions map[driver.Condition]bool // conditions made for this graph; true if a conditional node has the condition; nil in a body
	root       *graph                    // if this is a body, the outermost graph that contains the body
	bodies     []driver.Graph            // all bodies inside this graph, also bodies inside bodies; nil in a body
}

// A node is one node of a graph. It is immutable.
type node struct {
	id    driver.Node
	name  string // NodeOp.Name
	kind  driver.NodeKind
	op    operation    // the node's operation; in empty, child and conditional nodes only op.node is set
	event driver.Event // event of a RecordNode
	child []node       // nodes of a ChildNode
	total int          // 1 plus the number of the child's nodes
	after []int        // indices of this node's predecessors
	test  driver.Test  // of a TestNode or a conditional node
	body  *graph       // of a conditional node
}

// graphing begins a call about graphs that does not submit work.
func (v *device) graphing(c code) error {
	return v.enterIf(c, true, v.d.caps.Graphs)
}

// NewGraph makes an empty graph.
func (v *device) NewGraph() (driver.Graph, error) {
	if err := v.graphing(codeNewGraph); err != nil {
		return 0, err
	}
	h := v.d.graphs.add(&graph{dev: v, index: make(map[driver.Node]int)})
	if h == 0 {
		return 0, fail(codeNewGraph, errTooMany)
	}
	return driver.Graph(h), nil
}

// DestroyGraph destroys a graph.
func (v *device) DestroyGraph(h driver.Graph) error {
	err, ok := v.end(codeDestroyGraph)
	if !ok {
		return err
	}
	if !v.d.caps.Graphs {
		return v.cannot(codeDestroyGraph)
	}
	g, bad := v.graph(codeDestroyGraph, h)
	if bad != nil {
		return bad
	}
	if err := g.notRoot(codeDestroyGraph, h); err != nil {
		return err
	}
	v.d.graphs.remove(uintptr(h))
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.bodies {
		v.d.graphs.remove(uintptr(b))
	}
	return err
}

// AddNode adds a node. It checks the operation, except addresses, which are checked when the node
// executes. The list after must not name a node twice.
func (v *device) AddNode(h driver.Graph, after []driver.Node, op *driver.NodeOp) (driver.Node, error) {
	if err := v.graphing(codeAddNode); err != nil {
		return 0, err
	}
	g, err := v.graph(codeAddNode, h)
	if err != nil {
		return 0, err
	}
	f, err := v.checkNode(codeAddNode, op)
	if err != nil {
		return 0, err
	}
	n := node{kind: op.Kind, name: op.Name, total: 1}
	n.op.become(op, f)
	switch op.Kind {
	case driver.ChildNode:
		child, err := v.graph(codeAddNode, op.Child)
		if err != nil {
			return 0, err
		}
		child.mu.Lock()
		n.child, n.total = child.nodes, 1+child.total
		child.mu.Unlock()
		if err := checkChild(codeAddNode, n.child, g.root != nil); err != nil {
			return 0, err
		}
	case driver.RecordNode:
		e, err := v.event(codeAddNode, op.Event)
		if err != nil {
			return 0, err
		}
		if e.timer == nil {
			return 0, failf(codeAddNode, "event %#x: %w: it was made by NewEvent; a graph records only events of NewTimer", uint64(op.Event), ErrInvalidHandle)
		}
		if g.root != nil {
			return 0, failf(codeAddNode, "%s: %w: the body of a conditional node cannot record an event", op, ErrInvalidValue)
		}
		n.op.event, n.event = e, op.Event
	case driver.TestNode:
		n.test = op.Test
		if err := g.checkCondition(codeAddNode, op.Test.Condition, false); err != nil {
			return 0, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.add(codeAddNode, h, n, after)
}

// add adds a node to the graph. The caller holds g.mu.
func (g *graph) add(c code, h driver.Graph, n node, after []driver.Node) (driver.Node, error) {
	for i, a := range after {
		at, ok := g.index[a]
		if !ok {
			return 0, failf(c, "predecessor %#x: %w: it is not in graph %#x", uint64(a), ErrInvalidHandle, uint64(h))
		}
		for _, b := range after[:i] {
			if b == a {
				return 0, failf(c, "predecessor %#x: %w: it is listed twice", uint64(a), ErrInvalidValue)
			}
		}
		n.after = append(n.after, at)
	}
	if g.total += n.total; g.total > maxNodes {
		g.total -= n.total
		return 0, failf(c, "graph %#x: %w: %d nodes are too many", uint64(h), ErrInvalidValue, g.total+n.total)
	}
	n.id = driver.Node(g.dev.d.nodes.Add(1))
	n.op.node = n.id
	g.index[n.id] = len(g.nodes)
	g.nodes = append(g.nodes, n)
	return n.id, nil
}

// checkNode checks the operation of a node, except the handles of children, events and conditions.
// It returns the kernel of a launch.
func (v *device) checkNode(c code, op *driver.NodeOp) (f *function, err error) {
	if op == nil {
		return nil, failf(c, "nil NodeOp: %w", ErrInvalidValue)
	}
	switch op.Kind {
	case driver.EmptyNode, driver.ChildNode, driver.RecordNode:
	case driver.TestNode:
		if !v.d.caps.Conditionals {
			err = fmt.Errorf("a test node: %w", driver.ErrUnsupported)
		}
	case driver.KernelNode:
		if f, err = v.checkLaunch(&op.Launch); err == nil && !v.d.caps.NodeAttrs && relied(&op.Launch.Attrs) {
			err = fmt.Errorf("kernel %s: a node with %+v: %w", f.name, op.Launch.Attrs, driver.ErrUnsupported)
		}
		if err == nil && op.Launch.Begun != 0 {
			err = fmt.Errorf("kernel %s: a node with an event for its beginning: %w", f.name, driver.ErrUnsupported)
		}
	case driver.FillNode:
		err = checkFill(op)
	case driver.CopyNode:
		if op.Count == 0 {
			err = fmt.Errorf("a copy of 0 bytes: %w", ErrInvalidValue)
		}
	default:
		err = fmt.Errorf("a node of kind %d: %w", op.Kind, ErrInvalidValue)
	}
	if err != nil {
		return nil, fail(c, err)
	}
	return f, nil
}

// become sets o to the operation of a node. f is the kernel of a launch. become allocates nothing
// if o had the same kind before.
func (o *operation) become(op *driver.NodeOp, f *function) {
	switch op.Kind {
	case driver.KernelNode:
		o.code = codeLaunch
		if o.call == nil {
			o.call = newCall(f.kernel)
		}
		o.call.set(f, &op.Launch)
	case driver.FillNode:
		o.code, o.dst, o.pattern, o.width, o.n = codeFill, op.Dst, op.Pattern, uint8(op.Width), op.Count
		if o.stride = op.Stride; o.stride == uint64(op.Width) {
			o.stride = 0
		}
	case driver.CopyNode:
		o.code, o.dst, o.src, o.n = codeCopy, op.Dst, op.Src, op.Count
	case driver.RecordNode:
		o.code = codeRecord
	case driver.TestNode:
		o.code, o.src, o.n, o.stride = codeTest, op.Src, uint64(op.Test.Low), uint64(op.Test.High)
	}
}

// checkFill checks a FillNode.
func checkFill(op *driver.NodeOp) error {
	width := uint64(op.Width)
	switch {
	case width != 1 && width != 2 && width != 4:
		return fmt.Errorf("elements of %d bytes: %w: the size must be 1, 2 or 4", op.Width, ErrInvalidValue)
	case op.Count == 0:
		return fmt.Errorf("a fill of 0 elements: %w", ErrInvalidValue)
	case op.Stride%width != 0:
		return fmt.Errorf("a stride of %d bytes: %w: it must be a multiple of %d", op.Stride, ErrInvalidValue, width)
	}
	return nil
}

// graph finds a graph of the device by handle.
func (v *device) graph(c code, h driver.Graph) (*graph, error) {
	g := v.d.graphs.get(uintptr(h))
	if g == nil {
		return nil, failf(c, "graph %#x: %w: no such graph, or it was destroyed", uint64(h), ErrInvalidHandle)
	}
	if g.dev != v {
		return nil, failf(c, "graph %#x: %w: it belongs to device %d, not %d", uint64(h), ErrInvalidHandle, g.dev.index, v.index)
	}
	return g, nil
}
