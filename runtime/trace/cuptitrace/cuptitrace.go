// Package cuptitrace times the commands of CUDA graphs for traces, by CUPTI. Import it for its
// effect:
//
//	import _ "github.com/puregpu/puregpu/runtime/trace/cuptitrace"
//
// The package matters in traces with times of commands (PUREGPU_TRACE_TIMES=commands, or
// trace.CommandTimes). With the package, these traces have the times of the commands of graphs, and
// recordings run as graphs, as they do without a trace. Without the package, recordings of
// gpu.AutoMode run as calls in such traces, and recordings of gpu.GraphMode have no times of their
// commands. The package changes nothing in other traces and in programs without a trace: CUPTI is
// not opened.
//
// CUPTI is a library of the CUDA toolkit ([cupti.Open] finds it; the environment variable
// PUREGPU_CUPTI_LIBRARY names its file). It needs no privileges. A process can use CUPTI for one
// purpose at a time, so the package does not work under Nsight Systems or Nsight Compute. If CUPTI
// cannot be used, the trace says why, and recordings run as without the package.
//
// CUPTI makes calls of the CUDA driver slower, and it may add about a microsecond between the nodes
// of a graph. So the times of single commands are right, and the time of a whole graph is a little
// longer than without CUPTI.
package cuptitrace

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cupti"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/latest"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

func init() {
	observe.Profilers.Store(&observe.Profiler{Driver: "cuda", Start: start, Timer: newTimer})
}

// collector has the process's CUPTI. CUPTI is started at most once, and stays until the process
// ends.
var collector struct {
	once sync.Once
	c    *collecting
	name string
	err  error
}

// Start starts CUPTI, and returns why CUPTI cannot be used, or nil. A program need not call Start:
// the first tracer with times of commands starts CUPTI. But CUPTI may miss graphs in CUDA contexts
// that were made before CUPTI started. So call Start first if the program, or a library, makes a
// context before the tracer. CUPTI runs until the process ends. Further calls of Start return the
// same result.
func Start() error {
	_, err := start()
	return err
}

// start does the work of Start. For messages it also returns CUPTI's name and version.
func start() (name string, err error) {
	x := &collector
	x.once.Do(func() {
		if x.c, x.err = open(); x.err == nil {
			x.name = "CUPTI " + cupti.FormatVersion(x.c.cupti.Version())
		}
	})
	return x.name, x.err
}

// newTimer returns the timer of a device.
func newTimer(driver.Device) driver.NodeTimer { return &timer{c: collector.c} }

// collecting collects the records of CUPTI.
//
// A node gets its number when it is added to its graph. To instantiate the graph, CUDA clones its
// nodes, and records have the number of the clone. So a callback notes the original node of each
// clone. There is no callback for the nodes of a child graph. In the instance, these nodes get the
// numbers that the other nodes of the instance leave free, in the order of the children. This
// package gives each launch a number. CUPTI writes a record that relates the launch's number to the
// correlation number of the CUDA call that launches the graph. The records of all nodes of the
// launch have that correlation number.
//
// CUPTI calls collecting.called and collecting.take on any thread, also within calls of CUDA, and
// both lock collecting.mu. So no call of CUDA or CUPTI is made while that mutex is held.
type collecting struct {
	cuda  *cuda.Library
	cupti *cupti.Library

	mu       sync.Mutex
	timers   latest.Map[uint64, *timer]    // by a node's number
	origins  latest.Map[uint64, uint64]    // a clone's number to the number of the original node
	children latest.Map[uint64, []uint64]  // a child graph's node to the original nodes of the child
	inside   latest.Map[uint64, []child]   // an instance to its children whose nodes are not in origins yet
	launches latest.Map[uint64, launching] // by the number that this package gave the launch
	calls    latest.Map[uint32, uint64]    // a correlation number to the launch's number
	last     uint64                        // number of the last launch
	pending  []record
}

// A child is a clone of a node that is a child graph.
type child struct {
	node  uint64
	first []uint64 // the original nodes of the child graph
}

// A launching is a launch of a graph.
type launching struct {
	timer  *timer
	launch uint64 // the number that BeginLaunch was given
}

// A record has the times of one execution of a node. It stays in collecting.pending until a timer
// takes it, or until it is too old.
type record struct {
	node        uint64
	correlation uint32
	kernel      string
	begun, end  uint64 // times on CUPTI's clock
	age         int    // how many calls of NodeTimes have looked at the record
}

const (
	mostNodes   = 1 << 19 // entries in each map of nodes; the oldest are dropped
	mostPending = 1 << 20 // records in collecting.pending; further ones are dropped
	bufferSize  = 4 << 20 // bytes of a buffer that CUPTI fills with records

	// A record whose launch is unknown stays until mostAge calls of NodeTimes have looked at it,
	// because the record of the launch may come later. From the last of these calls on, the timer
	// that knows the node takes the record, and reports 0 for the launch. A record of another
	// device stays for oldAge calls, so that the other device's timer can take it.
	mostAge = 2
	oldAge  = 64
)

// open opens CUPTI and starts to collect.
func open() (*collecting, error) {
	c := new(collecting)
	c.timers.Keep, c.origins.Keep, c.children.Keep, c.inside.Keep = mostNodes, mostNodes, mostNodes, mostNodes
	var err error
	if c.cupti, err = cupti.Open(cupti.Options{}); err != nil {
		return nil, err
	}
	if c.cuda, err = cuda.Open(cuda.Options{}); err != nil {
		return nil, err
	}
	subscriber, err := c.cupti.SubscribeFunc(c.called)
	if err != nil {
		return nil, fmt.Errorf("cuptitrace: subscribe to CUPTI: %w", err)
	}
	fail := func(what string, err error) (*collecting, error) {
		c.cupti.Unsubscribe(subscriber) // ignore its error: the caller gets the first one
		return nil, fmt.Errorf("cuptitrace: %s: %w", what, err)
	}
	if err := c.cupti.EnableCallback(1, subscriber, cupti.CBDomainResource, cupti.CallbackId(cupti.CBIDResourceGraphnodeCloned)); err != nil {
		return fail("enable the callback for clones of nodes", err)
	}
	if err := c.cupti.CollectActivities(bufferSize, c.take); err != nil {
		return fail("collect activity records", err)
	}
	for _, kind := range []cupti.ActivityKind{cupti.ActivityKindConcurrentKernel, cupti.ActivityKindMemcpy, cupti.ActivityKindMemcpy2, cupti.ActivityKindMemset,
		// CUPTI writes ActivityKindExternalCorrelation only together with ActivityKindDriver.
		cupti.ActivityKindDriver, cupti.ActivityKindExternalCorrelation} {
		if err := c.cupti.ActivityEnable(kind); err != nil {
			return fail("enable "+kind.String(), err)
		}
	}
	return c, nil
}

// called is the callback of CUPTI for cloned nodes. It notes the original node of the clone.
func (c *collecting) called(domain cupti.CallbackDomain, cbid cupti.CallbackId, data unsafe.Pointer) {
	if domain != cupti.CBDomainResource || cbid != cupti.CallbackId(cupti.CBIDResourceGraphnodeCloned) || data == nil {
		return
	}
	g := (*cupti.GraphData)((*cupti.ResourceData)(data).ResourceDescriptor)
	if g == nil {
		return
	}
	from, err := c.cupti.GetGraphNodeId(g.OriginalNode)
	if err != nil {
		return
	}
	to, err := c.cupti.GetGraphNodeId(g.Node)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, ok := c.children.Of(from); ok {
		list, _ := c.inside.Of(instance(to))
		c.inside.Set(instance(to), append(list, child{to, first}))
	}
	if first, ok := c.origins.Of(from); ok {
		from = first
	}
	c.origins.Set(to, from)
}

// instance returns the number of the instance that a node belongs to: the upper half of the node's
// number. The lower half counts the nodes of the instance from 0.
func instance(node uint64) uint64 { return node >> 32 }

// first returns the number of the original of a node. If the node is no known clone, first returns
// the node's own number. The first call for an instance with child graphs also finds the clones of
// their nodes (see collecting). The caller holds c.mu.
func (c *collecting) first(node uint64) uint64 {
	if first, ok := c.origins.Of(node); ok {
		return first
	}
	children, _ := c.inside.Of(instance(node))
	if len(children) == 0 {
		return node
	}
	slices.SortFunc(children, func(a, b child) int { return cmp.Compare(a.node, b.node) })
	next := instance(node) << 32
	for _, x := range children {
		for _, first := range x.first {
			for {
				if _, taken := c.origins.Of(next); !taken {
					break
				}
				next++
			}
			c.origins.Set(next, first)
		}
	}
	c.inside.Set(instance(node), nil)
	if first, ok := c.origins.Of(node); ok {
		return first
	}
	return node
}

// take takes the records of nodes and of launches from a buffer.
func (c *collecting) take(buffer []byte) {
	var nodes []record
	calls := map[uint32]uint64{}
	for r, err := range c.cupti.Records(buffer) {
		if err != nil {
			break // the rest of the buffer cannot be read
		}
		var x record
		switch r.Kind() {
		case cupti.ActivityKindConcurrentKernel:
			k := r.Kernel()
			x = record{node: k.GraphNodeId, correlation: k.CorrelationId, begun: k.Start, end: k.End}
			if x.node != 0 {
				x.kernel = r.Name()
			}
		case cupti.ActivityKindMemcpy:
			m := r.Memcpy()
			x = record{node: m.GraphNodeId, correlation: m.CorrelationId, begun: m.Start, end: m.End}
		case cupti.ActivityKindMemcpy2:
			m := (*cupti.ActivityMemcpyPtoP3)(r.Pointer())
			x = record{node: m.GraphNodeId, correlation: m.CorrelationId, begun: m.Start, end: m.End}
		case cupti.ActivityKindMemset:
			m := r.Memset()
			x = record{node: m.GraphNodeId, correlation: m.CorrelationId, begun: m.Start, end: m.End}
		case cupti.ActivityKindExternalCorrelation:
			if e := r.ExternalCorrelation(); e.ExternalKind == correlations {
				calls[e.CorrelationId] = e.ExternalId
			}
		}
		// CUPTI writes a time of 0 if it could not measure.
		if x.node != 0 && x.begun != 0 && x.end >= x.begun {
			nodes = append(nodes, x)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for correlation, id := range calls {
		c.calls.Set(correlation, id)
	}
	c.pending = append(c.pending, nodes[:min(len(nodes), max(mostPending-len(c.pending), 0))]...)
}

// correlations is the kind of CUPTI's external correlation ids that this package uses. The ids are
// the numbers of launches.
const correlations = cupti.ExternalCorrelationKindCustom2

// A timer times the nodes of the graphs of one device.
type timer struct{ c *collecting }

// NodeIDs appends CUPTI's number for a node. For a child graph it appends the numbers of the nodes
// in that graph instead.
func (t *timer) NodeIDs(to []uint64, n driver.Node) []uint64 {
	from := len(to)
	to, isGraph := t.c.nodeIDs(to, cuda.GraphNode(n))
	var child uint64
	if isGraph {
		child, _ = t.c.cupti.GetGraphNodeId(cuda.GraphNode(n)) // after an error, the child's nodes have no times
	}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	for i, id := range to[from:] {
		if first, ok := t.c.origins.Of(id); ok { // the nodes of a child graph are clones already
			to[from+i], id = first, first
		}
		t.c.timers.Set(id, t)
	}
	if child != 0 {
		t.c.children.Set(child, slices.Clone(to[from:]))
	}
	return to
}

// nodeIDs appends the numbers that CUPTI has for a node, or for the nodes of a child graph. It also
// reports whether the node is a child graph.
func (c *collecting) nodeIDs(to []uint64, n cuda.GraphNode) (ids []uint64, isGraph bool) {
	if kind, err := c.cuda.GraphNodeGetType(n); err == nil && kind == cuda.GraphNodeTypeGraph {
		g, err := c.cuda.GraphChildGraphNodeGetGraph(n)
		if err != nil {
			return to, true
		}
		count, err := c.cuda.GraphGetNodes(g, nil)
		if err != nil {
			return to, true
		}
		nodes := make([]cuda.GraphNode, count)
		if count, err = c.cuda.GraphGetNodes(g, nodes); err != nil {
			return to, true
		}
		for _, n := range nodes[:min(count, uint64(len(nodes)))] {
			to, _ = c.nodeIDs(to, n)
		}
		return to, true
	}
	id, err := c.cupti.GetGraphNodeId(n)
	if err != nil {
		return to, false
	}
	return append(to, id), false
}

// BeginLaunch gives the thread's next CUDA calls a number, by which their records are found.
func (t *timer) BeginLaunch(_ driver.Stream, launch uint64) {
	c := t.c
	c.mu.Lock()
	c.last++
	id := c.last
	c.launches.Set(id, launching{t, launch})
	c.mu.Unlock()
	// Without the number, no record can be assigned to the launch: its times are missing.
	c.cupti.ActivityPushExternalCorrelationId(correlations, id)
}

// EndLaunch ends the effect of BeginLaunch.
func (t *timer) EndLaunch(driver.Stream) { t.c.cupti.ActivityPopExternalCorrelationId(correlations) }

// NodeTimes takes CUPTI's records, and appends the times of the device's nodes. A record whose
// launch is not known yet waits for a later call (see mostAge), unless last is set.
func (t *timer) NodeTimes(to []driver.NodeTime, last bool) []driver.NodeTime {
	c := t.c
	flag := uint32(0)
	if last {
		flag = uint32(cupti.ActivityFlagFlushForced)
	}
	c.cupti.ActivityFlushAll(flag) // if it fails, only records already delivered are found
	now, err := c.cupti.GetTimestamp()
	host := time.Now()
	if err != nil {
		return to
	}
	at := func(stamp uint64) time.Time { return host.Add(time.Duration(int64(stamp - now))) }
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.pending[:0]
	for _, x := range c.pending {
		x.age++
		node := c.first(x.node)
		call, _ := c.calls.Of(x.correlation) // 0 if the launch is unknown; no launch has number 0
		l, ok := c.launches.Of(call)
		if !ok {
			l.timer, _ = c.timers.Of(node)
			if x.age < mostAge && !last {
				left = append(left, x)
				continue
			}
		}
		switch l.timer {
		case t:
			to = append(to, driver.NodeTime{Node: node, Launch: l.launch, Kernel: x.kernel, Begun: at(x.begun), Ended: at(x.end)})
		case nil: // not a node of a recording
		default: // the record is another device's
			if x.age < oldAge {
				left = append(left, x)
			}
		}
	}
	clear(c.pending[len(left):])
	c.pending = left
	return to
}
