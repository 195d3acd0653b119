package work

import (
	"errors"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Operands are what an operation is done with. Which fields count depends on its kind.
type Operands struct {
	Dst, Src     driver.Ptr     // of an upload and a download one is that of pinned memory
	DstOf, SrcOf driver.Device  // whose memory it is where a copy has to name that, else both nil
	Host         unsafe.Pointer // the host's address of the pinned memory
	Launch       *driver.Launch
	Timer        driver.Event
}

// errKind is of operations that have no translation.
var errKind = errors.New("no operation that the driver knows")

// Run makes the native calls of the operation on a stream. It reports whether the stream has got any of them. A barrier has none.
func (o *Op) Run(d driver.Device, h driver.Stream, x *Operands) (started bool, err error) {
	switch o.Kind {
	case Barrier, Nothing:
		return false, nil
	case Fill:
		err = d.Fill(h, x.Dst, o.Pattern, int(o.Width), o.Count)
	case Fill8:
		if err = d.FillStrided(h, x.Dst, o.Pattern, 8, o.Count); err == nil {
			started = true
			err = d.FillStrided(h, x.Dst+4, o.High, 8, o.Count)
		}
	case Copy, Upload, Download:
		switch {
		case x.DstOf != nil:
			err = d.(driver.Peers).CopyPeer(h, x.Dst, x.DstOf, x.Src, x.SrcOf, o.Count)
		case o.Kind == Upload:
			err = d.Upload(h, x.Dst, x.Host, o.Count)
		case o.Kind == Download:
			err = d.Download(h, x.Host, x.Src, o.Count)
		default:
			err = d.Copy(h, x.Dst, x.Src, o.Count)
		}
	case Prefetch:
		err = d.(driver.Prefetcher).Prefetch(h, x.Dst, o.Count, o.MemKind())
	case Dispatch:
		err = d.Launch(h, x.Launch)
	case Timestamp:
		err = d.Record(x.Timer, h)
	default:
		err = errKind
	}
	return started || err == nil, err
}

// Nodes returns how many nodes of a graph the operation is. A barrier is none: it is edges.
func (o *Op) Nodes() int {
	switch o.Kind {
	case Barrier, Nothing:
		return 0
	case Fill8:
		return 2
	}
	return 1
}

// Node returns what one of the operation's nodes does. A node can name no other devices. If an operand moves, so does the address
// in the node, by as much, and nothing else changes; arguments of a kernel are read where the launch points to them.
func (o *Op) Node(i int, x *Operands) (n driver.NodeOp, err error) {
	switch o.Kind {
	case Fill:
		n = driver.NodeOp{Kind: driver.FillNode, Dst: x.Dst, Pattern: o.Pattern, Width: int(o.Width), Count: o.Count}
	case Fill8:
		n = driver.NodeOp{Kind: driver.FillNode, Dst: x.Dst, Pattern: o.Pattern, Width: 4, Count: o.Count, Stride: 8}
		if i == 1 {
			n.Dst, n.Pattern = x.Dst+4, o.High
		}
	case Copy, Upload, Download:
		n = driver.NodeOp{Kind: driver.CopyNode, Dst: x.Dst, Src: x.Src, Count: o.Count}
	case Dispatch:
		n = driver.NodeOp{Kind: driver.KernelNode, Launch: *x.Launch}
	case Timestamp:
		n = driver.NodeOp{Kind: driver.RecordNode, Event: x.Timer}
	default:
		err = errKind
	}
	return n, err
}

// Resizable reports whether a node of the operation can be set to another size where [driver.Caps].ResizeNodes is set.
func (o *Op) Resizable() bool { return o.Kind != Fill8 }
