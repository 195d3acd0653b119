package gpu

import (
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
)

// An ElementType is the type of the elements that collective operations move and reduce.
type ElementType = driver.ElementType

// The element types. 16-bit integers can be moved but not reduced.
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

// A Reduction says how the elements of all ranks are combined into one.
type Reduction comm.Reduction

// The reductions. The zero value is Sum.
func Sum() Reduction  { return reduction(driver.Sum, 0) }
func Prod() Reduction { return reduction(driver.Prod, 0) }
func Min() Reduction  { return reduction(driver.Min, 0) }
func Max() Reduction  { return reduction(driver.Max, 0) }

// Avg is the sum divided by the number of ranks. For integers it is rounded toward zero.
func Avg() Reduction { return reduction(driver.Avg, 0) }

// PreMulSum is a sum in which each rank first multiplies its elements by its own factor. The factor
// is rounded to the element type.
func PreMulSum(factor float64) Reduction { return reduction(driver.PreMulSum, factor) }

func reduction(op driver.Reduction, factor float64) Reduction {
	return Reduction(comm.NewReduction(op, factor))
}

// A Collective is an operation on a [Channel]. The functions below make them. All ranks must make
// the same operation, except for the ranges. Sizes are in bytes and must be multiples of the
// element size. Below, n is the number of ranks: a range called n times as large must have exactly
// n times the size of the other.
type Collective comm.Collective

// collective makes an operation.
func collective(kind driver.CommOpKind, dst, src Range, t ElementType, r Reduction, peer int) Collective {
	return Collective(comm.NewCollective(kind, dst.in(), src.in(), t, comm.Reduction(r), peer))
}

// AllReduce reduces src of all ranks into dst of all ranks. dst and src may be the same range.
func AllReduce(dst, src Range, t ElementType, r Reduction) Collective {
	return collective(driver.AllReduce, dst, src, t, r, 0)
}

// Reduce reduces src of all ranks into dst of the root. On the root, dst and src may be the same
// range. The other ranks' dst is ignored.
func Reduce(dst, src Range, t ElementType, r Reduction, root int) Collective {
	return collective(driver.Reduce, dst, src, t, r, root)
}

// ReduceScatter reduces src of all ranks, which is n times as large as dst. Each rank gets its part
// of the result in dst. dst may be that part of src.
func ReduceScatter(dst, src Range, t ElementType, r Reduction) Collective {
	return collective(driver.ReduceScatter, dst, src, t, r, 0)
}

// AllGather concatenates src of all ranks, in rank order, into dst of all ranks, which is n times
// as large. src may be the rank's own part of dst.
func AllGather(dst, src Range, t ElementType) Collective {
	return collective(driver.AllGather, dst, src, t, Reduction{}, 0)
}

// Broadcast copies src of the root to dst of all ranks. dst and src may be the same range. The
// other ranks' src is ignored.
func Broadcast(dst, src Range, t ElementType, root int) Collective {
	return collective(driver.Broadcast, dst, src, t, Reduction{}, root)
}

// AllToAll divides src and dst into n parts each. It copies part i of src to rank i, into the part
// of dst that has this rank's number. src and dst must not overlap.
func AllToAll(dst, src Range, t ElementType) Collective {
	return collective(driver.AllToAll, dst, src, t, Reduction{}, 0)
}

// Gather concatenates src of all ranks, in rank order, into dst of the root, which is n times as
// large. The other ranks' dst is ignored. src may be the root's own part of dst.
func Gather(dst, src Range, t ElementType, root int) Collective {
	return collective(driver.Gather, dst, src, t, Reduction{}, root)
}

// Scatter divides src of the root, which is n times as large as dst, into n parts. Each rank gets
// its part in dst. dst may be that part of src. The other ranks' src is ignored.
func Scatter(dst, src Range, t ElementType, root int) Collective {
	return collective(driver.Scatter, dst, src, t, Reduction{}, root)
}

// Send sends src to another rank, which must receive the same size.
func Send(src Range, t ElementType, to int) Collective {
	return collective(driver.Send, Range{}, src, t, Reduction{}, to)
}

// Receive receives dst from another rank, which must send the same size.
func Receive(dst Range, t ElementType, from int) Collective {
	return collective(driver.Recv, dst, Range{}, t, Reduction{}, from)
}

// SendReceive sends src to one rank and receives dst from another. With to == -1 nothing is sent.
// With from == -1 dst is filled with zeros.
func SendReceive(dst, src Range, t ElementType, to, from int) Collective {
	return Collective(comm.NewSendReceive(dst.in(), src.in(), t, to, from))
}

func (x Collective) String() string { return comm.Collective(x).String() }
