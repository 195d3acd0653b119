package collective

import (
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// An ElementType is the type of the elements that collective operations move and reduce.
type ElementType = driver.ElementType

// The element types. 16-bit integers can be moved but not reduced. Float16, BFloat16, Float8E4M3
// and Float8E5M2 are the types of package smallfloat with these names.
const (
	Int8       = driver.Int8
	Uint8      = driver.Uint8
	Int16      = driver.Int16
	Uint16     = driver.Uint16
	Int32      = driver.Int32
	Uint32     = driver.Uint32
	Int64      = driver.Int64
	Uint64     = driver.Uint64
	Float16    = driver.Float16
	BFloat16   = driver.BFloat16
	Float32    = driver.Float32
	Float64    = driver.Float64
	Float8E4M3 = driver.Float8E4M3
	Float8E5M2 = driver.Float8E5M2
)

// A Reduction says how the elements of all ranks are combined into one element.
type Reduction comm.Reduction

// Sum adds the elements of all ranks. It is the zero Reduction.
func Sum() Reduction { return reduction(driver.Sum, 0) }

// Prod multiplies the elements of all ranks.
func Prod() Reduction { return reduction(driver.Prod, 0) }

// Min takes the smallest of all ranks' elements.
func Min() Reduction { return reduction(driver.Min, 0) }

// Max takes the largest of all ranks' elements.
func Max() Reduction { return reduction(driver.Max, 0) }

// Avg is the sum divided by the number of ranks. Averages of integers are rounded toward zero.
func Avg() Reduction { return reduction(driver.Avg, 0) }

// PreMulSum is a sum in which each rank first multiplies its elements by its own factor. The factor
// is converted to the element type.
func PreMulSum(factor float64) Reduction { return reduction(driver.PreMulSum, factor) }

func reduction(op driver.Reduction, factor float64) Reduction {
	return Reduction(comm.NewReduction(op, factor))
}

// An Operation is one rank's part of a collective operation: see [Communicator.Group]. The
// functions below make operations. All ranks must make the same operation with the same sizes, but
// each with ranges of its own. A send needs only a matching receive on the other rank. Sizes are in
// bytes and must be multiples of the element size. In the descriptions below, n is the number of
// ranks. The sizes of dst and src must be exactly as described.
type Operation comm.Operation

// operation makes an Operation. peer is the root, or the other rank of a send or receive.
func operation(kind driver.CommOpKind, dst, src gpu.Range, t ElementType, r Reduction, peer int) Operation {
	return Operation(comm.NewOperation(kind, in(dst), in(src), t, comm.Reduction(r), peer))
}

// AllReduce reduces src of all ranks into dst of all ranks. dst and src may be the same range.
func AllReduce(dst, src gpu.Range, t ElementType, r Reduction) Operation {
	return operation(driver.AllReduce, dst, src, t, r, 0)
}

// Reduce reduces src of all ranks into dst of the root. On the root, dst and src may be the same
// range. The other ranks' dst is ignored.
func Reduce(dst, src gpu.Range, t ElementType, r Reduction, root int) Operation {
	return operation(driver.Reduce, dst, src, t, r, root)
}

// ReduceScatter reduces src of all ranks. Each rank gets its part of the result in dst. src is n
// times as large as dst. dst may be the rank's own part of src.
func ReduceScatter(dst, src gpu.Range, t ElementType, r Reduction) Operation {
	return operation(driver.ReduceScatter, dst, src, t, r, 0)
}

// AllGather concatenates src of all ranks, in rank order, into dst of all ranks. dst is n times as
// large as src. src may be the rank's own part of dst.
func AllGather(dst, src gpu.Range, t ElementType) Operation {
	return operation(driver.AllGather, dst, src, t, Reduction{}, 0)
}

// Broadcast copies src of the root to dst of all ranks. dst and src may be the same range. The
// other ranks' src is ignored.
func Broadcast(dst, src gpu.Range, t ElementType, root int) Operation {
	return operation(driver.Broadcast, dst, src, t, Reduction{}, root)
}

// AllToAll divides src and dst into n parts each. It copies part i of src on rank r to part r of
// dst on rank i. src and dst must not overlap.
func AllToAll(dst, src gpu.Range, t ElementType) Operation {
	return operation(driver.AllToAll, dst, src, t, Reduction{}, 0)
}

// Gather concatenates src of all ranks, in rank order, into dst of the root. The root's dst is n
// times as large as src. The other ranks' dst is ignored. On the root, src may be the root's own
// part of dst.
func Gather(dst, src gpu.Range, t ElementType, root int) Operation {
	return operation(driver.Gather, dst, src, t, Reduction{}, root)
}

// Scatter divides src of the root into n parts. Each rank gets its part in dst. The root's src is n
// times as large as dst. On the root, dst may be the root's own part of src. The other ranks' src
// is ignored.
func Scatter(dst, src gpu.Range, t ElementType, root int) Operation {
	return operation(driver.Scatter, dst, src, t, Reduction{}, root)
}

// Send sends src to another rank, which must receive the same size.
func Send(src gpu.Range, t ElementType, to int) Operation {
	return operation(driver.Send, gpu.Range{}, src, t, Reduction{}, to)
}

// Receive receives data from another rank into dst. The other rank must send the same size.
func Receive(dst gpu.Range, t ElementType, from int) Operation {
	return operation(driver.Recv, dst, gpu.Range{}, t, Reduction{}, from)
}

// SendReceive sends src to one rank, and receives data from one rank into dst. The parameters to
// and from are the numbers of these ranks. If to is -1, nothing is sent. If from is -1, dst is
// filled with zeros.
func SendReceive(dst, src gpu.Range, t ElementType, to, from int) Operation {
	return Operation(comm.NewSendReceive(in(dst), in(src), t, to, from))
}

// String returns the name of the operation, such as "all-reduce".
func (x Operation) String() string { return comm.Operation(x).String() }

func in(r gpu.Range) memory.Range {
	return memory.Range{Buffer: (*memory.Buffer)(r.Buffer), Offset: r.Offset, Size: r.Size}
}
