package simdriver_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// sum returns an AllReduce that sums one int32.
func sum(m driver.Mem) driver.CommOp {
	return driver.CommOp{Kind: driver.AllReduce, Type: driver.Int32, Reduction: driver.Sum, Src: m.Ptr, Dst: m.Ptr, Count: 1}
}

// times returns the sizes of Src and Dst of an operation on a rank, in multiples of its Count.
func times(k driver.CommOpKind, root bool, n int) (src, dst int) {
	at := map[bool]int{root: 1}[true]
	switch k {
	case driver.AllGather:
		return 1, n
	case driver.ReduceScatter:
		return n, 1
	case driver.Broadcast:
		return at, 1
	case driver.Reduce:
		return 1, at
	case driver.AllToAll:
		return n, n
	case driver.Gather:
		return 1, at * n
	case driver.Scatter:
		return at * n, 1
	}
	return 1, 1
}

// A number is an element: an integer, or a float.
type number struct {
	i *big.Int
	f float64
}

func isFloat(t driver.ElementType) bool { return t >= driver.Float16 }

// element reads the element at an index.
func element(t driver.ElementType, b []byte, i int) number {
	n := t.Size()
	var w [8]byte
	copy(w[:], b[i*n:(i+1)*n])
	u := binary.LittleEndian.Uint64(w[:])
	switch t {
	case driver.Float64:
		return number{f: math.Float64frombits(u)}
	case driver.Float32:
		return number{f: float64(math.Float32frombits(uint32(u)))}
	case driver.Int8, driver.Int16, driver.Int32, driver.Int64:
		shift := 64 - 8*n
		return number{i: big.NewInt(int64(u) << shift >> shift)}
	case driver.Float16:
		return number{f: float64(smallfloat.Float16(u).Float32())}
	case driver.BFloat16:
		return number{f: float64(smallfloat.BFloat16(u).Float32())}
	case driver.Float8E4M3:
		return number{f: float64(smallfloat.Float8E4M3(u).Float32())}
	case driver.Float8E5M2:
		return number{f: float64(smallfloat.Float8E5M2(u).Float32())}
	}
	return number{i: new(big.Int).SetUint64(u)}
}

// put returns an element's bytes.
func put(t driver.ElementType, x number) []byte {
	var u uint64
	switch t {
	case driver.Float64:
		u = math.Float64bits(x.f)
	case driver.Float32:
		u = uint64(math.Float32bits(float32(x.f)))
	case driver.Float16:
		u = uint64(smallfloat.FromFloat64[smallfloat.Float16](x.f))
	case driver.BFloat16:
		u = uint64(smallfloat.FromFloat64[smallfloat.BFloat16](x.f))
	case driver.Float8E4M3:
		u = uint64(smallfloat.FromFloat64[smallfloat.Float8E4M3](x.f))
	case driver.Float8E5M2:
		u = uint64(smallfloat.FromFloat64[smallfloat.Float8E5M2](x.f))
	default:
		all := new(big.Int).Lsh(big.NewInt(1), 64)
		u = new(big.Int).Mod(x.i, all).Uint64()
	}
	return binary.LittleEndian.AppendUint64(nil, u)[:t.Size()]
}

// reduced returns the reduction of elements. scales are the ranks' factors for PreMulSum.
func reduced(t driver.ElementType, r driver.Reduction, xs, scales []number) []byte {
	if isFloat(t) {
		var y float64
		for i, x := range xs {
			switch {
			case r == driver.PreMulSum:
				y += float64(x.f * scales[i].f) // the conversion prevents a fused multiply-add on arm64
			case i == 0:
				y = x.f
			case r == driver.Prod:
				y *= x.f
			case r == driver.Min:
				y = min(y, x.f)
			case r == driver.Max:
				y = max(y, x.f)
			default:
				y += x.f
			}
		}
		if r == driver.Avg {
			y /= float64(len(xs))
		}
		return put(t, number{f: y})
	}
	y := new(big.Int)
	for i, x := range xs {
		switch {
		case r == driver.PreMulSum:
			y.Add(y, new(big.Int).Mul(x.i, scales[i].i))
		case i == 0:
			y.Set(x.i)
		case r == driver.Prod:
			y.Mul(y, x.i)
		case r == driver.Min && x.i.Cmp(y) < 0, r == driver.Max && x.i.Cmp(y) > 0:
			y.Set(x.i)
		case r == driver.Sum, r == driver.Avg:
			y.Add(y, x.i)
		}
	}
	b := put(t, number{i: y})
	if r == driver.Avg {
		y = element(t, b, 0).i // the sum wraps to the type before the division
		b = put(t, number{i: y.Quo(y, big.NewInt(int64(len(xs))))})
	}
	return b
}

// expect returns the expected Dst of each rank, given all ranks' Src.
func expect(op driver.CommOp, srcs [][]byte, scales []number) [][]byte {
	n, count, size := len(srcs), int(op.Count), op.Type.Size()
	part := func(b []byte, i int) []byte { return b[i*count*size : (i+1)*count*size] }
	reduce := func(from int) (out []byte) {
		for i := range count {
			var xs []number
			for _, s := range srcs {
				xs = append(xs, element(op.Type, s, from+i))
			}
			out = append(out, reduced(op.Type, op.Reduction, xs, scales)...)
		}
		return out
	}
	dsts := make([][]byte, n)
	for r := range dsts {
		switch op.Kind {
		case driver.AllReduce:
			dsts[r] = reduce(0)
		case driver.ReduceScatter:
			dsts[r] = reduce(r * count)
		case driver.Reduce:
			if r == op.Peer {
				dsts[r] = reduce(0)
			}
		case driver.Broadcast:
			dsts[r] = srcs[op.Peer]
		case driver.Scatter:
			dsts[r] = part(srcs[op.Peer], r)
		case driver.AllGather, driver.Gather:
			for _, s := range srcs {
				if op.Kind == driver.AllGather || r == op.Peer {
					dsts[r] = append(dsts[r], s...)
				}
			}
		case driver.AllToAll:
			for _, s := range srcs {
				dsts[r] = append(dsts[r], part(s, r)...)
			}
		}
	}
	return dsts
}

// A trial is one operation on all ranks, with its expected results.
type trial struct {
	ops  []driver.CommOp // the operation of each rank
	dsts [][]byte        // memory of each rank's result
	want [][]byte
}

// An arena holds one allocation per rank. arena.take returns the next part of a rank's allocation.
type arena struct {
	ms   []driver.Mem
	used []uint64
}

func (a *arena) take(rank, n int) (driver.Ptr, []byte) {
	at := a.used[rank]
	a.used[rank] += uint64(n+15) / 16 * 16
	return a.ms[rank].Ptr + driver.Ptr(at), host[byte](a.ms[rank])[at : at+uint64(n) : at+uint64(n)]
}

// try prepares a trial with random elements.
func try(r *rand.Rand, a *arena, op driver.CommOp, inPlace bool) *trial {
	n, bytes := len(a.ms), int(op.Count)*op.Type.Size()
	x := &trial{}
	var srcs [][]byte
	var scales []number
	for i := range n {
		op := op
		ns, nd := times(op.Kind, i == op.Peer, n)
		var src, dst []byte
		switch {
		case !inPlace || ns == 0 || nd == 0:
			op.Src, src = a.take(i, ns*bytes)
			op.Dst, dst = a.take(i, nd*bytes)
		case ns > nd:
			op.Src, src = a.take(i, ns*bytes)
			op.Dst, dst = op.Src+driver.Ptr(i*bytes), src[i*bytes:(i+1)*bytes]
		case ns < nd:
			op.Dst, dst = a.take(i, nd*bytes)
			op.Src, src = op.Dst+driver.Ptr(i*bytes), dst[i*bytes:(i+1)*bytes]
		default:
			op.Src, src = a.take(i, ns*bytes)
			op.Dst, dst = op.Src, src
		}
		if ns == 0 {
			op.Src = 1 // this rank must ignore Src
		}
		if nd == 0 {
			op.Dst = 1
		}
		for at := 0; at < len(src); at += op.Type.Size() {
			copy(src[at:], random(r, op.Type))
		}
		scale := random(r, op.Type)
		copy(op.Scale[:], scale)
		scales = append(scales, element(op.Type, scale, 0))
		srcs = append(srcs, append([]byte(nil), src...))
		x.ops, x.dsts = append(x.ops, op), append(x.dsts, dst)
	}
	x.want = expect(op, srcs, scales)
	return x
}

// random returns an element.
func random(r *rand.Rand, t driver.ElementType) []byte {
	if isFloat(t) {
		return put(t, number{f: (r.Float64() - 0.5) * 8})
	}
	return binary.LittleEndian.AppendUint64(nil, r.Uint64()>>r.IntN(64))[:t.Size()]
}

func (x *trial) check(t *testing.T) {
	t.Helper()
	for i, want := range x.want {
		if string(x.dsts[i]) != string(want) && want != nil {
			t.Fatalf("%v of %v, %v, count %d: rank %d of %d has %x, want %x", x.ops[i].Kind, x.ops[i].Type, x.ops[i].Reduction, x.ops[i].Count, i, len(x.ops), x.dsts[i], want)
		}
	}
}

const types = int(driver.Float8E5M2) + 1

// TestCollectives checks all operations against a model.
func TestCollectives(t *testing.T) {
	for mode, c := range commModes {
		t.Run(mode, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 4, 8} {
				r := rand.New(rand.NewPCG(uint64(n), 3))
				x := newCluster(t, n, c)
				a := &arena{used: make([]uint64, n)}
				for _, v := range x.vs {
					a.ms = append(a.ms, alloc(t, v, driver.ManagedMem, 2<<20))
				}
				var trials []*trial
				for k := driver.AllReduce; k <= driver.Scatter; k++ {
					for ty := range types {
						for red := driver.Sum; red <= driver.PreMulSum; red++ {
							ty := driver.ElementType(ty)
							if red > 0 && !k.Reduces() || k.Reduces() && (ty == driver.Int16 || ty == driver.Uint16) {
								continue
							}
							for _, inPlace := range []bool{false, true} {
								if inPlace && k == driver.AllToAll {
									continue
								}
								count := []uint64{1, 2, 5, 17, 0}[len(trials)%5]
								if red == driver.Sum && k == driver.AllReduce {
									count = 1000 // more than reduce handles in one batch
								}
								op := driver.CommOp{Kind: k, Type: ty, Reduction: red, Count: count, Peer: len(trials) % n}
								trials = append(trials, try(r, a, op, inPlace))
							}
						}
					}
				}
				x.each(t, func(i int, v driver.Comms) error {
					for at := 0; at < len(trials); {
						var ops []driver.CommOp
						for range at%3 + 1 { // groups of one to three operations
							if at < len(trials) {
								ops = append(ops, trials[at].ops[i])
								at++
							}
						}
						if err := x.collect(i, ops...); err != nil {
							return err
						}
					}
					return nil
				})
				x.drain(t)
				for _, y := range trials {
					y.check(t)
				}
				x.destroy(t)
			}
		})
	}
}

// commModes are configurations of communicators, which tests run with.
var commModes = map[string]simdriver.Config{
	"concurrent":    {},
	"deterministic": {Deterministic: true, Seed: 5},
	"lazy":          {LazyComms: true, LingerComms: true},
}

// TestCollectDevice tests collectives on device memory, which each rank reaches from its own
// device.
func TestCollectDevice(t *testing.T) {
	for mode, c := range commModes {
		t.Run(mode, func(t *testing.T) {
			x := newCluster(t, 3, c)
			var ms []driver.Mem
			for i, v := range x.vs {
				m := alloc(t, v, driver.DeviceMem, 64)
				check(t, v.Fill(x.ss[i], m.Ptr, uint32(i+1), 4, 16))
				ms = append(ms, m)
			}
			x.each(t, func(i int, v driver.Comms) error {
				op := sum(ms[i])
				op.Count = 16
				return x.collect(i, op)
			})
			x.drain(t)
			for i, v := range x.vs {
				s, h := x.ss[i], alloc(t, v, driver.HostMem, 64)
				check(t, v.Copy(s, h.Ptr, ms[i].Ptr, 64))
				x.drain(t)
				for _, y := range host[int32](h) {
					if y != 6 {
						t.Fatalf("rank %d has %d", i, y)
					}
				}
			}
			x.destroy(t)
		})
	}
}

// TestCollectNothing tests empty groups, and operations of 0 elements.
func TestCollectNothing(t *testing.T) {
	x := newCluster(t, 2, simdriver.Config{})
	check(t, x.collect(0))
	check(t, wait(t, x.vs[0], x.record(t, 0)))
	for i := range 2 {
		check(t, x.collect(i, driver.CommOp{Kind: driver.AllReduce, Type: driver.Float32}))
	}
	x.drain(t)
}

// TestCollectErrors tests invalid operations.
func TestCollectErrors(t *testing.T) {
	x := newCluster(t, 2, simdriver.Config{})
	m := alloc(t, x.vs[0], driver.DeviceMem, 1024)
	good := sum(m)
	for say, c := range map[string]struct {
		change func(op *driver.CommOp)
		want   error
	}{
		"no such operation": {func(op *driver.CommOp) { op.Kind = driver.Recv + 1 }, simdriver.ErrInvalidValue},
		"operation -1":      {func(op *driver.CommOp) { op.Kind = -1 }, simdriver.ErrInvalidValue},
		"element type 14":   {func(op *driver.CommOp) { op.Type = driver.Float8E5M2 + 1 }, simdriver.ErrInvalidValue},
		"element type -1":   {func(op *driver.CommOp) { op.Type = -1 }, simdriver.ErrInvalidValue},
		"reduction 6":       {func(op *driver.CommOp) { op.Reduction = driver.PreMulSum + 1 }, simdriver.ErrInvalidValue},
		"int16":             {func(op *driver.CommOp) { op.Type = driver.Int16 }, driver.ErrUnsupported},
		"uint16":            {func(op *driver.CommOp) { op.Type, op.Kind = driver.Uint16, driver.Reduce }, driver.ErrUnsupported},
		"rank 2":            {func(op *driver.CommOp) { op.Kind, op.Peer = driver.Broadcast, 2 }, simdriver.ErrInvalidValue},
		"rank -1":           {func(op *driver.CommOp) { op.Kind, op.Peer = driver.Send, -1 }, simdriver.ErrInvalidValue},
		"larger than":       {func(op *driver.CommOp) { op.Count = 1 << 62 }, simdriver.ErrInvalidValue},
		"address space":     {func(op *driver.CommOp) { op.Kind, op.Count = driver.AllGather, 1<<61 }, simdriver.ErrInvalidValue},
		"overlap":           {func(op *driver.CommOp) { op.Count, op.Dst = 4, op.Src+8 }, simdriver.ErrInvalidValue},
		"8 at 0x":           {func(op *driver.CommOp) { op.Kind, op.Dst = driver.AllGather, op.Src-4 }, simdriver.ErrInvalidValue},
		"8 bytes at":        {func(op *driver.CommOp) { op.Kind, op.Dst = driver.ReduceScatter, op.Src+4 }, simdriver.ErrInvalidValue},
		"4 at 0x":           {func(op *driver.CommOp) { op.Kind, op.Dst, op.Peer = driver.Scatter, op.Src+4, 0 }, simdriver.ErrInvalidValue},
		"all-to-all":        {func(op *driver.CommOp) { op.Kind = driver.AllToAll }, simdriver.ErrInvalidValue},
	} {
		op := good
		c.change(&op)
		refused(t, x.collect(0, good, op), c.want, say, `operation 1, `, `rank 0 of communicator "test"`)
	}
	refused(t, comms(x.vs[0]).Collect(x.ss[1], x.cs[0], nil), simdriver.ErrInvalidHandle, "belongs to device 1")
	refused(t, comms(x.vs[0]).Collect(x.ss[0], x.cs[1], nil), simdriver.ErrInvalidHandle, "belongs to device 1")
	refused(t, comms(x.vs[0]).Collect(x.ss[0], 0, nil), simdriver.ErrInvalidHandle, "no such communicator")
	// The invalid calls have changed nothing.
	check(t, comms(x.vs[0]).CommError(x.cs[0]))
	for i, v := range x.vs {
		m := alloc(t, v, driver.DeviceMem, 64)
		check(t, x.collect(i, sum(m)))
	}
	x.drain(t)
}

// TestCollectViolations tests operations on memory that does not exist. The device of the rank is
// lost when the operation executes. The other ranks hang, and CommError returns the cause.
func TestCollectViolations(t *testing.T) {
	for mode, c := range commModes {
		if c.LazyComms {
			continue
		}
		for name, do := range map[string]func(t *testing.T, x *cluster, m driver.Mem) (driver.CommOp, simdriver.AccessError){
			"too long": func(t *testing.T, x *cluster, m driver.Mem) (driver.CommOp, simdriver.AccessError) {
				op := sum(m)
				op.Count = 17
				return op, simdriver.AccessError{Addr: m.Ptr, Size: 68, Base: m.Ptr, Length: 64}
			},
			"freed": func(t *testing.T, x *cluster, m driver.Mem) (driver.CommOp, simdriver.AccessError) {
				check(t, x.vs[1].Free(m))
				op := sum(m)
				op.Count = 16
				return op, simdriver.AccessError{Addr: m.Ptr, Size: 64, Base: m.Ptr, Length: 64, Freed: true}
			},
			"not aligned": func(t *testing.T, x *cluster, m driver.Mem) (driver.CommOp, simdriver.AccessError) {
				op := sum(m)
				op.Src, op.Dst = op.Src+2, op.Dst+2
				return op, simdriver.AccessError{Addr: m.Ptr + 2, Size: 4, Align: 4, Base: m.Ptr, Length: 64}
			},
			"another device's": func(t *testing.T, x *cluster, _ driver.Mem) (driver.CommOp, simdriver.AccessError) {
				m := alloc(t, x.vs[0], driver.DeviceMem, 64)
				op := sum(m)
				return op, simdriver.AccessError{Addr: m.Ptr, Size: 4, Base: m.Ptr, Length: 64, Apart: true}
			},
		} {
			t.Run(mode+"/"+name, func(t *testing.T) {
				x := newCluster(t, 2, c)
				m0, m1 := alloc(t, x.vs[0], driver.DeviceMem, 68), alloc(t, x.vs[1], driver.DeviceMem, 64)
				op, want := do(t, x, m1)
				op0 := op
				op0.Src, op0.Dst = m0.Ptr, m0.Ptr
				var stuck, e driver.Event
				x.hold(t, func() {
					check(t, x.collect(0, op0))
					check(t, x.collect(1, op))
					stuck, e = x.record(t, 0), x.record(t, 1)
				})
				err := wait(t, x.vs[1], e)
				refused(t, err, driver.ErrLost, "all-reduce of rank 1")
				var got *simdriver.AccessError
				if want.Op, want.Device, want.Stream = simdriver.OpCollect, 1, x.ss[1]; !errors.As(err, &got) || *got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				pending(t, x.vs[0], stuck)
				refused(t, comms(x.vs[0]).CommError(x.cs[0]), simdriver.ErrRankGone, "rank 1", "device 1 is lost")
				refused(t, x.collect(0, op0), simdriver.ErrRankGone)
				check(t, comms(x.vs[0]).AbortComm(x.cs[0]))
				x.d.Run()
				check(t, wait(t, x.vs[0], stuck))
				check(t, comms(x.vs[0]).DestroyComm(x.cs[0]))
				refused(t, comms(x.vs[1]).AbortComm(x.cs[1]), driver.ErrLost)
				refused(t, comms(x.vs[1]).DestroyComm(x.cs[1]), driver.ErrLost)
				refused(t, comms(x.vs[1]).DestroyComm(x.cs[1]), simdriver.ErrInvalidHandle)
			})
		}
	}
}

// TestMeeting tests ranks that reach an operation at different times.
func TestMeeting(t *testing.T) {
	x := newCluster(t, 3, simdriver.Config{})
	ms := x.numbers(t, 1)
	var ends []driver.Event
	for i := range x.vs {
		check(t, x.d.StallStream(x.ss[i]))
		check(t, x.collect(i, sum(ms[i])))
		ends = append(ends, x.record(t, i))
		check(t, x.collect(i, sum(ms[i])))
	}
	check(t, x.d.ResumeStream(x.ss[0]))
	check(t, x.d.ResumeStream(x.ss[2]))
	for _, i := range []int{0, 2} {
		pending(t, x.vs[i], ends[i])
	}
	if c := x.d.Counters().Devices[0]; c.Pending != 3 || c.Comms != 1 {
		t.Errorf("%+v", c)
	}
	refused(t, comms(x.vs[0]).DestroyComm(x.cs[0]), simdriver.ErrBusy, "2 groups")
	refused(t, x.vs[0].DestroyStream(x.ss[0]), simdriver.ErrBusy)
	check(t, x.d.StallStream(x.ss[0])) // cannot stop the first operation, which has begun
	check(t, x.d.ResumeStream(x.ss[1]))
	check(t, wait(t, x.vs[1], ends[1]))
	pending(t, x.vs[0], ends[0]) // the record is behind the stall
	if got := host[int32](ms[0])[0]; got != 3 {
		t.Errorf("the sum is %d", got)
	}
	check(t, x.d.ResumeStream(x.ss[0]))
	x.drain(t)
	for i, m := range ms {
		if got := host[int32](m)[0]; got != 9 {
			t.Errorf("rank %d has %d", i, got)
		}
	}
	x.destroy(t)
	if leaks := x.d.Leaks(); len(leaks) == 0 {
		t.Error("no leaks")
	}
}

// TestCommStreams checks that operations of one rank in several streams execute in order.
func TestCommStreams(t *testing.T) {
	for mode, c := range commModes {
		if c.LazyComms {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			x := newCluster(t, 2, c)
			ms := x.numbers(t, 1)
			other := stream(t, x.vs[0])
			check(t, x.d.StallStream(x.ss[0]))
			check(t, x.collect(0, sum(ms[0])))
			check(t, comms(x.vs[0]).Collect(other, x.cs[0], []driver.CommOp{sum(ms[0])}))
			first, second := x.record(t, 0), record(t, x.vs[0], other)
			for range 2 {
				check(t, x.collect(1, sum(ms[1])))
			}
			x.d.Run()
			pending(t, x.vs[0], second)
			check(t, x.d.ResumeStream(x.ss[0]))
			x.d.Run()
			check(t, wait(t, x.vs[0], second))
			check(t, wait(t, x.vs[0], first))
			x.drain(t)
			if a, b := host[int32](ms[0])[0], host[int32](ms[1])[0]; a != 2 || b != 2 {
				t.Errorf("sums %d, %d", a, b)
			}
		})
	}
}

// transfer returns an operation that sends to a rank, or receives from it.
func transfer(k driver.CommOpKind, m driver.Mem, at, peer int) driver.CommOp {
	p := m.Ptr + driver.Ptr(4*at)
	return driver.CommOp{Kind: k, Type: driver.Int32, Src: p, Dst: p, Count: 1, Peer: peer}
}

func TestSendRecv(t *testing.T) {
	for mode, c := range commModes {
		t.Run(mode, func(t *testing.T) {
			const n = 4
			x := newCluster(t, n, c)
			ms := x.numbers(t, 8)

			// Each rank sends to the next one and to itself, and receives from the previous one and
			// from itself.
			x.each(t, func(i int, _ driver.Comms) error {
				return x.collect(i, transfer(driver.Send, ms[i], 0, (i+1)%n), transfer(driver.Recv, ms[i], 1, (i+n-1)%n),
					transfer(driver.Recv, ms[i], 2, i), transfer(driver.Send, ms[i], 0, i))
			})
			x.drain(t)
			for i, m := range ms {
				if h := host[int32](m); h[1] != int32((i+n-1)%n) || h[2] != int32(i) {
					t.Errorf("rank %d has %v", i, h)
				}
			}

			// Transfers between the same two ranks match in order. They do not wait for transfers
			// between other ranks.
			x.each(t, func(i int, _ driver.Comms) error {
				h := host[int32](ms[i])
				switch i {
				case 0:
					h[3], h[4], h[5] = 7, 8, 9
					return errors.Join(x.collect(0, transfer(driver.Send, ms[0], 3, 1)),
						x.collect(0, transfer(driver.Send, ms[0], 4, 1), transfer(driver.Send, ms[0], 5, 1)))
				case 1:
					return errors.Join(x.collect(1, transfer(driver.Recv, ms[1], 3, 0), transfer(driver.Recv, ms[1], 4, 0)),
						x.collect(1, transfer(driver.Recv, ms[1], 5, 0)))
				}
				return nil
			})
			x.drain(t)
			if h := host[int32](ms[1]); h[3] != 7 || h[4] != 8 || h[5] != 9 {
				t.Errorf("rank 1 has %v", h)
			}
			x.destroy(t)
		})
	}
}

// TestUngrouped makes two ranks send and receive without a group, which blocks both.
func TestUngrouped(t *testing.T) {
	for mode, c := range commModes {
		if c.LazyComms {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			x := newCluster(t, 3, c)
			ms := x.numbers(t, 2)
			var ends []driver.Event
			for i := range 2 {
				check(t, x.collect(i, transfer(driver.Send, ms[i], 0, 1-i)))
				check(t, x.collect(i, transfer(driver.Recv, ms[i], 1, 1-i)))
				ends = append(ends, x.record(t, i))
			}
			x.d.Run()
			for i, e := range ends {
				pending(t, x.vs[i], e)
				check(t, comms(x.vs[i]).CommError(x.cs[i])) // CommError does not report the deadlock
			}
			for i, e := range ends {
				check(t, comms(x.vs[i]).AbortComm(x.cs[i]))
				x.d.Run()
				check(t, wait(t, x.vs[i], e))
			}
		})
	}
}

// TestMismatch tests ranks that submit different operations.
func TestMismatch(t *testing.T) {
	base := driver.CommOp{Kind: driver.AllReduce, Type: driver.Int32, Count: 4}
	for _, c := range []struct {
		op     driver.CommOp
		change func(op *driver.CommOp)
		say    string
	}{
		{base, func(op *driver.CommOp) { op.Kind = driver.AllGather }, "operation all-gather, and rank 0 all-reduce"},
		{base, func(op *driver.CommOp) { op.Type = driver.Float32 }, "elements of float32, and rank 0 int32"},
		{base, func(op *driver.CommOp) { op.Reduction = driver.Max }, "reduction max, and rank 0 sum"},
		{base, func(op *driver.CommOp) { op.Count = 3 }, "a count of 3, and rank 0 4"},
		{driver.CommOp{Kind: driver.Broadcast, Count: 4, Peer: 1}, func(op *driver.CommOp) { op.Peer = 2 }, "root 2, and rank 0 1"},
		{driver.CommOp{Kind: driver.Reduce, Count: 4, Peer: 1}, func(op *driver.CommOp) { op.Peer = 0 }, "root 0, and rank 0 1"},
	} {
		for mode, config := range commModes {
			if config.LazyComms {
				continue
			}
			t.Run(mode+"/"+c.say, func(t *testing.T) {
				x := newCluster(t, 3, config)
				ms := x.numbers(t, 64)
				var ends []driver.Event
				for i := range x.vs {
					check(t, x.collect(i, sum(ms[i])))
				}
				x.drain(t)
				x.hold(t, func() {
					for _, i := range []int{0, 2} { // two ranks are enough to find the mismatch
						op := c.op
						if i == 2 {
							c.change(&op)
						}
						op.Src, op.Dst = ms[i].Ptr, ms[i].Ptr+128
						check(t, x.collect(i, op))
						ends = append(ends, x.record(t, i))
					}
				})
				pending(t, x.vs[2], ends[1])
				if must(x.vs[0].Query(ends[0]))(t) {
					t.Error("the rank that came first does not hang")
				}
				for i, v := range x.vs {
					refused(t, comms(v).CommError(x.cs[i]), simdriver.ErrMismatch, "in collective 1 rank 2 has", c.say, fmt.Sprint("rank ", i, " of"))
					refused(t, x.collect(i, sum(ms[i])), simdriver.ErrMismatch)
					check(t, comms(v).AbortComm(x.cs[i]))
				}
				x.drain(t)
				x.destroy(t)
			})
		}
	}
	for say, change := range map[string]func(op *driver.CommOp){
		"transfer 0 from rank 0 to rank 1 rank 1 has a count of 2, and rank 0 1": func(op *driver.CommOp) { op.Count = 2 },
		"has elements of uint32, and rank 0 int32":                               func(op *driver.CommOp) { op.Type = driver.Uint32 },
	} {
		x := newCluster(t, 2, simdriver.Config{Deterministic: true})
		ms := x.numbers(t, 64)
		check(t, x.collect(0, transfer(driver.Send, ms[0], 0, 1)))
		x.d.Run()
		op := transfer(driver.Recv, ms[1], 0, 0)
		change(&op)
		check(t, x.collect(1, op))
		x.d.Run()
		for i, v := range x.vs {
			refused(t, comms(v).CommError(x.cs[i]), simdriver.ErrMismatch, say)
			if x.d.Counters().Devices[i].Pending != 1 {
				t.Error("nothing hangs")
			}
		}
	}
}
