package hipdriver

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Graphs = (*device)(nil)

// graphSymbols holds the functions that graphs need. Fills use hipMemsetParams, whose layout is the
// same in all releases. The functions with Drv in their names take different structs before and
// after 7.0. hipDrvGraphAddMemcpyNode is never called. It came with 6.1, and is in the list to
// exclude earlier releases.
var graphSymbols = []string{
	"hipGraphCreate", "hipGraphDestroy", "hipGraphAddEmptyNode", "hipGraphAddKernelNode", "hipGraphAddMemsetNode", "hipGraphAddMemcpyNode1D",
	"hipDrvGraphAddMemcpyNode", "hipGraphAddChildGraphNode", "hipGraphAddEventRecordNode", "hipGraphInstantiateWithFlags", "hipGraphExecDestroy",
	"hipGraphExecKernelNodeSetParams", "hipGraphExecMemsetNodeSetParams", "hipGraphExecMemcpyNodeSetParams1D", "hipGraphLaunch",
}

// lacks returns an error if a library lacks some of the functions.
func lacks(lib *hip.Library, symbols []string) error {
	for _, s := range symbols {
		if !lib.HasSymbol(s) {
			return fmt.Errorf("the HIP runtime, version %s, lacks %s: %w", version(lib), s, driver.ErrUnsupported)
		}
	}
	return nil
}

// A nodeParams holds a node's parameters in C's form. The bindings need it on the heap, so nodeRoom
// recycles nodeParams.
type nodeParams struct {
	kernel hip.KernelNodeParams
	fill   hip.MemsetParams
}

var nodeRoom = sync.Pool{New: func() any { return new(nodeParams) }}

// fillIn fills in the parameters for the kind of op.
func (p *nodeParams) fillIn(op *driver.NodeOp) {
	switch op.Kind {
	case driver.KernelNode:
		l := &op.Launch
		grid, block := l.Dims()
		p.kernel = hip.KernelNodeParams{
			Func:           pointer(uintptr(l.Function)),
			GridDim:        hip.Dim3{X: grid[0], Y: grid[1], Z: grid[2]},
			BlockDim:       hip.Dim3{X: block[0], Y: block[1], Z: block[2]},
			SharedMemBytes: l.SharedMem,
			KernelParams:   unsafe.SliceData(l.Args),
		}
	case driver.FillNode:
		p.fill = hip.MemsetParams{Dst: pointer(uintptr(op.Dst)), Value: op.Pattern, ElementSize: uint32(op.Width), Width: op.Count, Height: 1}
		switch op.Width {
		case 1:
			p.fill.Value = uint32(uint8(op.Pattern))
		case 2:
			p.fill.Value = uint32(uint16(op.Pattern))
		}
		if op.Stride != 0 && op.Stride != uint64(op.Width) && op.Count != 1 { // FillStrided: a matrix of one column
			p.fill.Pitch, p.fill.Width, p.fill.Height = op.Stride, 1, op.Count
		}
	}
}

// drop clears the parameters, so that they keep no argument alive, and returns them to nodeRoom.
func (p *nodeParams) drop() {
	*p = nodeParams{}
	nodeRoom.Put(p)
}

// failNode does what fail does, for a call about a node of a graph. The device is not lost if HIP
// has only refused the node.
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

// AddNode copies a kernel's arguments and the graph of a child node. For a copy node, the library
// finds the kinds of memory from the addresses.
func (d *device) AddNode(g driver.Graph, after []driver.Node, op *driver.NodeOp) (driver.Node, error) {
	if d.noGraphs != nil {
		return 0, d.refuse("add node", d.noGraphs, "graphs")
	}
	if op.Kind == driver.KernelNode && op.Launch.Begun != 0 {
		return 0, d.refuse("add node", errBegun, "%s", op)
	}
	if a := &op.Launch.Attrs; op.Kind == driver.KernelNode && relies(a) {
		err := d.lacksAttrs(a)
		if err == nil { // HIP does not document that nodes use the attributes, whose layout changed in 7.0
			err = fmt.Errorf("HIP has no cooperative nodes: %w", driver.ErrUnsupported)
		}
		return 0, d.refuse("add node", err, "%s", op)
	}
	graph, deps := hip.Graph(g), unsafe.Slice((*hip.GraphNode)(unsafe.SliceData(after)), len(after))
	p := nodeRoom.Get().(*nodeParams)
	defer p.drop()
	p.fillIn(op)
	var n hip.GraphNode
	var err error
	switch op.Kind {
	case driver.EmptyNode:
		n, err = d.lib.GraphAddEmptyNode(graph, deps)
	case driver.KernelNode:
		n, err = d.lib.GraphAddKernelNode(graph, deps, &p.kernel)
	case driver.FillNode:
		n, err = d.lib.GraphAddMemsetNode(graph, deps, &p.fill)
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
	l := new(launches)
	for range 2 {
		if err := d.addEvent(l); err != nil {
			return 0, d.fail("instantiate", errors.Join(err, d.destroyEvents(l), d.lib.GraphExecDestroy(x)), "events for graph %#x", uintptr(g))
		}
	}
	d.mu.Lock()
	d.execs[driver.Exec(x)] = l
	d.mu.Unlock()
	return driver.Exec(x), nil
}

func (d *device) DestroyExec(x driver.Exec) error {
	if d.noGraphs != nil {
		return d.refuse("destroy exec", d.noGraphs, "graphs")
	}
	d.mu.Lock()
	l := d.execs[x]
	delete(d.execs, x) // must come before the destroy: afterwards another exec can get the handle
	d.mu.Unlock()
	if err := d.lib.GraphExecDestroy(hip.GraphExec(x)); err != nil {
		if l != nil {
			d.mu.Lock()
			d.execs[x] = l
			d.mu.Unlock()
		}
		return d.fail("destroy exec", err, "exec %#x", uintptr(x))
	}
	if l != nil {
		if err := d.destroyEvents(l); err != nil {
			return d.fail("destroy exec", err, "events of exec %#x", uintptr(x))
		}
	}
	return nil
}

func (d *device) SetNode(x driver.Exec, n driver.Node, op *driver.NodeOp) error {
	return d.SetNodes(x, []driver.Node{n}, unsafe.Slice(op, 1))
}

// SetNodes makes the device current, because the call has no stream from which HIP could take the
// device.
func (d *device) SetNodes(x driver.Exec, nodes []driver.Node, ops []driver.NodeOp) error {
	if d.noGraphs != nil {
		return d.refuse("set node", d.noGraphs, "graphs")
	}
	return d.onDevice("set node", func() error {
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

// setNode sets one node. The device is current. p may hold the parameters of an earlier node.
func (d *device) setNode(x driver.Exec, n driver.Node, op *driver.NodeOp, p *nodeParams) error {
	exec, node := hip.GraphExec(x), hip.GraphNode(n)
	p.fillIn(op)
	var err error
	switch op.Kind {
	case driver.KernelNode:
		err = d.lib.GraphExecKernelNodeSetParams(exec, node, &p.kernel)
	case driver.FillNode:
		err = d.lib.GraphExecMemsetNodeSetParams(exec, node, &p.fill)
	case driver.CopyNode:
		err = d.lib.GraphExecMemcpyNodeSetParams1D(exec, node, pointer(uintptr(op.Dst)), pointer(uintptr(op.Src)), op.Count, hip.MemcpyDefault)
	case driver.ChildNode:
		err = d.lib.GraphExecChildGraphNodeSetParams(exec, node, hip.Graph(op.Child))
	default:
		return d.refuse("set node", fmt.Errorf("only kernels, fills, copies and child nodes can be set: %w", hip.ErrorInvalidValue), "%s", op)
	}
	if err != nil {
		return d.failNode("set node", err, "%s, node %#x of exec %#x", op, uintptr(n), uintptr(x))
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
	return d.submit("launch graph", func() error {
		d.mu.Lock()
		l := d.execs[x]
		_, own := d.streams[s]
		var err error
		if l != nil && l.stream != s {
			if err = d.follow(hip.Stream(s), l); err == nil {
				l.left = 0
				l.stream = s // also after an error, because parts of the launch may be in the stream
			}
		}
		d.mu.Unlock()
		if err == nil {
			err = d.lib.GraphLaunch(hip.GraphExec(x), hip.Stream(s))
		}
		if err != nil {
			return d.failLaunch("launch graph", s, err, "exec %#x in stream %#x", uintptr(x), uintptr(s))
		}
		if l != nil && !own {
			d.leave(l)
		}
		return nil
	})
}

// leave records an event after the last launch, for the next launch to wait for: the program may
// destroy the stream in between. If recording fails, the next launch tries again.
func (d *device) leave(l *launches) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, err := d.record(l); err == nil {
		l.stream, l.left = 0, e
	} else {
		d.lib.GetLastError()
	}
}

// launches holds data about an exec's launches. The device's mu protects the fields.
type launches struct {
	stream driver.Stream // stream of the last launch; 0 if there is none, if the field left is set, or if the stream was destroyed
	// Event after the last launch, set if the program made the stream of that launch.
	left hip.Event
	// If the previous launch was in another stream, a launch waits for it with one of these events.
	// The events are recorded in rotation. next is the index of the event to record next.
	events   []hip.Event
	next     int
	recorded int // number of events that have been recorded at least once
}

// destroyEvents destroys the events of a destroyed exec.
func (d *device) destroyEvents(l *launches) error {
	var errs []error
	for _, e := range l.events {
		errs = append(errs, d.lib.EventDestroy(e))
	}
	return errors.Join(errs...)
}

// follow makes a stream wait for the last launch if that launch is in another stream. The wait
// includes all earlier work of that other stream. HIP does not order launches of an exec in two
// streams, so the second launch would overwrite the data of the first. The caller holds mu.
//
// HIP does not define what happens to pending waits for an event that is recorded again. The events
// are recorded in rotation. An event may be recorded again once the next event in the rotation is
// complete, because the next event was recorded after the wait. If the next event is not complete,
// launches have changed streams many times ahead of the device, and the exec gets one more event.
// Waiting here could deadlock.
func (d *device) follow(s hip.Stream, l *launches) (err error) {
	e := l.left
	if l.stream != 0 {
		e, err = d.record(l)
	}
	if err != nil || e == 0 {
		return err
	}
	return d.lib.StreamWaitEvent(s, e, 0)
}

// record records an event after the last launch. The caller holds mu.
func (d *device) record(l *launches) (hip.Event, error) {
	if l.recorded == len(l.events) {
		over, err := d.Query(driver.Event(l.events[(l.next+1)%len(l.events)]))
		if err == nil && !over {
			err = d.onDevice("launch graph", func() error { return d.addEvent(l) })
		}
		if err != nil {
			return 0, err
		}
	}
	e := l.events[l.next]
	if err := d.lib.EventRecord(e, hip.Stream(l.stream)); err != nil {
		return 0, err
	}
	l.next, l.recorded = (l.next+1)%len(l.events), min(l.recorded+1, len(l.events))
	return e, nil
}

// addEvent adds an event to an exec as the next one to record. The device is current.
func (d *device) addEvent(l *launches) error {
	e, err := d.lib.EventCreateWithFlags(hip.EventDisableTiming)
	if err == nil {
		l.events = slices.Insert(l.events, l.next, e)
	}
	return err
}
