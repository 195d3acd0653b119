package comm

import (
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// A Reduction says how the elements of all ranks are combined into one. The zero value is the sum.
type Reduction struct {
	op    driver.Reduction
	scale float64
}

// NewReduction makes a reduction. factor is used by driver.PreMulSum alone.
func NewReduction(op driver.Reduction, factor float64) Reduction { return Reduction{op, factor} }

// An Operation is an operation on a communicator, on ranges of buffers. Sizes are in bytes.
type Operation struct {
	kind      driver.CommOpKind
	swaps     bool // a send and a receive
	typ       driver.ElementType
	reduction Reduction
	dst, src  memory.Range
	peer      int
	from      int // in a send and receive: the sender; peer is the receiver
}

// NewOperation makes an operation. peer is the root, or the other rank of a send or a receive.
// Operations that have no peer, no reduction or no dst or src get zero values for them.
func NewOperation(kind driver.CommOpKind, dst, src memory.Range, t driver.ElementType, r Reduction, peer int) Operation {
	return Operation{kind: kind, dst: dst, src: src, typ: t, reduction: r, peer: peer}
}

// NewSendReceive makes an operation that sends src to one rank and receives dst from another. With
// to == -1 nothing is sent. With from == -1 dst is filled with zeros.
func NewSendReceive(dst, src memory.Range, t driver.ElementType, to, from int) Operation {
	return Operation{swaps: true, kind: driver.Send, dst: dst, src: src, typ: t, peer: to, from: from}
}

func (x Operation) String() string {
	if x.swaps {
		return "send and receive"
	}
	return x.kind.String()
}

// Pack returns the ranges of an operation, and its other fields as two words. Unpack makes the
// operation again from these four results. So a gpu.Op has room for a few operations.
func (x Operation) Pack() (dst, src memory.Range, a, b uint64) {
	a = uint64(x.kind) | uint64(x.reduction.op)<<8 | uint64(uint8(limit(int(x.typ), math.MinInt8, math.MaxInt8)))<<16 |
		uint64(uint32(limit(x.peer, math.MinInt32, math.MaxInt32)))<<32
	if x.swaps {
		return x.dst, x.src, a | isSwap, uint64(x.from)
	}
	return x.dst, x.src, a, math.Float64bits(x.reduction.scale)
}

// isSwap is the bit that marks a send and receive, in the first word that Pack returns.
const isSwap = 1 << 31

// limit returns the number within limits that is nearest to n. Numbers outside the limits are not
// valid ranks or types.
func limit(n, least, most int) int { return max(least, min(n, most)) }

// Unpack makes an operation from the results of Pack.
func Unpack(dst, src memory.Range, a, b uint64) Operation {
	x := Operation{dst: dst, src: src, kind: driver.CommOpKind(a & 0xff), typ: driver.ElementType(int8(a >> 16)),
		reduction: Reduction{op: driver.Reduction(a >> 8 & 0xff)}, peer: int(int32(a >> 32))}
	if a&isSwap != 0 {
		x.swaps, x.from = true, int(b)
	} else {
		x.reduction.scale = math.Float64frombits(b)
	}
	return x
}

// An Op is one step of an operation: a call of the library, or a fill with zeros.
type Op struct {
	driver.CommOp        // Dst and Src are set when the group is issued
	Zero          uint64 // if not 0: the step fills this many bytes at Dst with zeros
}

// A RangeOp is an Op with the ranges that it uses. A range that is not used may have no buffer.
type RangeOp struct {
	Op
	To, From memory.Range
}

// times returns the sizes of dst and src in multiples of the operation's count. 0 means that the
// range is ignored.
func (x Operation) times(rank, n int) (dst, src int) {
	root := 0
	if rank == x.peer {
		root = 1
	}
	switch x.kind {
	case driver.AllGather:
		return n, 1
	case driver.ReduceScatter:
		return 1, n
	case driver.AllToAll:
		return n, n
	case driver.Broadcast:
		return 1, root
	case driver.Reduce:
		return root, 1
	case driver.Gather:
		return root * n, 1
	case driver.Scatter:
		return 1, root * n
	case driver.Send:
		return 0, 1
	case driver.Recv:
		return 1, 0
	}
	return 1, 1
}

// Lower checks an operation, and appends its steps, at most two.
func (x Operation) Lower(c *Communicator, ops []RangeOp) ([]RangeOp, error) {
	if !x.swaps {
		return x.lowerOne(c, ops)
	}
	for _, rank := range [...]int{x.peer, x.from} {
		if rank < -1 || rank >= c.opt.Count {
			return nil, errs.Argument(x.String(), "rank %d of %d", rank, c.opt.Count)
		}
	}
	if x.peer >= 0 {
		var err error
		send := Operation{kind: driver.Send, src: x.src, typ: x.typ, peer: x.peer}
		if ops, err = send.lowerOne(c, ops); err != nil {
			return nil, err
		}
	}
	if x.from >= 0 {
		receive := Operation{kind: driver.Recv, dst: x.dst, typ: x.typ, peer: x.from}
		return receive.lowerOne(c, ops)
	}
	if _, err := x.dst.CheckRecorded(x.String(), c.dev.Memory); err != nil {
		return nil, err
	}
	if x.dst.Size == 0 {
		return ops, nil
	}
	return append(ops, RangeOp{Op: Op{Zero: x.dst.Size}, To: x.dst}), nil
}

// lowerOne is like Lower, for an operation that is not a send and receive.
func (x Operation) lowerOne(c *Communicator, ops []RangeOp) ([]RangeOp, error) {
	name, size := x.String(), uint64(x.typ.Size())
	switch {
	case size == 0:
		return nil, errs.Argument(name, "there is no type %d", int(x.typ))
	case x.peer < 0 || x.peer >= c.opt.Count:
		return nil, errs.Argument(name, "rank %d of %d", x.peer, c.opt.Count)
	case x.kind.Reduces() && (x.typ == driver.Int16 || x.typ == driver.Uint16):
		return nil, fmt.Errorf("gpu: %s: reduction of %v: %w", name, x.typ, driver.ErrUnsupported)
	}
	op := driver.CommOp{Kind: x.kind, Type: x.typ, Reduction: x.reduction.op, Peer: x.peer}
	if x.kind.Reduces() && x.reduction.op == driver.PreMulSum {
		op.Scale = encode(x.typ, x.reduction.scale)
	}
	dst, src := x.times(c.opt.Rank, c.opt.Count)
	d, err := x.part(c, x.dst, dst)
	if err != nil {
		return nil, err
	}
	s, err := x.part(c, x.src, src)
	switch {
	case err != nil:
		return nil, err
	case dst == 0:
		d, x.dst = s, memory.Range{}
	case src == 0:
		x.src = memory.Range{}
	case d != s:
		return nil, errs.Argument(name, "a destination of %d bytes does not go with a source of %d", x.dst.Size, x.src.Size)
	}
	op.Count = d / size
	if err := c.limits.checkOp(op); err != nil {
		return nil, fmt.Errorf("gpu: %s: %w", name, err)
	}
	return append(ops, RangeOp{Op{CommOp: op}, x.dst, x.src}), nil
}

// part returns the size in bytes of each of the n equal parts of r.
func (x Operation) part(c *Communicator, r memory.Range, n int) (uint64, error) {
	if n == 0 {
		return 0, nil
	}
	if _, err := r.CheckRecorded(x.String(), c.dev.Memory); err != nil {
		return 0, err
	}
	part, size := r.Size/uint64(n), uint64(x.typ.Size())
	if r.Size%uint64(n) != 0 || part%size != 0 {
		return 0, errs.Argument(x.String(), "%d bytes are not %d times a number of elements of %d bytes", r.Size, n, size)
	}
	return part, nil
}
