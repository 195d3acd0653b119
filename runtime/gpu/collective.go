package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
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
type Reduction struct {
	op    driver.Reduction
	scale float64
}

// The reductions. The zero value is Sum.
func Sum() Reduction  { return Reduction{op: driver.Sum} }
func Prod() Reduction { return Reduction{op: driver.Prod} }
func Min() Reduction  { return Reduction{op: driver.Min} }
func Max() Reduction  { return Reduction{op: driver.Max} }

// Avg is the sum divided by the number of ranks. For integers it is rounded toward zero.
func Avg() Reduction { return Reduction{op: driver.Avg} }

// PreMulSum is a sum in which each rank first multiplies its elements by its own factor. The factor
// is rounded to the element type.
func PreMulSum(factor float64) Reduction { return Reduction{driver.PreMulSum, factor} }

// A Collective is an operation on a [Channel]. The functions below make them. All ranks must make
// the same operation, except for the ranges. Sizes are in bytes and must be multiples of the
// element size. Below, n is the number of ranks: a range called n times as large must have exactly
// n times the size of the other.
type Collective struct {
	kind      driver.CommOpKind
	swaps     bool // a send and a receive
	typ       ElementType
	reduction Reduction
	dst, src  Range
	peer      int
	from      int // in a send and receive: the sender; peer is the receiver
}

// AllReduce reduces src of all ranks into dst of all ranks. dst and src may be the same range.
func AllReduce(dst, src Range, t ElementType, r Reduction) Collective {
	return Collective{kind: driver.AllReduce, dst: dst, src: src, typ: t, reduction: r}
}

// Reduce reduces src of all ranks into dst of the root. On the root, dst and src may be the same
// range. The other ranks' dst is ignored.
func Reduce(dst, src Range, t ElementType, r Reduction, root int) Collective {
	return Collective{kind: driver.Reduce, dst: dst, src: src, typ: t, reduction: r, peer: root}
}

// ReduceScatter reduces src of all ranks, which is n times as large as dst. Each rank gets its part
// of the result in dst. dst may be that part of src.
func ReduceScatter(dst, src Range, t ElementType, r Reduction) Collective {
	return Collective{kind: driver.ReduceScatter, dst: dst, src: src, typ: t, reduction: r}
}

// AllGather concatenates src of all ranks, in rank order, into dst of all ranks, which is n times
// as large. src may be the rank's own part of dst.
func AllGather(dst, src Range, t ElementType) Collective {
	return Collective{kind: driver.AllGather, dst: dst, src: src, typ: t}
}

// Broadcast copies src of the root to dst of all ranks. dst and src may be the same range. The
// other ranks' src is ignored.
func Broadcast(dst, src Range, t ElementType, root int) Collective {
	return Collective{kind: driver.Broadcast, dst: dst, src: src, typ: t, peer: root}
}

// AllToAll divides src and dst into n parts each. It copies part i of src to rank i, into the part
// of dst that has this rank's number. src and dst must not overlap.
func AllToAll(dst, src Range, t ElementType) Collective {
	return Collective{kind: driver.AllToAll, dst: dst, src: src, typ: t}
}

// Gather concatenates src of all ranks, in rank order, into dst of the root, which is n times as
// large. The other ranks' dst is ignored. src may be the root's own part of dst.
func Gather(dst, src Range, t ElementType, root int) Collective {
	return Collective{kind: driver.Gather, dst: dst, src: src, typ: t, peer: root}
}

// Scatter divides src of the root, which is n times as large as dst, into n parts. Each rank gets
// its part in dst. dst may be that part of src. The other ranks' src is ignored.
func Scatter(dst, src Range, t ElementType, root int) Collective {
	return Collective{kind: driver.Scatter, dst: dst, src: src, typ: t, peer: root}
}

// Send sends src to another rank, which must receive the same size.
func Send(src Range, t ElementType, to int) Collective {
	return Collective{kind: driver.Send, src: src, typ: t, peer: to}
}

// Receive receives dst from another rank, which must send the same size.
func Receive(dst Range, t ElementType, from int) Collective {
	return Collective{kind: driver.Recv, dst: dst, typ: t, peer: from}
}

// SendReceive sends src to one rank and receives dst from another. With to == -1 nothing is sent.
// With from == -1 dst is filled with zeros.
func SendReceive(dst, src Range, t ElementType, to, from int) Collective {
	return Collective{swaps: true, kind: driver.Send, dst: dst, src: src, typ: t, peer: to, from: from}
}

func (x Collective) String() string {
	if x.swaps {
		return "send and receive"
	}
	return x.kind.String()
}

// A groupOp is an operation as submitted, before the addresses of its ranges are known.
type groupOp struct {
	op       driver.CommOp
	dst, src engine.Address
	zero     uint64 // if not 0: fill so many bytes at dst with zeros, and do nothing else
}

// resolve looks up the addresses of the ranges.
func (g *groupOp) resolve() (err error) {
	if g.op.Dst, err = g.dst.Resolve(); err == nil {
		g.op.Src, err = g.src.Resolve()
	}
	return err
}

// A groupAdder collects the driver's operations of a group, each with the ranges that it uses. One
// of the two ranges may have no buffer.
type groupAdder interface {
	addGroupOp(c *Channel, g groupOp, dst, src memory.Range) error
}

// times returns the sizes of dst and src in multiples of the operation's count. 0 means that the
// range is ignored.
func (x Collective) times(rank, n int) (dst, src int) {
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

// lower checks an operation and passes the driver's operations for it to the groupAdder.
func (x Collective) lower(c *Channel, to groupAdder) error {
	if !x.swaps {
		return x.lowerOne(c, to)
	}
	for _, rank := range [...]int{x.peer, x.from} {
		if rank < -1 || rank >= c.count {
			return errs.Argument(x.String(), "rank %d of %d", rank, c.count)
		}
	}
	if x.peer >= 0 {
		if err := Send(x.src, x.typ, x.peer).lowerOne(c, to); err != nil {
			return err
		}
	}
	if x.from >= 0 {
		return Receive(x.dst, x.typ, x.from).lowerOne(c, to)
	}
	if _, err := x.dst.in().CheckRecorded(x.String(), c.dev.mem()); err != nil || x.dst.Size == 0 {
		return err
	}
	return to.addGroupOp(c, groupOp{zero: x.dst.Size}, x.dst.in(), memory.Range{})
}

func (x Collective) lowerOne(c *Channel, to groupAdder) error {
	name, size := x.String(), uint64(x.typ.Size())
	switch {
	case size == 0:
		return errs.Argument(name, "there is no type %d", int(x.typ))
	case x.peer < 0 || x.peer >= c.count:
		return errs.Argument(name, "rank %d of %d", x.peer, c.count)
	case x.kind.Reduces() && (x.typ == Int16 || x.typ == Uint16):
		return fmt.Errorf("gpu: %s: reduction of %v: %w", name, x.typ, driver.ErrUnsupported)
	}
	g := groupOp{op: driver.CommOp{Kind: x.kind, Type: x.typ, Reduction: x.reduction.op, Peer: x.peer}}
	if x.kind.Reduces() && x.reduction.op == driver.PreMulSum {
		g.op.Scale = encode(x.typ, x.reduction.scale)
	}
	dst, src := x.times(c.rank, c.count)
	d, err := x.part(c, x.dst.in(), dst)
	if err != nil {
		return err
	}
	s, err := x.part(c, x.src.in(), src)
	switch {
	case err != nil:
		return err
	case dst == 0:
		d, x.dst = s, Range{}
	case src == 0:
		x.src = Range{}
	case d != s:
		return errs.Argument(name, "a destination of %d bytes does not go with a source of %d", x.dst.Size, x.src.Size)
	}
	g.op.Count = d / size
	if c.limits != nil {
		if err := c.limits.CheckOp(c.asked, g.op); err != nil {
			return fmt.Errorf("gpu: %s: %w", name, err)
		}
	}
	return to.addGroupOp(c, g, x.dst.in(), x.src.in())
}

// part returns the size of one part of a range that has times parts.
func (x Collective) part(c *Channel, r memory.Range, times int) (uint64, error) {
	if times == 0 {
		return 0, nil
	}
	if _, err := r.CheckRecorded(x.String(), c.dev.mem()); err != nil {
		return 0, err
	}
	part, size := r.Size/uint64(times), uint64(x.typ.Size())
	if r.Size%uint64(times) != 0 || part%size != 0 {
		return 0, errs.Argument(x.String(), "%d bytes are not %d times a number of elements of %d bytes", r.Size, times, size)
	}
	return part, nil
}

// Submit submits operations as one group. The operations of a group progress together. Operations
// that depend on each other must be in one group: if two ranks send to and receive from each other,
// a separate send would wait for the other rank's receive. The group's signals are reached when all
// its operations are done.
//
// A channel issues groups in the order of their submission, also when a later group has less to
// wait for, because that order must be the same on all ranks. The channel is aborted if the context
// ends before the group is done, because what the other ranks do in the meantime is unknown.
// [ChannelOptions.Timeout] has the same effect, and so does a failed wait, because this rank then
// misses an operation of the others. An error means that nothing was submitted. If the channel has
// failed or is suspended, or the device is lost or closed, the signals fail too.
//
// If the library is too old for an operation, or has no function for it, the error is
// [driver.ErrUnsupported]. If that is found only later, the group fails alone, with the operations
// that wait for it. Ranks with the same library all find this. If only some ranks do, the others
// wait for them until a timeout.
func (c *Channel) Submit(ctx context.Context, o Order, ops ...Collective) error {
	if c.dev == nil {
		return errs.ErrZero
	}
	if ctx == nil {
		return errs.Argument("collective", "no context")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s := c.q.get(work.Collect)
	for i := range ops {
		if err := ops[i].lower(c, s); err != nil {
			s.drop()
			if len(ops) > 1 {
				err = fmt.Errorf("operation %d: %w", i, err)
			}
			return err
		}
	}
	if len(s.group) == 0 {
		s.drop()
		return c.dev.queues[0].Barrier(o)
	}
	if ctx.Done() != nil {
		s.ctx = ctx
	}
	return c.q.submit(s, o)
}

// addGroupOp adds an operation to a submission, and keeps references to the buffers that it uses.
func (s *record) addGroupOp(c *Channel, g groupOp, dst, src memory.Range) error {
	for i, r := range [...]memory.Range{dst, src} {
		if r.Buffer == nil {
			continue
		}
		check := r.Check
		if i == 0 {
			check = r.CheckTo
		}
		at, err := check(g.op.Kind.String(), c.dev.mem())
		if err != nil {
			return err
		}
		if c.failed() == nil { // else the submission fails, whatever the state of its buffers
			if err := r.Buffer.Hold(); err != nil {
				return fmt.Errorf("gpu: %v: %w", g.op.Kind, err)
			}
			s.keep(r.Buffer)
		}
		if i == 0 {
			g.dst = at
		} else {
			g.src = at
		}
	}
	s.group = append(s.group, g)
	return nil
}

// collectAction gives a group of collectives to the library.
type collectAction struct{ engine.SimpleAction }

func (collectAction) HoldsUp(*engine.Submission, *engine.Timeline) bool { return true }

func (collectAction) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	return recordOf(s).collect(tl)
}

func (collectAction) Issued(s *engine.Submission, tl *engine.Timeline, _ bool) bool {
	recordOf(s).recording.Issued(tl.At(s.Seq))
	return false
}

// collect makes the native calls of a group.
func (s *record) collect(tl *engine.Timeline) (started bool, err error) {
	c := (*Channel)(tl.Lane.(*channelLane))
	c.ops = c.ops[:0]
	recorded := s.recording.Recording() != nil
	if recorded {
		if c.recorded, err = s.recording.TakeGroup(c.recorded[:0]); err != nil {
			return false, err
		}
		for _, x := range c.recorded {
			s.group = append(s.group, groupOp{op: x.Op, zero: x.Zero})
		}
	}
	for i := range s.group {
		g := &s.group[i]
		if !recorded {
			if err := g.resolve(); err != nil {
				return started, err
			}
		}
		if g.zero == 0 {
			c.ops = append(c.ops, g.op)
			continue
		}
		if err := tl.Device.Native.Fill(tl.Stream, g.op.Dst, 0, 1, g.zero); err != nil {
			return started, err
		}
		started = true
	}
	if len(c.ops) == 0 {
		return started, nil
	}
	err = c.comms.Collect(tl.Stream, c.comm, c.ops)
	c.returned()
	switch {
	case errors.Is(err, driver.ErrUnsupported):
		return started, refusal{err}
	case err != nil: // the stream may have got a part of it
		return true, c.setFailure(channelAborting, err)
	}
	return true, nil
}

// groupName returns the name of a group's first operation.
func (s *record) groupName() string {
	if s.recording.Recording() != nil {
		if op, ok := s.recording.FirstCollective(); ok {
			return op.Kind.String()
		}
	}
	for _, g := range s.group {
		return g.op.Kind.String()
	}
	return ""
}

// encode returns a number as an element of a type.
func encode(t ElementType, v float64) (b [8]byte) {
	put := func(bits uint64) {
		for i := range t.Size() {
			b[i] = byte(bits >> (8 * i))
		}
	}
	switch t {
	case Int8, Int16, Int32, Int64:
		put(uint64(int64(v)))
	case Uint8, Uint16, Uint32, Uint64:
		put(uint64(v))
	case Float64:
		put(math.Float64bits(v))
	case Float32:
		put(uint64(math.Float32bits(float32(v))))
	case Float16:
		put(smallFloat(v, 5, 10, true))
	case BFloat16:
		put(smallFloat(v, 8, 7, true))
	case Float8E5M2:
		put(smallFloat(v, 5, 2, true))
	case Float8E4M3:
		put(smallFloat(v, 4, 3, false))
	}
	return b
}

// smallFloat returns the bits of the nearest float with the given numbers of exponent and fraction
// bits. Ties go to even. Without infinities, too large numbers become the largest number, and NaN
// has all bits but the sign set.
func smallFloat(v float64, exponent, fraction int, infinities bool) uint64 {
	bias := 1<<(exponent-1) - 1
	sign := uint64(0)
	if math.Signbit(v) {
		sign, v = 1<<(exponent+fraction), -v
	}
	nan := uint64(1)<<(exponent+fraction) - 1
	infinity := (uint64(1)<<exponent - 1) << fraction
	largest := infinity - 1
	if !infinities {
		largest = nan - 1
	}
	over := infinity
	if !infinities {
		over = largest
	}
	switch {
	case math.IsNaN(v):
		return sign | nan
	case math.IsInf(v, 0):
		return sign | over
	case v == 0:
		return sign
	}
	_, e := math.Frexp(v) // v = m × 2^e with m in [½, 1)
	e = max(e-1, 1-bias)  // v's exponent; for subnormal numbers the smallest one
	steps := uint64(math.RoundToEven(math.Ldexp(v, fraction-e)))
	// The implicit leading bit carries into the exponent, and so may rounding.
	if bits := steps + uint64(e+bias-1)<<fraction; bits <= largest {
		return sign | bits
	}
	return sign | over
}
