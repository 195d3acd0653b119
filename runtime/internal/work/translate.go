package work

import (
	"errors"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// An Extra has the operands of an operation other than its device addresses. Each kind of operation
// uses some of the fields. A plain operation (see Kind.Plain) needs none, and its Extra may be nil,
// unless the operation is a copy that needs DstOf and SrcOf.
type Extra struct {
	// DstOf and SrcOf are the devices that own the destination and the source of a copy, if the
	// driver must be told. Otherwise they are nil.
	DstOf, SrcOf driver.Device
	// Pinned is the device address of pinned host memory: the source of an upload, the target of a
	// download.
	Pinned driver.Ptr
	// Host is the host address of the pinned host memory.
	Host unsafe.Pointer
	// Launch is the launch of a Launch operation. For a Native operation, Launch.Args points to the
	// addresses of the memory ranges that the operation uses.
	Launch *driver.Launch
	// Event is the event of a Timestamp, or a shared event.
	Event driver.Event
	// Native is the program's function of a Native operation. The function issues work to a stream.
	Native func(s driver.Stream, ranges []driver.Ptr) error
	// Child is the work of a Native operation, captured as a graph.
	Child driver.Graph
}

// CallNative calls the program's function of a Native operation, with the addresses of the
// operation's ranges.
func (x *Extra) CallNative(s driver.Stream) error {
	var ranges []driver.Ptr
	if n := len(x.Launch.Args); n > 0 {
		ranges = unsafe.Slice(Address(x.Launch.Args[0]), n) // the addresses are adjacent in memory
	}
	return x.Native(s, ranges)
}

// errKind is the error of kinds that Run or Node cannot translate.
var errKind = errors.New("no operation that the driver knows")

// Run makes the native calls of the operation on the stream h. started reports whether the stream
// has received any of them, or for a Native operation may have. A Barrier and a Nothing make none.
func (o *Op) Run(d driver.Device, h driver.Stream, dst, src driver.Ptr, x *Extra) (started bool, err error) {
	switch o.Kind {
	case Barrier, Nothing:
		return false, nil
	case Fill:
		err = d.Fill(h, dst, o.Pattern, 1<<o.Unit, o.Count)
	case Fill8:
		if err = d.FillStrided(h, dst, o.Pattern, 8, o.Count); err == nil {
			started = true
			err = d.FillStrided(h, dst+4, o.High, 8, o.Count)
		}
	case Copy:
		if x == nil || x.DstOf == nil {
			err = d.Copy(h, dst, src, o.Count)
		} else {
			err = x.copyPeer(d, h, dst, src, o.Count)
		}
	case Upload:
		if x.DstOf == nil {
			err = d.Upload(h, dst, x.Host, o.Count)
		} else {
			err = x.copyPeer(d, h, dst, x.Pinned, o.Count)
		}
	case Download:
		if x.SrcOf == nil {
			err = d.Download(h, x.Host, src, o.Count)
		} else {
			err = x.copyPeer(d, h, x.Pinned, src, o.Count)
		}
	case Prefetch:
		err = d.(driver.Prefetcher).Prefetch(h, dst, o.Count, driver.MemKind(o.To))
	case Launch:
		err = d.Launch(h, x.Launch)
	case Timestamp, EventRecord:
		err = d.Record(x.Event, h)
	case EventWait:
		err = d.StreamWait(h, x.Event)
	case ValueWrite:
		err = d.(driver.Values).WriteValue(h, dst, o.Value())
	case ValueWait:
		err = d.(driver.Values).WaitValue(h, dst, o.Value())
	case Native:
		started = true // if the function fails, it may have issued some work
		err = x.CallNative(h)
	default:
		err = errKind
	}
	return started || err == nil, err
}

// copyPeer copies between the memory of the devices DstOf and SrcOf.
func (x *Extra) copyPeer(d driver.Device, h driver.Stream, dst, src driver.Ptr, n uint64) error {
	return d.(driver.Peers).CopyPeer(h, dst, x.DstOf, src, x.SrcOf, n)
}

// Nodes returns the number of graph nodes that the operation needs. A Barrier becomes edges and
// needs none, and neither does a Nothing.
func (o *Op) Nodes() int {
	switch o.Kind {
	case Barrier, Nothing:
		return 0
	case Fill8:
		return 2
	}
	return 1
}

// Node returns the operation's graph node with the index i. A node cannot name other devices, so
// Node ignores DstOf and SrcOf. If a later call passes another dst or src, that address in the node
// moves by the same distance as the argument, and nothing else in the node changes. The node of a
// Launch refers to the arguments of x.Launch, and does not copy them.
func (o *Op) Node(i int, dst, src driver.Ptr, x *Extra) (n driver.NodeOp, err error) {
	switch o.Kind {
	case Fill:
		n = driver.NodeOp{Kind: driver.FillNode, Dst: dst, Pattern: o.Pattern, Width: 1 << o.Unit, Count: o.Count}
	case Fill8:
		n = driver.NodeOp{Kind: driver.FillNode, Dst: dst, Pattern: o.Pattern, Width: 4, Count: o.Count, Stride: 8}
		if i == 1 {
			n.Dst, n.Pattern = dst+4, o.High
		}
	case Copy:
		n = driver.NodeOp{Kind: driver.CopyNode, Dst: dst, Src: src, Count: o.Count}
	case Upload:
		n = driver.NodeOp{Kind: driver.CopyNode, Dst: dst, Src: x.Pinned, Count: o.Count}
	case Download:
		n = driver.NodeOp{Kind: driver.CopyNode, Dst: x.Pinned, Src: src, Count: o.Count}
	case Launch:
		n = driver.NodeOp{Kind: driver.KernelNode, Launch: *x.Launch}
	case Timestamp:
		n = driver.NodeOp{Kind: driver.RecordNode, Event: x.Event}
	case Native:
		n = driver.NodeOp{Kind: driver.ChildNode, Child: x.Child}
	default:
		err = errKind
	}
	return n, err
}

// Resizable reports whether the size of the operation's graph node can be changed, on a driver with
// [driver.Caps].ResizeNodes.
func (o *Op) Resizable() bool { return o.Kind != Fill8 }
