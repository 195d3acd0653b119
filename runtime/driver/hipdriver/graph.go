package hipdriver

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Graphs = (*device)(nil)

// graphSymbols are what graphs need. The functions for fills that end in Node have a struct that ROCm 7 reordered, so those
// of the driver's style serve, whose struct stays. They came with 6.1 and 6.2, as hipDrvGraphAddMemcpyNode did; a library
// that lacks it is one whose graphs are not relied on.
var graphSymbols = []string{
	"hipGraphCreate", "hipGraphDestroy", "hipGraphAddEmptyNode", "hipGraphAddKernelNode", "hipDrvGraphAddMemsetNode", "hipGraphAddMemcpyNode1D",
	"hipDrvGraphAddMemcpyNode", "hipGraphAddChildGraphNode", "hipGraphAddEventRecordNode", "hipGraphInstantiateWithFlags", "hipGraphExecDestroy",
	"hipGraphExecKernelNodeSetParams", "hipDrvGraphExecMemsetNodeSetParams", "hipGraphExecMemcpyNodeSetParams1D", "hipGraphLaunch",
}

// noGraphs returns why a library has no graphs, or nil.
func noGraphs(lib *hip.Library) error {
	for _, s := range graphSymbols {
		if !lib.HasSymbol(s) {
			return fmt.Errorf("the HIP runtime, version %s, lacks %s: %w", version(lib), s, driver.ErrUnsupported)
		}
	}
	return nil
}

// A nodeParams has what a node does in C's form. The bindings want it on the heap, where nodeRoom keeps some for the next
// call.
type nodeParams struct {
	kernel hip.KernelNodeParams
	fill   hip.DrvMemsetNodeParams
}

var nodeRoom = sync.Pool{New: func() any { return new(nodeParams) }}

// paramsOf fills in the part for the kind of op. Call drop after use.
func paramsOf(op *driver.NodeOp) *nodeParams {
	p := nodeRoom.Get().(*nodeParams)
	switch op.Kind {
	case driver.KernelNode:
		l := &op.Launch
		p.kernel = hip.KernelNodeParams{
			Func:           pointer(uintptr(l.Function)),
			GridDim:        hip.Dim3{X: l.Grid[0], Y: l.Grid[1], Z: l.Grid[2]},
			BlockDim:       hip.Dim3{X: l.Block[0], Y: l.Block[1], Z: l.Block[2]},
			SharedMemBytes: l.SharedMem,
			KernelParams:   unsafe.SliceData(l.Args),
		}
	case driver.FillNode:
		p.fill = hip.DrvMemsetNodeParams{Dst: hip.DevicePtr(op.Dst), Value: op.Pattern, ElementSize: uint32(op.Width), Width: op.Count, Height: 1}
		switch op.Width {
		case 1:
			p.fill.Value = uint32(uint8(op.Pattern))
		case 2:
			p.fill.Value = uint32(uint16(op.Pattern))
		}
		if op.Stride != 0 && op.Stride != uint64(op.Width) && op.Count != 1 { // a matrix of one column
			p.fill.Pitch, p.fill.Width, p.fill.Height = op.Stride, 1, op.Count
		}
	}
	return p
}

// drop holds on to nothing that the arguments pointed to.
func (p *nodeParams) drop() {
	*p = nodeParams{}
	nodeRoom.Put(p)
}

// failNode is fail for a node that may only have been refused.
func (d *device) failNode(op string, err error, format string, args ...any) error {
	only := refused(err, func() error { _, err := d.lib.GetDevice(); return err })
	e := d.fail(op, err, format, args...)
	e.Lost = e.Lost && !only
	return e
}

func (d *device) NewGraph() (driver.Graph, error) {
	if d.noGraphs != nil {
		return 0, d.refuse("new graph", d.noGraphs, "graphs")
	}
	g, err := d.lib.GraphCreate(0)
	if err != nil {
		return 0, d.fail("new graph", err, "create a graph")
	}
	return driver.Graph(g), nil
}

func (d *device) DestroyGraph(g driver.Graph) error {
	if d.noGraphs != nil {
		return d.refuse("destroy graph", d.noGraphs, "graphs")
	}
	if err := d.lib.GraphDestroy(hip.Graph(g)); err != nil {
		return d.fail("destroy graph", err, "graph %#x", uintptr(g))
	}
	return nil
}

// AddNode has the library copy what a kernel's Args point to, and the graph of a child node. A copy leaves it to the library
// to find out whose memory the addresses are; it must be said in the same way when the node is changed.
func (d *device) AddNode(g driver.Graph, after []driver.Node, op *driver.NodeOp) (driver.Node, error) {
	if d.noGraphs != nil {
		return 0, d.refuse("add node", d.noGraphs, "graphs")
	}
	graph, deps := hip.Graph(g), unsafe.Slice((*hip.GraphNode)(unsafe.SliceData(after)), len(after))
	p := paramsOf(op)
	defer p.drop()
	var n hip.GraphNode
	var err error
	switch op.Kind {
	case driver.EmptyNode:
		n, err = d.lib.GraphAddEmptyNode(graph, deps)
	case driver.KernelNode:
		n, err = d.lib.GraphAddKernelNode(graph, deps, &p.kernel)
	case driver.FillNode:
		n, err = d.lib.DrvGraphAddMemsetNode(graph, deps, &p.fill, 0)
	case driver.CopyNode:
		n, err = d.lib.GraphAddMemcpyNode1D(graph, deps, pointer(uintptr(op.Dst)), pointer(uintptr(op.Src)), op.Count, hip.MemcpyDefault)
	case driver.ChildNode:
		n, err = d.lib.GraphAddChildGraphNode(graph, deps, hip.Graph(op.Child))
	case driver.RecordNode:
		n, err = d.lib.GraphAddEventRecordNode(graph, deps, hip.Event(op.Event))
	default:
		return 0, d.refuse("add node", hip.ErrorInvalidValue, "%s", op)
	}
	if err != nil {
		return 0, d.failNode("add node", err, "%s, after %d others in graph %#x", op, len(after), uintptr(g))
	}
	return driver.Node(n), nil
}

func (d *device) Instantiate(g driver.Graph) (driver.Exec, error) {
	if d.noGraphs != nil {
		return 0, d.refuse("instantiate", d.noGraphs, "graphs")
	}
	x, err := d.lib.GraphInstantiateWithFlags(hip.Graph(g), 0)
	if err != nil {
		return 0, d.failNode("instantiate", err, "graph %#x", uintptr(g))
	}
	return driver.Exec(x), nil
}

func (d *device) DestroyExec(x driver.Exec) error {
	if d.noGraphs != nil {
		return d.refuse("destroy exec", d.noGraphs, "graphs")
	}
	d.mu.Lock()
	delete(d.ran, x)
	d.mu.Unlock()
	if err := d.lib.GraphExecDestroy(hip.GraphExec(x)); err != nil {
		return d.fail("destroy exec", err, "exec %#x", uintptr(x))
	}
	return nil
}

func (d *device) SetNode(x driver.Exec, n driver.Node, op *driver.NodeOp) error {
	if d.noGraphs != nil {
		return d.refuse("set node", d.noGraphs, "graphs")
	}
	exec, node := hip.GraphExec(x), hip.GraphNode(n)
	p := paramsOf(op)
	defer p.drop()
	var err error
	switch op.Kind {
	case driver.KernelNode:
		err = d.lib.GraphExecKernelNodeSetParams(exec, node, &p.kernel)
	case driver.FillNode:
		err = d.lib.DrvGraphExecMemsetNodeSetParams(exec, node, &p.fill, 0)
	case driver.CopyNode:
		err = d.lib.GraphExecMemcpyNodeSetParams1D(exec, node, pointer(uintptr(op.Dst)), pointer(uintptr(op.Src)), op.Count, hip.MemcpyDefault)
	default:
		return d.refuse("set node", fmt.Errorf("only kernels, fills and copies can be set: %w", hip.ErrorInvalidValue), "%s", op)
	}
	if err != nil {
		return d.failNode("set node", err, "%s, node %#x of exec %#x", op, uintptr(n), uintptr(x))
	}
	return nil
}

// SetNodes sets several nodes.
func (d *device) SetNodes(x driver.Exec, nodes []driver.Node, ops []driver.NodeOp) error {
	for i, n := range nodes {
		if err := d.SetNode(x, n, &ops[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *device) LaunchGraph(s driver.Stream, x driver.Exec) error {
	if d.noGraphs != nil {
		return d.refuse("launch graph", d.noGraphs, "graphs")
	}
	if s <= defaultStreams {
		return d.noStream("launch graph", s)
	}
	d.mu.Lock()
	last := d.ran[x]
	d.mu.Unlock()
	var err error
	if last != 0 && last != s {
		err = d.follow(hip.Stream(s), hip.Stream(last))
	}
	if err == nil {
		err = d.lib.GraphLaunch(hip.GraphExec(x), hip.Stream(s))
	}
	if err != nil {
		return d.failLaunch("launch graph", s, err, "exec %#x in stream %#x", uintptr(x), uintptr(s))
	}
	if last != s {
		d.mu.Lock()
		d.ran[x] = s
		d.mu.Unlock()
	}
	return nil
}

// follow makes a stream wait for all work in another. Two launches of an exec in two streams need it: HIP does not keep them
// apart, and the second would write into the work of the first. The event may go at once, since HIP keeps what it stands for.
func (d *device) follow(s, last hip.Stream) error {
	e, err := d.lib.EventCreateWithFlags(hip.EventDisableTiming)
	if err != nil {
		return err
	}
	if err = d.lib.EventRecord(e, last); err == nil {
		err = d.lib.StreamWaitEvent(s, e, 0)
	}
	return errors.Join(err, d.lib.EventDestroy(e))
}
