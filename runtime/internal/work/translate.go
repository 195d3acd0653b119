package work

import (
	"errors"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// An Extra is what an operation is done with besides addresses. Which fields count depends on its
// kind; a plain one that names no devices needs none, and may be given nil.
type Extra struct {
	DstOf, SrcOf driver.Device                                    // whose memory a copy is between, where it has to name that, else both nil
	Pinned       driver.Ptr                                       // memory of the host from which an upload is, or to which a download, with
	Host         unsafe.Pointer                                   // the host's address
	Launch       *driver.Launch                                   // of a native operation, Args point to the addresses of its ranges
	Event        driver.Event                                     // of a timestamp, or one that others use as well
	Native       func(s driver.Stream, ranges []driver.Ptr) error // gives work to a stream
	Child        driver.Graph                                     // what a native operation has given to one
}

// CallNative calls the function of a native operation.
func (x *Extra) CallNative(s driver.Stream) error {
	var ranges []driver.Ptr
	if n := len(x.Launch.Args); n > 0 {
		ranges = unsafe.Slice(Address(x.Launch.Args[0]), n) // they lie one after the other
	}
	return x.Native(s, ranges)
}

// errKind is of operations that have no translation.
var errKind = errors.New("no operation that the driver knows")

// Run makes the native calls of the operation on a stream. It reports whether the stream has got
// any of them. A barrier has none.
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
	case Dispatch:
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
		started = true // if it fails, nobody knows
		err = x.CallNative(h)
	default:
		err = errKind
	}
	return started || err == nil, err
}

// copyPeer copies between memory of devices that have to be named.
func (x *Extra) copyPeer(d driver.Device, h driver.Stream, dst, src driver.Ptr, n uint64) error {
	return d.(driver.Peers).CopyPeer(h, dst, x.DstOf, src, x.SrcOf, n)
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

// Node returns what one of the operation's nodes does. A node can name no other devices. If dst or
// src moves, so does the address in the node, by as much, and nothing else changes; arguments of a
// kernel are read where the launch points to them.
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
	case Dispatch:
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

// Resizable reports whether a node of the operation can be set to another size where
// [driver.Caps].ResizeNodes is set.
func (o *Op) Resizable() bool { return o.Kind != Fill8 }
