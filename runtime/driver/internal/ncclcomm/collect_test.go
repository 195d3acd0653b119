//go:build linux && (amd64 || arm64) && !nogpu

package ncclcomm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestOperations checks the library's calls for each kind of operation on rank 1 of 3, with a
// library that has a function for every kind, and with an older one that lacks some.
func TestOperations(t *testing.T) {
	type want struct{ new, old []string } // calls of a library that has a function for every kind, and of an older one that lacks some; old is nil if it equals new
	op := func(k driver.CommOpKind, peer int, r driver.Reduction) driver.CommOp {
		return driver.CommOp{Kind: k, Type: driver.Float32, Reduction: r, Src: 0x1000, Dst: 0x2000, Count: 5, Peer: peer}
	}
	ops := []driver.CommOp{
		op(driver.AllReduce, 99, driver.Sum), op(driver.AllReduce, 0, driver.Prod), op(driver.AllReduce, 0, driver.Min),
		op(driver.AllReduce, 0, driver.Max), op(driver.AllReduce, 0, driver.Avg),
		op(driver.AllGather, 99, 99), op(driver.ReduceScatter, 99, driver.Max),
		op(driver.Broadcast, 1, 0), op(driver.Broadcast, 2, 0), op(driver.Reduce, 1, driver.Sum), op(driver.Reduce, 2, driver.Sum),
		op(driver.Send, 2, 0), op(driver.Recv, 0, 0),
		op(driver.AllToAll, 99, 0), op(driver.Gather, 1, 0), op(driver.Gather, 0, 0), op(driver.Scatter, 1, 0), op(driver.Scatter, 2, 0),
	}
	wants := []want{
		{new: []string{"ncclAllReduce(0x1000, 0x2000, 5, 7, 0, c2, 0x5000)"}},
		{new: []string{"ncclAllReduce(0x1000, 0x2000, 5, 7, 1, c2, 0x5000)"}},
		{new: []string{"ncclAllReduce(0x1000, 0x2000, 5, 7, 3, c2, 0x5000)"}},
		{new: []string{"ncclAllReduce(0x1000, 0x2000, 5, 7, 2, c2, 0x5000)"}},
		{new: []string{"ncclAllReduce(0x1000, 0x2000, 5, 7, 4, c2, 0x5000)"}},
		{new: []string{"ncclAllGather(0x1000, 0x2000, 5, 7, c2, 0x5000)"}},
		{new: []string{"ncclReduceScatter(0x1000, 0x2000, 5, 7, 2, c2, 0x5000)"}},
		{new: []string{"ncclBroadcast(0x1000, 0x2000, 5, 7, 1, c2, 0x5000)"}},
		{new: []string{"ncclBroadcast(0x2000, 0x2000, 5, 7, 2, c2, 0x5000)"}},
		{new: []string{"ncclReduce(0x1000, 0x2000, 5, 7, 0, 1, c2, 0x5000)"}},
		{new: []string{"ncclReduce(0x1000, 0x1000, 5, 7, 0, 2, c2, 0x5000)"}},
		{new: []string{"ncclSend(0x1000, 5, 7, 2, c2, 0x5000)"}},
		{new: []string{"ncclRecv(0x2000, 5, 7, 0, c2, 0x5000)"}},
		{[]string{"ncclAlltoAll(0x1000, 0x2000, 5, 7, c2, 0x5000)"}, []string{
			"ncclSend(0x1000, 5, 7, 0, c2, 0x5000)", "ncclRecv(0x2000, 5, 7, 0, c2, 0x5000)",
			"ncclSend(0x1014, 5, 7, 1, c2, 0x5000)", "ncclRecv(0x2014, 5, 7, 1, c2, 0x5000)",
			"ncclSend(0x1028, 5, 7, 2, c2, 0x5000)", "ncclRecv(0x2028, 5, 7, 2, c2, 0x5000)",
		}},
		{[]string{"ncclGather(0x1000, 0x2000, 5, 7, 1, c2, 0x5000)"}, []string{
			"ncclRecv(0x2000, 5, 7, 0, c2, 0x5000)",
			"ncclSend(0x1000, 5, 7, 1, c2, 0x5000)", "ncclRecv(0x2014, 5, 7, 1, c2, 0x5000)",
			"ncclRecv(0x2028, 5, 7, 2, c2, 0x5000)",
		}},
		{[]string{"ncclGather(0x1000, 0x2000, 5, 7, 0, c2, 0x5000)"}, []string{"ncclSend(0x1000, 5, 7, 0, c2, 0x5000)"}},
		{[]string{"ncclScatter(0x1000, 0x2000, 5, 7, 1, c2, 0x5000)"}, []string{
			"ncclSend(0x1000, 5, 7, 0, c2, 0x5000)",
			"ncclSend(0x1014, 5, 7, 1, c2, 0x5000)", "ncclRecv(0x2000, 5, 7, 1, c2, 0x5000)",
			"ncclSend(0x1028, 5, 7, 2, c2, 0x5000)",
		}},
		{[]string{"ncclScatter(0x1000, 0x2000, 5, 7, 2, c2, 0x5000)"}, []string{"ncclRecv(0x2000, 5, 7, 2, c2, 0x5000)"}},
	}
	for _, release := range []dl.Version{22803, 22703} {
		f := newFake(t, release)
		h := f.comm(1, 3)
		all := []string{"ncclGroupStart()"}
		for i, o := range ops {
			w := wants[i].new
			if release < 22803 && wants[i].old != nil {
				w = wants[i].old
			}
			ok(t, f.Collect(stream, h, []driver.CommOp{o}))
			f.want(slices.Concat([]string{"ncclGroupStart()"}, w, []string{"ncclGroupEnd()"})...)
			all = append(all, w...)
		}
		ok(t, f.Collect(stream, h, ops)) // all operations in one group
		f.want(append(all, "ncclGroupEnd()")...)

		// Collect skips operations with Count 0. It makes no call for an empty group.
		empty := ops[0]
		empty.Count = 0
		ok(t, f.Collect(stream, h, []driver.CommOp{empty, ops[5], empty}))
		f.want("ncclGroupStart()", wants[5].new[0], "ncclGroupEnd()")
		ok(t, f.Collect(stream, h, []driver.CommOp{empty}))
		ok(t, f.Collect(stream, h, nil))
		f.want()

		// A part that is in place is not sent.
		if release < 22803 {
			gather, scatter := ops[14], ops[16]
			gather.Src, scatter.Dst = gather.Dst+20, scatter.Src+20
			ok(t, f.Collect(stream, h, []driver.CommOp{gather, scatter}))
			f.want("ncclGroupStart()", "ncclRecv(0x2000, 5, 7, 0, c2, 0x5000)", "ncclRecv(0x2028, 5, 7, 2, c2, 0x5000)",
				"ncclSend(0x1000, 5, 7, 0, c2, 0x5000)", "ncclSend(0x1028, 5, 7, 2, c2, 0x5000)", "ncclGroupEnd()")
		}
		f.destroy(h)
	}
}

// TestFactors checks that Collect makes an operator for each PreMulSum of a group, and destroys the
// operators after the group, even if a call fails.
func TestFactors(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	op := driver.CommOp{Kind: driver.AllReduce, Type: driver.BFloat16, Reduction: driver.PreMulSum, Scale: [8]byte{0x80, 0x3f}, Src: 1, Dst: 2, Count: 3}
	other := op
	other.Kind, other.Type, other.Scale = driver.Reduce, driver.Int8, [8]byte{7}
	ok(t, f.Collect(stream, h, []driver.CommOp{op, other}))
	f.want("ncclGroupStart()", "ncclRedOpCreatePreMulSum(803f, 9, 1, c2)", "ncclAllReduce(0x1, 0x2, 3, 9, 5, c2, 0x5000)",
		"ncclRedOpCreatePreMulSum(0700, 0, 1, c2)", "ncclReduce(0x1, 0x2, 3, 0, 6, 0, c2, 0x5000)",
		"ncclGroupEnd()", "ncclRedOpDestroy(5, c2)", "ncclRedOpDestroy(6, c2)")
	live := f.live()
	for _, fn := range []string{"ncclRedOpCreatePreMulSum", "ncclReduce", "ncclGroupEnd"} {
		f.set(fn, int(nccl.ErrorInternal))
		if err := f.Collect(stream, h, []driver.CommOp{op, other}); !errors.Is(err, nccl.ErrorInternal) {
			t.Errorf("%s: %v", fn, err)
		}
		f.set(fn, 0)
		if f.live() != live {
			t.Errorf("%s fails: %d operators are left", fn, f.live()-live)
		}
		f.sound()
	}
	f.set("ncclRedOpDestroy", int(nccl.ErrorInternal))
	if err := f.Collect(stream, h, []driver.CommOp{op}); !errors.Is(err, nccl.ErrorInternal) || !strings.Contains(err.Error(), "destroy the factor") {
		t.Errorf("%v", err)
	}
	f.set("ncclRedOpDestroy", 0)
	f.destroy(h)
}

// TestGroupEnds checks that the thread leaves the group, whichever call in it fails.
func TestGroupEnds(t *testing.T) {
	t.Run("B113 a group is ended on its thread, whatever fails in it", groupEnds)
}

func groupEnds(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	ops := []driver.CommOp{
		{Kind: driver.AllReduce, Type: driver.Float32, Reduction: driver.Sum, Count: 5},
		{Kind: driver.Send, Type: driver.Uint8, Count: 6, Peer: 1},
		{Kind: driver.AllGather, Type: driver.Float64, Count: 7},
	}
	for fn, c := range map[string]struct {
		says string
		last string // the last call of the group
	}{
		"ncclGroupStart": {"begin a group: nccl: ncclSystemError (2)", "ncclGroupStart"},
		"ncclAllReduce":  {"operation 0, all-reduce by sum of 5 × float32: nccl: ncclSystemError (2)", "ncclGroupEnd"},
		"ncclSend":       {"operation 1, send of 6 × uint8: nccl: ncclSystemError (2)", "ncclGroupEnd"},
		"ncclAllGather":  {"operation 2, all-gather of 7 × float64: nccl: ncclSystemError (2)", "ncclGroupEnd"},
		"ncclGroupEnd":   {"end a group of 3: nccl: ncclSystemError (2)", "ncclGroupEnd"},
	} {
		f.set(fn, int(nccl.ErrorSystem))
		err := f.Collect(stream, h, ops)
		f.set(fn, 0)
		e, isErr := errors.AsType[*driver.Error](err)
		if !isErr || e.Op != "collect" || !errors.Is(err, nccl.ErrorSystem) || !strings.Contains(err.Error(), fmt.Sprintf("communicator %d in stream 0x5000: %s", h, c.says)) ||
			!strings.HasSuffix(err.Error(), "(the library's last message: as the fake was told)") {
			t.Errorf("%s: %v", fn, err)
		}
		calls := f.calls()
		if last := calls[len(calls)-1]; last != c.last+"()" {
			t.Errorf("%s: the last call is %s", fn, last)
		}
		f.sound()
		ok(t, f.Collect(stream, h, ops)) // the thread can begin another group
		f.calls()
	}
	f.destroy(h)
}

// TestTypes checks the results of dataType. For moving elements the result is a type that the
// release has and that has the same size. For reducing them the result is the element type itself,
// or ErrUnsupported.
func TestTypes(t *testing.T) {
	t.Run("B114 every type is one of the same size", everyType)
}

func everyType(t *testing.T) {
	size := map[nccl.DataType]int{
		nccl.Int8: 1, nccl.Uint8: 1, nccl.Int32: 4, nccl.Uint32: 4, nccl.Int64: 8, nccl.Uint64: 8,
		nccl.Float16: 2, nccl.Float32: 4, nccl.Float64: 8, nccl.Bfloat16: 2, nccl.Float8e4m3: 1, nccl.Float8e5m2: 1,
	}
	since := map[nccl.DataType]dl.Version{nccl.Bfloat16: 21003, nccl.Float8e4m3: 22403, nccl.Float8e5m2: 22403}
	exact := map[driver.ElementType]nccl.DataType{
		driver.Int8: nccl.Int8, driver.Uint8: nccl.Uint8, driver.Int32: nccl.Int32, driver.Uint32: nccl.Uint32,
		driver.Int64: nccl.Int64, driver.Uint64: nccl.Uint64, driver.Float16: nccl.Float16, driver.BFloat16: nccl.Bfloat16,
		driver.Float32: nccl.Float32, driver.Float64: nccl.Float64, driver.Float8E4M3: nccl.Float8e4m3, driver.Float8E5M2: nccl.Float8e5m2,
	}
	for e := driver.ElementType(0); e.Valid(); e++ {
		for _, release := range []dl.Version{2305, 2804, 21003, 22304, 22403, 22803, 0} {
			has := func(n nccl.DataType) bool { return release == 0 || release >= since[n] }
			n, err := dataType(e, false, release)
			if err != nil || size[n] != e.Size() || !has(n) {
				t.Errorf("%v moves as %v in %d, %v", e, n, release, err)
			}
			n, err = dataType(e, true, release)
			want, number := exact[e]
			if number && has(want) {
				if n != want || err != nil {
					t.Errorf("%v is %v in %d, %v", e, n, release, err)
				}
			} else if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), e.String()) {
				t.Errorf("%v is %v in %d, %v", e, n, release, err)
			}
		}
	}
	if len(types) != 14 || len(reductions) != int(driver.PreMulSum) {
		t.Errorf("%d types, %d reductions", len(types), len(reductions))
	}
}

// TestRefused checks that Collect refuses invalid and unsupported operations without a call of the
// library.
func TestRefused(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	good := driver.CommOp{Type: driver.Float32, Count: 1}
	bad := func(change func(o *driver.CommOp)) driver.CommOp {
		o := good
		change(&o)
		return o
	}
	for says, o := range map[string]driver.CommOp{
		"no such kind":                   bad(func(o *driver.CommOp) { o.Kind = driver.Recv + 1 }),
		"no such kind ":                  bad(func(o *driver.CommOp) { o.Kind = -1 }),
		"no such type":                   bad(func(o *driver.CommOp) { o.Type = 14 }),
		"no such type ":                  bad(func(o *driver.CommOp) { o.Type = -1 }),
		"no such reduction":              bad(func(o *driver.CommOp) { o.Reduction = driver.PreMulSum + 1 }),
		"no such reduction ":             bad(func(o *driver.CommOp) { o.Reduction = -1 }),
		"no rank 2 of 2":                 bad(func(o *driver.CommOp) { o.Kind, o.Peer = driver.Broadcast, 2 }),
		"no rank -1 of 2":                bad(func(o *driver.CommOp) { o.Kind, o.Peer = driver.Send, -1 }),
		"larger than the address space":  bad(func(o *driver.CommOp) { o.Count = 1 << 60 }),
		"larger than the address space ": bad(func(o *driver.CommOp) { o.Kind, o.Count = driver.AllGather, 1<<64-1 }),
		"no rank 9 of 2":                 bad(func(o *driver.CommOp) { o.Kind, o.Count, o.Peer = driver.Gather, 0, 9 }),
	} {
		err := f.Collect(stream, h, []driver.CommOp{good, o})
		if !errors.Is(err, nccl.ErrorInvalidArgument) || !strings.Contains(err.Error(), "operation 1, ") || !strings.Contains(err.Error(), strings.TrimSpace(says)) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, e := range []driver.ElementType{driver.Int16, driver.Uint16} {
		if err := f.Collect(stream, h, []driver.CommOp{good, {Kind: driver.Reduce, Type: e, Count: 1}}); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%v: %v", e, err)
		}
		ok(t, f.Collect(stream, h, []driver.CommOp{{Kind: driver.Broadcast, Type: e, Count: 1}}))
		f.want("ncclGroupStart()", "ncclBroadcast(0, 0, 1, 6, 0, c2, 0x5000)", "ncclGroupEnd()")
	}
	for _, s := range []driver.Stream{0, 1, 2} {
		if err := f.Collect(s, h, []driver.CommOp{good}); !errors.Is(err, nccl.ErrorInvalidArgument) {
			t.Errorf("stream %d: %v", s, err)
		}
	}
	f.want()
	f.destroy(h)

	f = newFake(t, 2305)
	h = f.comm(0, 2)
	if err := f.Collect(stream, h, []driver.CommOp{{Type: driver.Int8, Reduction: driver.Avg, Count: 1}}); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "averages need release 2.10.3, and the library is 2.3.5") {
		t.Errorf("averages: %v", err)
	}
	f.destroy(h)
}

// TestMissingInGroup checks that the error is not ErrUnsupported if the library lacks a function
// for an operation after the first one of a group: the first one was issued.
func TestMissingInGroup(t *testing.T) {
	f := newFake(t, 2305)
	h := f.comm(0, 2)
	f.ranks[h].has.messages = true
	err := f.Collect(stream, h, []driver.CommOp{{Type: driver.Float32, Count: 1}, {Kind: driver.Send, Type: driver.Float32, Count: 1}})
	if err == nil || errors.Is(err, dl.ErrSymbol) || errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "ncclSend is missing") {
		t.Errorf("%v", err)
	}
	f.sound()
	f.destroy(h)
}

// TestLimits checks that CheckOp and CheckShrink return ErrUnsupported if the release does not
// support the operation or the shrink, and nil otherwise. Neither may call the library.
func TestLimits(t *testing.T) {
	op := func(k driver.CommOpKind, e driver.ElementType, r driver.Reduction) driver.CommOp {
		return driver.CommOp{Kind: k, Type: e, Reduction: r, Count: 1}
	}
	for _, x := range []struct {
		release      dl.Version
		has, hasNot  []driver.CommOp
		shrinks      bool
		wrongAnyways driver.CommOp // an invalid operation, for which CheckOp returns nil
	}{
		{2305, []driver.CommOp{op(driver.AllReduce, driver.Float32, driver.Sum)}, []driver.CommOp{
			op(driver.AllReduce, driver.Float32, driver.Avg), op(driver.AllReduce, driver.Float32, driver.PreMulSum),
			op(driver.Reduce, driver.BFloat16, driver.Sum), op(driver.Send, driver.Float32, 0), op(driver.AllToAll, driver.Float32, 0),
		}, false, op(driver.Recv+1, 0, 0)},
		{22304, []driver.CommOp{op(driver.AllReduce, driver.BFloat16, driver.Avg), op(driver.AllToAll, driver.Float8E4M3, 0)}, []driver.CommOp{
			op(driver.AllReduce, driver.Float8E4M3, driver.Sum), op(driver.AllReduce, driver.Int16, driver.Sum),
		}, false, op(driver.AllReduce, 99, 0)},
		{22803, []driver.CommOp{op(driver.AllReduce, driver.Float8E5M2, driver.PreMulSum), op(driver.Send, driver.Int16, 0)}, nil, true,
			op(driver.AllReduce, driver.Int8, 99)},
	} {
		f := newFake(t, x.release)
		h := f.comm(0, 2)
		for _, o := range append(x.has, x.wrongAnyways) {
			if err := f.CheckOp(h, o); err != nil {
				t.Errorf("%d: %+v: %v", x.release, o, err)
			}
		}
		for _, o := range x.hasNot {
			err, same := f.CheckOp(h, o), f.Collect(stream, h, []driver.CommOp{o})
			if e, ok := errors.AsType[*driver.Error](err); !ok || e.Op != "collect" || !errors.Is(err, driver.ErrUnsupported) || !errors.Is(same, driver.ErrUnsupported) {
				t.Errorf("%d: %+v: %v, and Collect %v", x.release, o, err, same)
			}
		}
		if err := f.CheckShrink(h); x.shrinks && err != nil || !x.shrinks && !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%d shrinks: %v", x.release, err)
		}
		f.want()
		f.destroy(h)
		if err := errors.Join(f.CheckOp(h, op(driver.AllReduce, driver.Float32, driver.Avg)), f.CheckShrink(h)); err != nil {
			t.Errorf("%d: for a destroyed communicator: %v", x.release, err)
		}
	}
}

func TestCollectAllocatesNothing(t *testing.T) {
	if !dl.Fast {
		t.Skip("no fast path in this build")
	}
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	ops := []driver.CommOp{{Type: driver.Float32, Count: 1}, {Type: driver.Float32, Count: 1, Reduction: driver.PreMulSum}}
	for k := driver.AllGather; k <= driver.Recv; k++ {
		ops = append(ops, driver.CommOp{Kind: k, Type: driver.BFloat16, Count: 1})
	}
	var comms driver.Comms = f.Comms
	var sink error
	if n := testing.AllocsPerRun(100, func() { sink = comms.Collect(stream, h, ops) }); n != 0 || sink != nil {
		t.Errorf("Collect allocates %v times, %v", n, sink)
	}
	var limits driver.CommLimits = f.Comms
	if n := testing.AllocsPerRun(100, func() { sink = limits.CheckOp(h, ops[1]) }); n != 0 || sink != nil {
		t.Errorf("CheckOp allocates %v times, %v", n, sink)
	}
	f.destroy(h)
}

func BenchmarkCollect(b *testing.B) {
	f := newFake(b, 22803)
	h := f.comm(0, 2)
	ops := []driver.CommOp{{Type: driver.Float32, Count: 1}}
	for b.Loop() {
		if err := f.Collect(stream, h, ops); err != nil {
			b.Fatal(err)
		}
	}
	f.destroy(h)
}
