package driver

import (
	"fmt"
	"time"
)

// Handles of graphs. Zero means no object.
type (
	Graph uintptr // nodes and their edges
	Node  uintptr // a node of a graph
	Exec  uintptr // an executable graph
)

// A NodeKind is the kind of a node.
type NodeKind int

// The kinds of nodes.
const (
	EmptyNode  NodeKind = iota // no operation; joins the edges between two groups of nodes
	KernelNode                 // uses Launch
	FillNode                   // uses Dst, Pattern, Width, Count, Stride
	CopyNode                   // uses Dst, Src, Count in bytes; copies as [Device].Copy does
	ChildNode                  // uses Child, which the node copies
	RecordNode                 // uses Event, made by NewTimer
	TestNode                   // uses Test; reads a uint32 at Src, which is a multiple of 4
	IfNode                     // uses Test.Condition; only [Conditionals].AddConditional adds it
	WhileNode                  // as IfNode
)

// A Condition decides whether a conditional node runs its body. A Condition belongs to one graph.
// Zero means no condition.
type Condition uint64

// A Test is the operation of a TestNode. The condition becomes true if the number that the node
// reads is at least Low and at most High. Otherwise it becomes false.
type Test struct {
	Condition Condition
	Low, High uint32
}

// A NodeOp is the operation of a node. Kind decides which fields are used.
type NodeOp struct {
	Kind     NodeKind
	Launch   Launch // the call reads Launch.Args, and does not keep them
	Dst, Src Ptr
	Pattern  uint32
	Width    int    // bytes per element: 1, 2 or 4
	Count    uint64 // elements of a fill, or bytes of a copy; not zero
	Stride   uint64 // bytes from one element to the next; 0 means Width
	Child    Graph
	Event    Event
	Test     Test
	Name     string // the node's name in messages, if Caps.ChecksOrder is set
}

// String describes the operation for errors.
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
	case TestNode:
		return fmt.Sprintf("test whether the uint32 at %#x is in [%d, %d]", uint64(op.Src), op.Test.Low, op.Test.High)
	case IfNode, WhileNode:
		return fmt.Sprintf("conditional node of condition %#x", uint64(op.Test.Condition))
	}
	return fmt.Sprintf("node of unknown kind %d", int(op.Kind))
}

// Graphs makes graphs, which are launched as a whole ([Caps.Graphs]). Only one goroutine at a time
// may use a graph or an exec.
type Graphs interface {
	// NewGraph makes an empty graph. It needs a bound thread.
	NewGraph() (Graph, error)
	// DestroyGraph destroys a graph. The graph's execs stay valid. DestroyGraph needs a bound
	// thread.
	DestroyGraph(Graph) error
	// AddNode adds a node that runs after the given nodes. No node may be given twice. AddNode
	// needs a bound thread.
	AddNode(g Graph, after []Node, op *NodeOp) (Node, error)

	// Instantiate makes an executable graph. It needs a bound thread.
	Instantiate(Graph) (Exec, error)
	// DestroyExec destroys an exec without a launch in flight. It needs a bound thread.
	DestroyExec(Exec) error
	// SetNode changes the operation of a node in later launches of an exec. Launches in flight are
	// not affected. The graph must not have been destroyed. The node's kind cannot change. Neither
	// can the function and the attributes of a kernel node. The API may refuse other sizes, strides
	// and kinds of memory for fills and copies. SetNode is for kernel, fill and copy nodes. If
	// Caps.Capture is set, SetNode is also for child nodes: the new child may differ from the old
	// one only in ways that SetNode allows. If Caps.Conditionals is set, SetNode is also for nodes
	// in bodies, and for test nodes, of which only Src may change. Any thread may call it.
	SetNode(x Exec, n Node, op *NodeOp) error
	// SetNodes is SetNode for several nodes. It may cost less than several calls of SetNode. After
	// an error any of the nodes may have been set. Any thread may call it.
	SetNodes(x Exec, nodes []Node, ops []NodeOp) error
	// LaunchGraph runs an exec in stream order. Launches of the same exec run one after another,
	// even in different streams. Any thread may call it.
	LaunchGraph(s Stream, x Exec) error
}

// Timers makes events that record times ([Caps.Timers]).
type Timers interface {
	// NewTimer makes an event that records the time at which a stream reaches the event. NewTimer
	// needs a bound thread. DestroyEvent destroys the timer.
	NewTimer() (Event, error)
	// Elapsed returns the time between the last records of two timers. Streams must have reached
	// both. Any thread may call it.
	Elapsed(from, to Event) (time.Duration, error)
}

// Conditionals makes conditional nodes of graphs ([Caps.Conditionals], which implies Caps.Graphs).
// A conditional node has a body: a graph that runs if the node's condition is true. A TestNode
// makes a condition true or false. A launch that reaches a conditional node before any TestNode of
// its condition has undefined results.
//
// A body may have kernel, fill, copy, test, child and conditional nodes. AddNode or Instantiate may
// refuse other kinds of nodes in a body and in the body's child graphs, and any child graph with
// conditional or test nodes.
type Conditionals interface {
	// ReadyConditionals prepares the device for conditional nodes. It is called before the other
	// methods. After an error the device has no conditional nodes, whatever Caps.Conditionals says.
	// ReadyConditionals needs a bound thread.
	ReadyConditionals() error
	// NewCondition makes a condition for a conditional node of a graph. It needs a bound thread.
	// DestroyGraph destroys the condition too.
	NewCondition(Graph) (Condition, error)
	// AddConditional adds a conditional node that runs after the given nodes. No node may be given
	// twice. An IfNode runs its body once if the condition is true. A WhileNode repeats its body as
	// long as the condition is true. Each condition is for one conditional node only.
	// AddConditional returns the body, an empty graph to which the caller adds nodes. The body
	// belongs to g: do not pass it to DestroyGraph. AddConditional needs a bound thread.
	AddConditional(g Graph, after []Node, op *NodeOp) (n Node, body Graph, err error)
}
