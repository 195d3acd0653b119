package cudadriver

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Graphs = (*device)(nil)

// A nodeParams holds a node's parameters in C's form. The bindings need nodeParams on the heap, so
// a sync.Pool, nodeRoom, recycles them.
type nodeParams struct {
	kernel cuda.KernelNodeParams
	fill   cuda.MemsetNodeParams
	copy   cuda.Memcpy3D
	test   testParams
}

var nodeRoom = sync.Pool{New: func() any { return new(nodeParams) }}

// fillIn fills in the parameters for the kind of op.
func (d *device) fillIn(p *nodeParams, op *driver.NodeOp) {
	switch op.Kind {
	case driver.KernelNode:
		l := &op.Launch
		grid, block := l.Dims()
		p.kernel = cuda.KernelNodeParams{
			Func:     cuda.Function(l.Function),
			GridDimX: grid[0], GridDimY: grid[1], GridDimZ: grid[2],
			BlockDimX: block[0], BlockDimY: block[1], BlockDimZ: block[2],
			SharedMemBytes: l.SharedMem,
			KernelParams:   unsafe.SliceData(l.Args),
		}
	case driver.FillNode:
		p.fill = cuda.MemsetNodeParams{Dst: cuda.DevicePtr(op.Dst), Value: op.Pattern, ElementSize: uint32(op.Width), Width: op.Count, Height: 1}
		switch op.Width {
		case 1:
			p.fill.Value = uint32(uint8(op.Pattern))
		case 2:
			p.fill.Value = uint32(uint16(op.Pattern))
		}
		if op.Stride != 0 && op.Stride != uint64(op.Width) { // FillStrided: a matrix of one column
			p.fill.Pitch, p.fill.Width, p.fill.Height = op.Stride, 1, op.Count
		}
	case driver.CopyNode:
		// The copy is one row without a pitch, because the device limits the pitch. The driver
		// finds the kinds of memory from the addresses.
		p.copy = cuda.Memcpy3D{
			SrcMemoryType: cuda.MemoryTypeUnified, SrcDevice: cuda.DevicePtr(op.Src),
			DstMemoryType: cuda.MemoryTypeUnified, DstDevice: cuda.DevicePtr(op.Dst),
			WidthInBytes: op.Count, Height: 1, Depth: 1,
		}
	case driver.TestNode:
		p.test.fillIn(&p.kernel, d.tester.fn, op)
	}
}

// drop clears the parameters, so that they keep no argument alive, and returns them to nodeRoom.
func (p *nodeParams) drop() {
	*p = nodeParams{}
	nodeRoom.Put(p)
}

// kernelV1 returns the kernel in the form of drivers before 12.0, which know only the first fields.
func (p *nodeParams) kernelV1() *cuda.KernelNodeParamsV1 {
	return (*cuda.KernelNodeParamsV1)(unsafe.Pointer(&p.kernel))
}

func (d *device) NewGraph() (driver.Graph, error) {
	if d.noGraphs != nil {
		return 0, d.fail("new graph", d.noGraphs, "graphs")
	}
	g, err := d.lib.GraphCreate(0)
	if err != nil {
		return 0, d.fail("new graph", err, "create a graph")
	}
	return driver.Graph(g), nil
}

func (d *device) DestroyGraph(g driver.Graph) error {
	if d.noGraphs != nil {
		return d.fail("destroy graph", d.noGraphs, "graphs")
	}
	if err := d.lib.GraphDestroy(cuda.Graph(g)); err != nil {
		return d.fail("destroy graph", err, "graph %#x", uintptr(g))
	}
	return nil
}

// AddNode copies a kernel's arguments and the graph of a child node.
func (d *device) AddNode(g driver.Graph, after []driver.Node, op *driver.NodeOp) (driver.Node, error) {
	if d.noGraphs != nil {
		return 0, d.fail("add node", d.noGraphs, "graphs")
	}
	graph, deps := cuda.Graph(g), unsafe.Slice((*cuda.GraphNode)(unsafe.SliceData(after)), len(after))
	p := nodeRoom.Get().(*nodeParams)
	defer p.drop()
	d.fillIn(p, op)
	var n cuda.GraphNode
	var err error
	switch op.Kind {
	case driver.EmptyNode:
		n, err = d.lib.GraphAddEmptyNode(graph, deps)
	case driver.KernelNode:
		switch {
		case op.Launch.Begun != 0:
			err = errNodeEvent
		case op.Launch.Attrs != (driver.LaunchAttrs{}):
			n, err = d.addKernelEx(graph, deps, &op.Launch.Attrs, p)
		default:
			n, err = d.addKernel(graph, deps, p)
		}
	case driver.FillNode:
		n, err = d.lib.GraphAddMemsetNode(graph, deps, &p.fill, d.ctx)
	case driver.CopyNode:
		n, err = d.lib.GraphAddMemcpyNode(graph, deps, &p.copy, d.ctx)
	case driver.ChildNode:
		n, err = d.lib.GraphAddChildGraphNode(graph, deps, cuda.Graph(op.Child))
	case driver.RecordNode:
		n, err = d.lib.GraphAddEventRecordNode(graph, deps, cuda.Event(op.Event))
	case driver.TestNode:
		n, err = d.addKernel(graph, deps, p)
	default:
		err = cuda.ErrorInvalidValue
	}
	if err != nil {
		return 0, d.fail("add node", err, "%s, after %d others in graph %#x", op, len(after), uintptr(g))
	}
	return driver.Node(n), nil
}

// errNodeEvent is the error of a kernel node with an event for the kernel's beginning. A node that
// records an event cannot run at that point: CUDA's programmatic edges lead only to other kernels.
var errNodeEvent = fmt.Errorf("a graph node with an event for the kernel's beginning: %w", driver.ErrUnsupported)

func (d *device) addKernel(g cuda.Graph, deps []cuda.GraphNode, p *nodeParams) (cuda.GraphNode, error) {
	if d.hasKernelNodes {
		return d.lib.GraphAddKernelNode(g, deps, &p.kernel)
	}
	return d.lib.GraphAddKernelNodeV1(g, deps, p.kernelV1())
}

// addKernelEx is like addKernel, for a launch with attributes. If the only predecessor of a
// dependent kernel is a kernel, and d.hasEdges is set, the edge begins at launch_dependents of the
// predecessor. In all other cases the kernel waits until its predecessors have ended.
func (d *device) addKernelEx(g cuda.Graph, deps []cuda.GraphNode, a *driver.LaunchAttrs, p *nodeParams) (n cuda.GraphNode, err error) {
	if err := d.lacksAttrs(a); err != nil {
		return 0, err
	}
	early := false
	if a.Dependent && d.hasEdges && len(deps) == 1 {
		kind, err := d.lib.GraphNodeGetType(deps[0])
		if err != nil {
			return 0, err
		}
		early = kind == cuda.GraphNodeTypeKernel
	}
	before := deps
	if early {
		before = nil
	}
	if n, err = d.addKernel(g, before, p); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			n, err = 0, errors.Join(err, d.lib.GraphDestroyNode(n))
		}
	}()
	l := launchRoom.Get().(*launchParams)
	defer l.drop()
	attrs := d.attributes(l.attrs[:0], a)
	for i := range attrs {
		x := &attrs[i]
		switch x.Id {
		// An edge replaces the attribute for stream serialization. The stream sets the priority.
		case cuda.LaunchAttributeProgrammaticStreamSerialization, cuda.LaunchAttributePriority:
			continue
		}
		if err := d.lib.GraphKernelNodeSetAttribute(n, x.Id, &x.Value); err != nil {
			return n, fmt.Errorf("%v: %w", x.Id, err)
		}
	}
	if early {
		l.node[0] = n
		l.edge[0] = cuda.GraphEdgeData{FromPort: cuda.GraphKernelNodePortProgrammatic, Type: uint8(cuda.GraphDependencyTypeProgrammatic)}
		if err := d.lib.GraphAddDependencies(g, deps, l.node[:], l.edge[:]); err != nil {
			return n, fmt.Errorf("edge from the preceding kernel: %w", err)
		}
	}
	return n, nil
}

func (d *device) Instantiate(g driver.Graph) (driver.Exec, error) {
	if d.noGraphs != nil {
		return 0, d.fail("instantiate", d.noGraphs, "graphs")
	}
	x, err := d.lib.GraphInstantiateWithFlags(cuda.Graph(g), 0)
	if err != nil {
		return 0, d.fail("instantiate", err, "graph %#x", uintptr(g))
	}
	return driver.Exec(x), nil
}

func (d *device) DestroyExec(x driver.Exec) error {
	if d.noGraphs != nil {
		return d.fail("destroy exec", d.noGraphs, "graphs")
	}
	if err := d.lib.GraphExecDestroy(cuda.GraphExec(x)); err != nil {
		return d.fail("destroy exec", err, "exec %#x", uintptr(x))
	}
	return nil
}

func (d *device) SetNode(x driver.Exec, n driver.Node, op *driver.NodeOp) error {
	return d.SetNodes(x, []driver.Node{n}, unsafe.Slice(op, 1))
}

// SetNodes makes the context current, because some driver releases crash without a current context.
func (d *device) SetNodes(x driver.Exec, nodes []driver.Node, ops []driver.NodeOp) error {
	if d.noGraphs != nil {
		return d.fail("set node", d.noGraphs, "graphs")
	}
	return d.withContext("set node", func() error {
		p := nodeRoom.Get().(*nodeParams)
		defer p.drop()
		for i, n := range nodes {
			if err := d.setNode(x, n, &ops[i], p); err != nil {
				return err
			}
		}
		return nil
	})
}

// withContext is inContext with driver errors for op.
func (d *device) withContext(op string, call func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.lib.CtxPushCurrent(d.ctx); err != nil {
		return d.fail(op, err, "make the context current")
	}
	defer func() {
		if _, pop := d.lib.CtxPopCurrent(); pop != nil && err == nil {
			err = d.fail(op, pop, "restore the thread's context")
		}
	}()
	return call()
}

// setNode sets one node. p may hold the parameters of an earlier node.
func (d *device) setNode(x driver.Exec, n driver.Node, op *driver.NodeOp, p *nodeParams) (err error) {
	exec, node := cuda.GraphExec(x), cuda.GraphNode(n)
	d.fillIn(p, op)
	switch op.Kind {
	case driver.KernelNode, driver.TestNode:
		if op.Launch.Begun != 0 {
			err = errNodeEvent
		} else if d.hasKernelNodes {
			err = d.lib.GraphExecKernelNodeSetParams(exec, node, &p.kernel)
		} else {
			err = d.lib.GraphExecKernelNodeSetParamsV1(exec, node, p.kernelV1())
		}
	case driver.FillNode:
		err = d.lib.GraphExecMemsetNodeSetParams(exec, node, &p.fill, d.ctx)
	case driver.CopyNode:
		err = d.lib.GraphExecMemcpyNodeSetParams(exec, node, &p.copy, d.ctx)
	case driver.ChildNode:
		err = d.lib.GraphExecChildGraphNodeSetParams(exec, node, cuda.Graph(op.Child))
	default:
		err = fmt.Errorf("only kernels, fills, copies, tests and child nodes can be set: %w", cuda.ErrorInvalidValue)
	}
	if err != nil {
		return d.fail("set node", err, "%s, node %#x of exec %#x", op, uintptr(n), uintptr(x))
	}
	return nil
}

func (d *device) LaunchGraph(s driver.Stream, x driver.Exec) error {
	if d.noGraphs != nil {
		return d.fail("launch graph", d.noGraphs, "graphs")
	}
	if s <= defaultStreams {
		return d.noStream("launch graph", s)
	}
	if err := d.submit(func() error { return d.lib.GraphLaunch(cuda.GraphExec(x), cuda.Stream(s)) }); err != nil {
		return d.fail("launch graph", err, "exec %#x in stream %#x", uintptr(x), uintptr(s))
	}
	return nil
}
