package driver

import (
	"fmt"
	"time"
)

// Handles of graphs. Zero is none.
type (
	Graph uintptr // a recording
	Node  uintptr // of a graph
	Exec  uintptr // a graph made ready to run
)

// A NodeKind says what a node does.
type NodeKind int

// The kinds of nodes.
const (
	EmptyNode  NodeKind = iota // nothing: many nodes after many others need fewer edges with one in between
	KernelNode                 // Launch
	FillNode                   // Dst, Pattern, Width, Count, Stride
	CopyNode                   // Dst, Src, Count bytes; as of [Device].Copy, and of pinned memory of the host
	ChildNode                  // Child, as it is now
	RecordNode                 // Event, made by NewTimer
)

// A NodeOp is what a node does. Which fields count depends on Kind.
type NodeOp struct {
	Kind     NodeKind
	Launch   Launch // its Args are read by the call
	Dst, Src Ptr
	Pattern  uint32
	Width    int    // of an element, 1, 2 or 4 bytes
	Count    uint64 // elements, or bytes; not zero
	Stride   uint64 // bytes from one element to the next; 0 is Width
	Child    Graph
	Event    Event
	Name     string // what messages call the node, if Caps.ChecksOrder is set
}

// String says what the node does, and on what, for errors.
func (op *NodeOp) String() string {
	switch op.Kind {
	case EmptyNode:
		return "empty node"
	case KernelNode:
		return op.Launch.String()
	case FillNode:
		if op.Stride != 0 && op.Stride != uint64(op.Width) {
			return fmt.Sprintf("fill of %d elements of %d bytes, %d bytes apart, at %#x", op.Count, op.Width, op.Stride, uint64(op.Dst))
		}
		return fmt.Sprintf("fill of %d elements of %d bytes at %#x", op.Count, op.Width, uint64(op.Dst))
	case CopyNode:
		return fmt.Sprintf("copy of %d bytes from %#x to %#x", op.Count, uint64(op.Src), uint64(op.Dst))
	case ChildNode:
		return fmt.Sprintf("child graph %#x", uintptr(op.Child))
	case RecordNode:
		return fmt.Sprintf("record of event %#x", uintptr(op.Event))
	}
	return fmt.Sprintf("no kind of node %d", int(op.Kind))
}

// Graphs is what a [Device] implements besides where [Caps.Graphs] is set: recordings that are launched as a whole. A graph,
// and an exec, may be used by one goroutine at a time only.
type Graphs interface {
	// NewGraph makes an empty graph. Creating.
	NewGraph() (Graph, error)
	// DestroyGraph destroys a graph; execs made of it live on. Creating.
	DestroyGraph(Graph) error
	// AddNode adds a node that runs after others of the graph, none of which is named twice. Creating.
	AddNode(g Graph, after []Node, op *NodeOp) (Node, error)

	// Instantiate makes a graph ready to run. Creating.
	Instantiate(Graph) (Exec, error)
	// DestroyExec destroys an exec of which no launch is under way. Creating.
	DestroyExec(Exec) error
	// SetNode changes what a node of the graph that an exec was made of does in later launches; those under way go on as they
	// were. The kind stays, and of a kernel node the function and the attributes; of fills and copies the API may refuse other
	// sizes, strides and kinds of memory. The graph must not have been destroyed. It is for kernel, fill and copy nodes; and for
	// child nodes where Caps.Capture is set: what the new child does may differ from the old one in what SetNode could set, else it
	// is an error. Submitting.
	SetNode(x Exec, n Node, op *NodeOp) error
	// SetNodes is SetNode for several, where that costs less. After an error nobody knows which have been set. Submitting.
	SetNodes(x Exec, nodes []Node, ops []NodeOp) error
	// LaunchGraph runs an exec in stream order. Launches of the same exec run one after the other. Submitting.
	LaunchGraph(s Stream, x Exec) error
}

// Timers is what a [Device] implements besides where [Caps.Timers] is set.
type Timers interface {
	// NewTimer makes an event that notes the time at which it is reached. DestroyEvent destroys it. Creating.
	NewTimer() (Event, error)
	// Elapsed returns the time from one timer's last record to another's, both of which have been reached. Submitting.
	Elapsed(from, to Event) (time.Duration, error)
}
