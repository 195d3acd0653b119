package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// An ElementType is the type of what collective operations move and reduce.
type ElementType = driver.ElementType

// The types. 16-bit integers can be moved and not reduced.
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

// A Reduction says how the elements of all ranks become one.
type Reduction struct {
	op    driver.Reduction
	scale float64
}

// The reductions. The zero value is Sum.
func Sum() Reduction  { return Reduction{op: driver.Sum} }
func Prod() Reduction { return Reduction{op: driver.Prod} }
func Min() Reduction  { return Reduction{op: driver.Min} }
func Max() Reduction  { return Reduction{op: driver.Max} }

// Avg is the sum divided by the number of ranks; of integers, rounded toward zero.
func Avg() Reduction { return Reduction{op: driver.Avg} }

// PreMulSum is the sum of elements that each rank multiplies by a factor of its own, rounded to the elements' type, first.
func PreMulSum(factor float64) Reduction { return Reduction{driver.PreMulSum, factor} }

// A Collective is an operation on a [Channel], made by one of the functions below. All ranks make the same one, but for the
// ranges. Sizes are in bytes and multiples of the element's; with n ranks one range has n times the size of another where it
// says so.
type Collective struct {
	kind      driver.CommOpKind
	swaps     bool // a send and a receive
	typ       ElementType
	reduction Reduction
	dst, src  Range
	peer      int
	from      int // of a send and receive, where peer is to
}

// AllReduce reduces src of all ranks into dst of all, which may be the same.
func AllReduce(dst, src Range, t ElementType, r Reduction) Collective {
	return Collective{kind: driver.AllReduce, dst: dst, src: src, typ: t, reduction: r}
}

// Reduce reduces src of all ranks into dst of the root, which may be the same; dst of others is not looked at.
func Reduce(dst, src Range, t ElementType, r Reduction, root int) Collective {
	return Collective{kind: driver.Reduce, dst: dst, src: src, typ: t, reduction: r, peer: root}
}

// ReduceScatter reduces src of all ranks, n times as large as dst, and gives each rank its part of the result in dst, which
// may be that part of src.
func ReduceScatter(dst, src Range, t ElementType, r Reduction) Collective {
	return Collective{kind: driver.ReduceScatter, dst: dst, src: src, typ: t, reduction: r}
}

// AllGather puts src of all ranks one after the other into dst of all, n times as large. src may be its own part of dst.
func AllGather(dst, src Range, t ElementType) Collective {
	return Collective{kind: driver.AllGather, dst: dst, src: src, typ: t}
}

// Broadcast copies src of the root to dst of all, which may be the same; src of others is not looked at.
func Broadcast(dst, src Range, t ElementType, root int) Collective {
	return Collective{kind: driver.Broadcast, dst: dst, src: src, typ: t, peer: root}
}

// AllToAll cuts src and dst in n parts each: part i of src goes to rank i, whose dst has it as the part of this rank. The two
// must not overlap.
func AllToAll(dst, src Range, t ElementType) Collective {
	return Collective{kind: driver.AllToAll, dst: dst, src: src, typ: t}
}

// Gather puts src of all ranks one after the other into dst of the root, n times as large; dst of others is not looked at. src may
// be its own part of dst.
func Gather(dst, src Range, t ElementType, root int) Collective {
	return Collective{kind: driver.Gather, dst: dst, src: src, typ: t, peer: root}
}

// Scatter cuts src of the root, n times as large, in parts, of which each rank gets its own in dst, which may be that part of
// src; src of others is not looked at.
func Scatter(dst, src Range, t ElementType, root int) Collective {
	return Collective{kind: driver.Scatter, dst: dst, src: src, typ: t, peer: root}
}

// Send sends src to another rank, which must receive as much.
func Send(src Range, t ElementType, to int) Collective {
	return Collective{kind: driver.Send, src: src, typ: t, peer: to}
}

// Receive receives dst from another rank, which must send as much.
func Receive(dst Range, t ElementType, from int) Collective {
	return Collective{kind: driver.Recv, dst: dst, typ: t, peer: from}
}

// SendReceive sends src to one rank and receives dst from another. A rank of -1 is none: then nothing is sent, or dst becomes
// zero.
func SendReceive(dst, src Range, t ElementType, to, from int) Collective {
	return Collective{swaps: true, kind: driver.Send, dst: dst, src: src, typ: t, peer: to, from: from}
}

func (x Collective) String() string {
	if x.swaps {
		return "send and receive"
	}
	return x.kind.String()
}

// A groupOp is an operation as it is submitted, before it is known where its ranges are.
type groupOp struct {
	op       driver.CommOp
	dst, src engine.Address
	zero     uint64 // bytes to be made zero at dst, instead of everything else
}

// resolve says where the ranges are.
func (g *groupOp) resolve() (err error) {
	if g.op.Dst, err = g.dst.Resolve(); err == nil {
		g.op.Src, err = g.src.Resolve()
	}
	return err
}

// A groupAdder takes what an operation is for the driver, with the ranges that it uses, of which one may have no buffer.
type groupAdder interface {
	addGroupOp(c *Channel, g groupOp, dst, src Range) error
}

// times returns how many times as large as what the operation counts its ranges are, 0 for one that is not looked at.
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

// lower checks an operation and adds what the driver is to do.
func (x Collective) lower(c *Channel, to groupAdder) error {
	if !x.swaps {
		return x.lowerOne(c, to)
	}
	for _, rank := range [...]int{x.peer, x.from} {
		if rank < -1 || rank >= c.count {
			return argument(x.String(), "rank %d of %d", rank, c.count)
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
	if _, err := x.dst.checkOn(x.String(), c.dev); err != nil || x.dst.Size == 0 {
		return err
	}
	return to.addGroupOp(c, groupOp{zero: x.dst.Size}, x.dst, Range{})
}

func (x Collective) lowerOne(c *Channel, to groupAdder) error {
	name, size := x.String(), uint64(x.typ.Size())
	switch {
	case size == 0:
		return argument(name, "there is no type %d", int(x.typ))
	case x.peer < 0 || x.peer >= c.count:
		return argument(name, "rank %d of %d", x.peer, c.count)
	case x.kind.Reduces() && (x.typ == Int16 || x.typ == Uint16):
		return fmt.Errorf("gpu: %s: reduction of %v: %w", name, x.typ, driver.ErrUnsupported)
	}
	g := groupOp{op: driver.CommOp{Kind: x.kind, Type: x.typ, Reduction: x.reduction.op, Peer: x.peer}}
	if x.kind.Reduces() && x.reduction.op == driver.PreMulSum {
		g.op.Scale = encode(x.typ, x.reduction.scale)
	}
	dst, src := x.times(c.rank, c.count)
	d, err := x.part(c, x.dst, dst)
	if err != nil {
		return err
	}
	s, err := x.part(c, x.src, src)
	switch {
	case err != nil:
		return err
	case dst == 0:
		d, x.dst = s, Range{}
	case src == 0:
		x.src = Range{}
	case d != s:
		return argument(name, "a destination of %d bytes does not go with a source of %d", x.dst.Size, x.src.Size)
	}
	g.op.Count = d / size
	if c.limits != nil {
		if err := c.limits.CheckOp(c.asked, g.op); err != nil {
			return fmt.Errorf("gpu: %s: %w", name, err)
		}
	}
	return to.addGroupOp(c, g, x.dst, x.src)
}

// part returns the size of one of a range's parts.
func (x Collective) part(c *Channel, r Range, times int) (uint64, error) {
	if times == 0 {
		return 0, nil
	}
	if _, err := r.checkOn(x.String(), c.dev); err != nil {
		return 0, err
	}
	part, size := r.Size/uint64(times), uint64(x.typ.Size())
	if r.Size%uint64(times) != 0 || part%size != 0 {
		return 0, argument(x.String(), "%d bytes are not %d times a number of elements of %d bytes", r.Size, times, size)
	}
	return part, nil
}

// Submit submits operations as one group, in which each may go on only together with its counterparts on other ranks: a send and a
// receive of the same two ranks, say, must be in one group, else each waits for the other's end. It signals when all are done.
//
// The groups of a channel go to the device in the order in which they were submitted, also when a later one has less to wait
// for, because that order must be the same on all ranks. If the context ends before the group is done the channel is aborted,
// as it is after [ChannelOptions.Timeout], for what other ranks do in the meantime nobody knows; and also if a wait fails, for
// then this rank misses what the others do. An error says that nothing was submitted; of a channel that has failed or is suspended, or
// a device that is lost or closed, the signals fail too.
//
// What the library is too old for, or has no function for, is refused with [driver.ErrUnsupported]; if that is found out later it
// fails alone, and what waits for it. Ranks with the same library all find that. Where only some do the others wait for them, until
// a timeout.
func (c *Channel) Submit(ctx context.Context, o Order, ops ...Collective) error {
	if c.dev == nil {
		return errZero
	}
	if ctx == nil {
		return argument("collective", "no context")
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

// addGroupOp adds an operation to a submission, which holds what it uses.
func (s *record) addGroupOp(c *Channel, g groupOp, dst, src Range) error {
	for i, r := range [...]Range{dst, src} {
		if r.Buffer == nil {
			continue
		}
		check := r.check
		if i == 0 {
			check = r.checkTo
		}
		at, err := check(g.op.Kind.String(), c.q)
		if err != nil {
			return err
		}
		if c.failed() == nil { // else the submission fails, whatever has become of its buffers
			if err := r.Buffer.hold(); err != nil {
				return fmt.Errorf("gpu: %v: %w", g.op.Kind, err)
			}
			s.binds = append(s.binds, r)
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

// A recordedOp is an operation of a command buffer.
type recordedOp struct {
	groupOp
	dstRef, srcRef int32 // in refers, or -1
}

func (r *recordedOp) rebase(by int32) {
	if r.dstRef >= 0 {
		r.dstRef += by
	}
	if r.srcRef >= 0 {
		r.srcRef += by
	}
}

// A groupRecorder adds operations to a command.
type groupRecorder struct {
	c   *CommandBuffer
	ops []recordedOp
}

func (g *groupRecorder) addGroupOp(_ *Channel, op groupOp, dst, src Range) (err error) {
	r := recordedOp{op, -1, -1}
	align := uint64(max(op.op.Type.Size(), 1))
	if dst.Buffer != nil {
		if r.dstRef, err = g.c.referTo(work.Collect, dst, align); err != nil {
			return err
		}
	}
	if src.Buffer != nil {
		if r.srcRef, err = g.c.refer(work.Collect, src, align); err != nil {
			return err
		}
	}
	g.ops = append(g.ops, r)
	return nil
}

// takeGroup takes a part's operations into a submission, with the places where its ranges are in this execution.
func (c *CommandBuffer) takeGroup(s *record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.find(s.block(), s.binds); err != nil {
		return err
	}
	p := &c.parts[s.part]
	for i := p.from; i < p.to; i++ {
		for _, r := range c.cmds.at(i).rare.group {
			if r.dstRef >= 0 {
				r.op.Dst = c.present[r.dstRef]
			}
			if r.srcRef >= 0 {
				r.op.Src = c.present[r.srcRef]
			}
			s.group = append(s.group, r.groupOp)
		}
	}
	return nil
}

// collectAction gives a group of collectives to the library.
type collectAction struct{ engine.SimpleAction }

func (collectAction) HoldsUp(*engine.Submission, *engine.Timeline) bool { return true }

func (collectAction) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	return recordOf(s).collect(tl)
}

func (collectAction) Issued(s *engine.Submission, tl *engine.Timeline, _ bool) bool {
	if r := recordOf(s); r.run != nil {
		r.leaveBlock(tl.At(s.Seq))
	}
	if x := spanOf(s); x != nil {
		x.rec.Collective = s.Seq
	}
	return false
}

// collect makes the native calls of a group.
func (s *record) collect(tl *engine.Timeline) (started bool, err error) {
	c := (*Channel)(tl.Lane.(*channelLane))
	c.ops = c.ops[:0]
	if s.recording != nil {
		if err := s.recording.takeGroup(s); err != nil {
			return false, err
		}
	}
	for i := range s.group {
		g := &s.group[i]
		if s.recording == nil {
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
	case err != nil: // which leaves nobody knows what in the stream
		return true, c.setFailure(channelAborting, err)
	}
	return true, nil
}

// groupName says what a group of collectives is.
func (s *record) groupName() string {
	if s.recording != nil {
		for _, g := range s.recording.cmds.at(s.recording.parts[s.part].from).rare.group {
			return g.op.Kind.String()
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

// smallFloat returns the bits of the nearest float with so many bits of exponent and of fraction, ties to even. Without
// infinities, what is too large becomes the largest number, and all bits but the sign are NaN.
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
	e = max(e-1, 1-bias)  // of the last place but fraction, which in numbers too small for their own is that of the smallest
	steps := uint64(math.RoundToEven(math.Ldexp(v, fraction-e)))
	if bits := steps + uint64(e+bias-1)<<fraction; bits <= largest { // a leading one carries into the exponent, and so does rounding
		return sign | bits
	}
	return sign | over
}
