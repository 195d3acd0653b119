//go:build linux && (amd64 || arm64) && !nogpu

package ncclcomm

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// Settings of the three communicators, as the fake library prints them.
const (
	base   = "blocking 0 share 1 name mine"
	ops    = "blocking 1 share 0 name mine"
	source = "blocking 0 share 0 name mine"
)

func TestLife(t *testing.T) {
	f := newFake(t, 22803)
	h := f.begin(1, 3)
	if _, _, err := f.CommRank(h); !errors.Is(err, errMaking) {
		t.Errorf("its rank before it is made: %v", err)
	}
	if err := f.Collect(stream, h, nil); !errors.Is(err, errMaking) {
		t.Errorf("operations before it is made: %v", err)
	}
	ok(t, f.CommError(h))
	ok(t, f.ready(h))
	f.want("ncclGetUniqueId()", "ncclCommInitRankConfig(rank 1 of 3, "+base+")", "ncclCommUserRank(c1)", "ncclCommCount(c1)",
		"ncclCommSplit(c1, 0, 1, "+ops+")", "ncclCommSplit(c1, 0, 1, "+source+")")
	if r, n, err := f.CommRank(h); r != 1 || n != 3 || err != nil {
		t.Errorf("rank %d of %d, %v", r, n, err)
	}
	if done, err := f.CommReady(h); !done || err != nil {
		t.Errorf("asked again: %t, %v", done, err)
	}
	ok(t, f.CommError(h))

	m, err := f.RegisterComm(h, 0x1000, 64)
	ok(t, err)
	w, err := f.NewWindow(h, 0x2000, 64, true)
	ok(t, err)
	_, err = f.NewWindow(h, 0x3000, 32, false)
	ok(t, err)
	if m == w || m == 0 || w == 0 {
		t.Errorf("registered are %d and %d", m, w)
	}
	ok(t, f.ReleaseCommMemory(h, m))
	if err := f.ReleaseCommMemory(h, m); !errors.Is(err, nccl.ErrorInvalidArgument) {
		t.Errorf("released twice: %v", err)
	}
	f.want("ncclCommRegister(c2, 0x1000, 64)", "ncclCommWindowRegister(c2, 0x2000, 64, 1)", "ncclCommWindowRegister(c2, 0x3000, 32, 0)",
		"ncclCommDeregister(c2, 0x101)")
	f.sound()

	f.destroy(h)
	f.want("ncclCommWindowDeregister(c2, 0x102)", "ncclCommWindowDeregister(c2, 0x103)",
		"ncclCommFinalize(c2)", "ncclCommDestroy(c2)", "ncclCommFinalize(c3)", "ncclCommDestroy(c3)", "ncclCommFinalize(c1)", "ncclCommDestroy(c1)")
	if f.comm(0, 1) == h {
		t.Error("a handle was returned twice")
	}
	f.destroy(h + 1)
}

// TestManyIDs checks that NewComm takes several ids, and returns an error if the library lacks
// ncclCommInitRankScalable.
func TestManyIDs(t *testing.T) {
	f := newFake(t, 22803)
	id, err := f.NewUniqueID()
	ok(t, err)
	more, err := f.NewUniqueID()
	ok(t, err)
	desc := driver.CommDesc{ID: id, More: []driver.UniqueID{more}, Rank: 1, Count: 2, Name: "mine"}
	h, err := f.NewComm(desc)
	ok(t, err)
	ok(t, f.ready(h))
	f.want("ncclGetUniqueId()", "ncclGetUniqueId()", "ncclCommInitRankScalable(rank 1 of 2, 2 ids, "+base+")", "ncclCommUserRank(c1)",
		"ncclCommCount(c1)", "ncclCommSplit(c1, 0, 1, "+ops+")", "ncclCommSplit(c1, 0, 1, "+source+")")
	f.destroy(h)
	for _, version := range []dl.Version{21801, 21403} {
		if _, err := newFake(t, version).NewComm(desc); !errors.Is(err, dl.ErrSymbol) || !strings.Contains(err.Error(), "ncclCommInitRankScalable") {
			t.Errorf("%d: %v", version, err)
		}
	}
}

// TestPolls checks that a rank becomes ready if the library reports "in progress" several times.
func TestPolls(t *testing.T) {
	f := newFake(t, 22803)
	f.set("polls", 5)
	h := f.begin(0, 2)
	if done, err := f.CommReady(h); done || err != nil {
		t.Errorf("ready at once: %t, %v", done, err)
	}
	ok(t, f.CommError(h)) // "in progress" does not count as an error
	ok(t, f.ready(h))
	f.destroy(h)
}

func TestNames(t *testing.T) {
	f := newFake(t, 21801) // this release has no names
	h := f.comm(0, 2)
	f.destroy(h)
	id, err := f.NewUniqueID()
	ok(t, err)
	if _, err := newFake(t, 22803).NewComm(driver.CommDesc{ID: id, Count: 1, Name: "a\x00b"}); !errors.Is(err, dl.ErrNUL) {
		t.Errorf("a name with a NUL: %v", err)
	}
	a, _ := f.lib.cname("same")
	if b, _ := f.lib.cname("same"); a != b {
		t.Error("a name is kept twice")
	}
}

func TestBadDescriptions(t *testing.T) {
	f := newFake(t, 22803)
	for _, d := range []driver.CommDesc{{Count: 0}, {Count: -1}, {Count: 2, Rank: 2}, {Count: 2, Rank: -1}, {Count: 1 << 40}} {
		if h, err := f.NewComm(d); h != 0 || !errors.Is(err, nccl.ErrorInvalidArgument) {
			t.Errorf("%+v: %d, %v", d, h, err)
		}
	}
	// The library itself refuses this id.
	h, err := f.NewComm(driver.CommDesc{Count: 2})
	if e, ok := errors.AsType[*driver.Error](err); h != 0 || !ok || e.Op != "new comm" || !errors.Is(err, nccl.ErrorInvalidArgument) ||
		!strings.Contains(err.Error(), "rank 0 of 2: ") || !strings.Contains(err.Error(), "(the library's last message: as the fake was told)") {
		t.Errorf("another id: %d, %v", h, err)
	}
}

func TestEnvironment(t *testing.T) {
	for name, values := range map[string][]string{"NCCL_COMM_BLOCKING": {"1"}, "NCCL_COMM_SPLIT_SHARE_RESOURCES": {"0", "1"}} {
		for _, v := range values {
			t.Run(name+"="+v, func(t *testing.T) {
				f := newFake(t, 22803)
				t.Setenv(name, v)
				if _, err := f.NewComm(driver.CommDesc{Count: 2}); err == nil || !strings.Contains(err.Error(), name+"="+v) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// TestNonblockingOps checks that a rank works if all its communicators are nonblocking, as with
// NCCL_COMM_BLOCKING=0.
func TestNonblockingOps(t *testing.T) {
	f := newFake(t, 22803)
	f.set("blocking", 1)
	f.set("polls", 3)
	h := f.comm(0, 2)
	for range 3 {
		ok(t, f.Collect(stream, h, []driver.CommOp{{Type: driver.Float32, Count: 1}}))
	}
	_, err := f.NewWindow(h, 0x1000, 64, true)
	ok(t, err)
	f.destroy(h)
}

func TestSplit(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(1, 4)
	f.set("split rank", 1)
	f.set("split count", 3)
	child, err := f.SplitComm(h, 7, -3)
	ok(t, err)
	// The rank still works during the split. With NoColor, SplitComm waits until the first split is
	// over, begins its own, and does not wait for that one.
	ok(t, f.Collect(stream, h, []driver.CommOp{{Type: driver.Int8, Count: 1}}))
	none, err := f.SplitComm(h, driver.NoColor, 0)
	if none != 0 || err != nil {
		t.Errorf("no color: %d, %v", none, err)
	}
	ok(t, f.ready(child))
	if r, n, err := f.CommRank(child); r != 0 || n != 2 || err != nil {
		t.Errorf("rank %d of %d, %v", r, n, err)
	}
	f.want("ncclCommSplit(c3, 7, -3, "+base+")", "ncclGroupStart()", "ncclAllReduce(0, 0, 1, 0, 0, c2, 0x5000)", "ncclGroupEnd()",
		"ncclCommSplit(c3, -1, 0, "+base+")",
		"ncclCommUserRank(c4)", "ncclCommCount(c4)", "ncclCommSplit(c4, 0, 0, "+ops+")", "ncclCommSplit(c4, 0, 0, "+source+")")

	// Aborting one of the two ranks does not affect the other.
	ok(t, f.AbortComm(h))
	f.destroy(h)
	ok(t, f.CommError(child))
	ok(t, f.Collect(stream, child, []driver.CommOp{{Type: driver.Int8, Count: 1}}))
	again, err := f.SplitComm(child, 0, 0)
	ok(t, err)
	ok(t, f.ready(again))
	f.destroy(child)
	f.destroy(again)

	for _, c := range []struct{ color, key int }{{-2, 0}, {1 << 31, 0}, {0, 1 << 31}, {0, -1<<31 - 1}} {
		if h, err := f.SplitComm(h, c.color, c.key); h != 0 || !errors.Is(err, nccl.ErrorInvalidArgument) {
			t.Errorf("%+v: %d, %v", c, h, err)
		}
	}
}

// TestDestroyWhileSplit checks that a rank can be destroyed after SplitComm, before CommReady was
// called for the new rank.
func TestDestroyWhileSplit(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	child, err := f.SplitComm(h, 0, 0)
	ok(t, err)
	f.destroy(h)
	ok(t, f.ready(child))
	f.destroy(child)
}

func TestSplitFails(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	f.set("failing split", int(nccl.ErrorRemote))
	child, err := f.SplitComm(h, 0, 0)
	ok(t, err)
	for range 2 {
		if err := f.ready(child); !errors.Is(err, nccl.ErrorRemote) {
			t.Errorf("%v", err)
		}
	}
	if err := f.CommError(child); !errors.Is(err, nccl.ErrorRemote) {
		t.Errorf("%v", err)
	}
	if err := f.Collect(stream, child, nil); !errors.Is(err, nccl.ErrorRemote) {
		t.Errorf("%v", err)
	}
	f.destroy(child)
	ok(t, f.CommError(h)) // the rank that was split still works
	ok(t, f.Collect(stream, h, []driver.CommOp{{Type: driver.Int8, Count: 1}}))
	ok(t, f.AbortComm(h))
	f.destroy(h)

	h = f.begin(0, 2)
	if err := f.ready(h); !errors.Is(err, nccl.ErrorRemote) {
		t.Errorf("%v", err)
	}
	f.destroy(h)
}

func TestShrink(t *testing.T) {
	for _, abort := range []bool{false, true} {
		f := newFake(t, 22803)
		h := f.comm(2, 4)
		out := []int{3, 0}
		child, err := f.ShrinkComm(h, out, abort)
		ok(t, err)
		flags, usable := 0, error(nil)
		if abort {
			flags, usable = 1, errShrunk
		}
		f.want(fmt.Sprintf("ncclCommShrink(c3, 3 0, %s, %d)", base, flags))
		if out[0] != 3 {
			t.Error("the library has sorted the caller's list")
		}
		if err := f.Collect(stream, h, []driver.CommOp{{Type: driver.Int8, Count: 1}}); !errors.Is(err, usable) {
			t.Errorf("abort %t: operations: %v", abort, err)
		}
		ok(t, f.ready(child))
		if r, n, err := f.CommRank(child); r != 1 || n != 2 || err != nil {
			t.Errorf("rank %d of %d, %v", r, n, err)
		}
		f.calls()
		f.destroy(h)
		if calls := f.calls(); abort != strings.HasPrefix(calls[0], "ncclCommAbort") {
			t.Errorf("abort %t: %v", abort, calls)
		}
		f.destroy(child)
	}
	f := newFake(t, 22803)
	h := f.comm(2, 4)
	for _, out := range [][]int{nil, {2}, {4}, {-1}, {1, 1}} {
		if _, err := f.ShrinkComm(h, out, false); !errors.Is(err, nccl.ErrorInvalidArgument) {
			t.Errorf("without %v: %v", out, err)
		}
	}
	f.want()
	// After AbortComm, DestroyComm does not wait for a split that hangs.
	f.set("stuck split", 1)
	_, err := f.SplitComm(h, 0, 0)
	ok(t, err)
	if _, err := f.ShrinkComm(h, []int{0}, true); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("while it is split: %v", err)
	}
	ok(t, f.AbortComm(h))
	f.destroy(h)
	f.destroy(h + 1)
}

// TestMissing checks that calls return ErrUnsupported if the library is not found.
func TestMissing(t *testing.T) {
	t.Setenv("PUREGPU_NCCL_LIBRARY", filepath.Join(t.TempDir(), "libnccl.so.2"))
	t.Setenv("PUREGPU_RCCL_LIBRARY", filepath.Join(t.TempDir(), "librccl.so.1"))
	for name, lib := range map[string]*Library{"NCCL": NCCL(nccl.Options{}), "RCCL": RCCL(nccl.Options{})} {
		c := New(lib, Host{Fail: func(op string, err error, what string) error { return fmt.Errorf("%s: %s: %w", op, what, err) }})
		_, id := c.NewUniqueID()
		_, comm := c.NewComm(driver.CommDesc{Count: 1})
		_, alloc := c.MemAlloc(64)
		for what, err := range map[string]error{"id": id, "comm": comm, "alloc": alloc, "free": c.MemFree(1)} {
			if !errors.Is(err, dl.ErrNotFound) || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), name+" not found") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// TestOld checks that, with releases that lack functions, calls that need the missing functions
// return errors, and other calls work.
func TestOld(t *testing.T) {
	symbol := func(t *testing.T, err error, name string) {
		t.Helper()
		if e, ok := errors.AsType[*dl.SymbolError](err); !ok || e.Symbol != name {
			t.Errorf("%v, want that %s is missing", err, name)
		}
	}
	for _, release := range []dl.Version{21003, 21602} {
		f := newFake(t, release) // with these releases a rank has one communicator, which is blocking
		h := f.begin(1, 2)
		if done, err := f.CommReady(h); !done || err != nil {
			t.Errorf("%t, %v", done, err)
		}
		f.want("ncclGetUniqueId()", "ncclCommInitRank(rank 1 of 2)", "ncclCommUserRank(c1)", "ncclCommCount(c1)")
		ok(t, f.Collect(stream, h, []driver.CommOp{{Type: driver.Int8, Count: 1}}))
		_, err := f.SplitComm(h, 0, 0)
		symbol(t, err, "ncclCommSplit")
		_, err = f.ShrinkComm(h, []int{0}, true)
		symbol(t, err, "ncclCommShrink")
		_, err = f.RegisterComm(h, 0x1000, 64)
		symbol(t, err, "ncclCommRegister")
		_, err = f.MemAlloc(64)
		symbol(t, err, "ncclMemAlloc")
		f.calls()
		if release != 21003 {
			f.destroy(h)
			f.want("ncclCommFinalize(c1)", "ncclCommDestroy(c1)")
			continue
		}
		err = f.Collect(stream, h, []driver.CommOp{{Reduction: driver.PreMulSum, Type: driver.Int8, Count: 1}})
		symbol(t, err, "ncclRedOpCreatePreMulSum")
		f.destroy(h)
		f.want("ncclCommDestroy(c1)")
	}
	f := newFake(t, 21801)
	h := f.comm(0, 2)
	_, err := f.ShrinkComm(h, []int{1}, true)
	symbol(t, err, "ncclCommShrink")
	_, err = f.NewWindow(h, 0x1000, 64, false)
	symbol(t, err, "ncclCommWindowRegister")
	_, err = f.RegisterComm(h, 0x1000, 64)
	symbol(t, err, "ncclCommRegister")
	child, err := f.SplitComm(h, 0, 0)
	ok(t, err)
	ok(t, f.ready(child))
	f.destroy(child)
	ok(t, f.AbortComm(h))
	f.destroy(h)

	// Release 2.3.5 lacks ncclSend and ncclCommGetAsyncError.
	f = newFake(t, 2305)
	h = f.comm(0, 2)
	symbol(t, f.Collect(stream, h, []driver.CommOp{{Kind: driver.Send, Type: driver.Int8, Count: 1}}), "ncclSend")
	symbol(t, f.Collect(stream, h, []driver.CommOp{{Kind: driver.AllToAll, Type: driver.Int8, Count: 1}}), "ncclSend")
	symbol(t, f.CommError(h), "ncclCommGetAsyncError")
	f.destroy(h)
}

func TestMemory(t *testing.T) {
	f := newFake(t, 22803)
	p, err := f.MemAlloc(4096)
	ok(t, err)
	ok(t, f.MemFree(p))
	f.want("ncclMemAlloc(4096)", "ncclMemFree(0x70000000)")
	f.set("ncclMemAlloc", int(nccl.ErrorUnhandledCUDA))
	if _, err := f.MemAlloc(1 << 40); !errors.Is(err, nccl.ErrorUnhandledCUDA) || !strings.Contains(err.Error(), "as the fake was told") {
		t.Errorf("%v", err)
	}
	f.set("ncclMemAlloc", 0)
	if _, err := f.MemAlloc(1 << 40); !errors.Is(err, nccl.ErrorUnhandledCUDA) || !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("%v", err)
	}
}

func TestHandles(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	f.destroy(h)
	for _, h := range []driver.Comm{0, h, h + 1, 12345678} {
		_, ready := f.CommReady(h)
		_, _, rank := f.CommRank(h)
		_, split := f.SplitComm(h, 0, 0)
		_, shrink := f.ShrinkComm(h, []int{1}, true)
		_, register := f.RegisterComm(h, 1, 1)
		_, window := f.NewWindow(h, 1, 1, true)
		for op, err := range map[string]error{
			"comm ready": ready, "comm rank": rank, "split comm": split, "shrink comm": shrink, "register comm": register, "new window": window,
			"comm error": f.CommError(h), "abort comm": f.AbortComm(h), "destroy comm": f.DestroyComm(h),
			"collect": f.Collect(stream, h, nil), "release comm memory": f.ReleaseCommMemory(h, 1),
		} {
			e, ok := errors.AsType[*driver.Error](err)
			if !ok || e.Op != op || !errors.Is(err, nccl.ErrorInvalidArgument) || !strings.Contains(err.Error(), fmt.Sprint("communicator ", int(h))) {
				t.Errorf("%s of %d: %v", op, h, err)
			}
		}
	}
	f.want("ncclCommFinalize(c2)", "ncclCommDestroy(c2)", "ncclCommFinalize(c3)", "ncclCommDestroy(c3)", "ncclCommFinalize(c1)", "ncclCommDestroy(c1)")
}

// plain are the settings of a plain rank, as the fake library prints them.
const plain = source

// plain begins to make a plain rank of two. The other rank is in a program that does not use this
// package, and takes part in no split.
func (f *fake) plain() driver.Comm {
	f.t.Helper()
	f.set("stuck split", 1)
	id, err := f.NewUniqueID()
	ok(f.t, err)
	h, err := f.NewComm(driver.CommDesc{ID: id, Rank: 1, Count: 2, Name: "mine", Plain: true})
	ok(f.t, err)
	return h
}

// TestPlain checks that a plain rank joins as other programs do, with one call and without splits,
// and that SplitComm and ShrinkComm refuse it.
func TestPlain(t *testing.T) {
	f := newFake(t, 22803)
	h := f.plain()
	if what := f.CommAwaits(h); !strings.Contains(what, "ncclCommInitRank") {
		t.Errorf("CommAwaits returns %q", what)
	}
	ok(t, f.ready(h))
	f.want("ncclGetUniqueId()", "ncclCommInitRankConfig(rank 1 of 2, "+plain+")", "ncclCommUserRank(c1)", "ncclCommCount(c1)")
	if what := f.CommAwaits(h); what != "" {
		t.Errorf("CommAwaits returns %q", what)
	}
	if r, n, err := f.CommRank(h); r != 1 || n != 2 || err != nil {
		t.Errorf("rank %d of %d, %v", r, n, err)
	}
	f.set("polls", 3) // the library returns "in progress" three times
	ok(t, f.Collect(stream, h, []driver.CommOp{{Kind: driver.AllReduce, Type: driver.Float32, Reduction: driver.PreMulSum, Src: 64, Dst: 128, Count: 4}}))
	f.set("polls", 0)
	ok(t, f.CommError(h))
	m, err := f.RegisterComm(h, 0x1000, 64)
	ok(t, err)
	w, err := f.NewWindow(h, 0x2000, 64, false)
	ok(t, err)
	ok(t, f.ReleaseCommMemory(h, m))
	ok(t, f.ReleaseCommMemory(h, w))
	f.calls()
	_, split := f.SplitComm(h, 0, 0)
	_, shrink := f.ShrinkComm(h, []int{0}, false)
	_, abort := f.ShrinkComm(h, []int{0}, true)
	for what, err := range map[string]error{"split": split, "shrink": shrink, "shrink with abort": abort, "check": f.CheckShrink(h)} {
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "CommDesc.Plain") || !strings.Contains(err.Error(), "ncclCommSplit") {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.want()
	ok(t, f.CommError(h))
	f.destroy(h)
	f.want("ncclCommFinalize(c1)", "ncclCommDestroy(c1)")
}

// TestForeignSplit checks that CommAwaits names the split if another rank has joined but does not
// split, like a rank of another program.
func TestForeignSplit(t *testing.T) {
	f := newFake(t, 22803)
	f.set("stuck split", 1)
	h := f.begin(0, 2)
	for !strings.Contains(f.CommAwaits(h), "ncclCommSplit") {
		if done, err := f.CommReady(h); done || err != nil {
			t.Fatalf("ready though the other rank does not split: %t, %v", done, err)
		}
	}
	if what := f.CommAwaits(h); !strings.Contains(what, "Plain") {
		t.Errorf("CommAwaits returns %q", what)
	}
	ok(t, f.AbortComm(h))
	f.destroy(h)
	if what := f.CommAwaits(h); what != "" {
		t.Errorf("for a destroyed communicator CommAwaits returns %q", what)
	}
}

// TestPlainEnds checks that AbortComm works on plain ranks: while the rank is being made, while a
// group waits in the library, and while the rank is idle.
func TestPlainEnds(t *testing.T) {
	f := newFake(t, 22803)
	f.set("stuck init", 1)
	h := f.plain()
	ok(t, f.AbortComm(h))
	if _, err := f.CommReady(h); !errors.Is(err, errAborted) {
		t.Errorf("ready: %v", err)
	}
	f.destroy(h)
	f.set("stuck init", 0)

	h = f.plain()
	ok(t, f.ready(h))
	f.set("stuck group", 1)
	aborts := f.later(func() error { return f.AbortComm(h) })
	err := within(t, "Collect", 5*time.Second, func() error { return f.Collect(stream, h, reduce) })
	if !errors.Is(err, errAborted) {
		t.Errorf("collect: %v", err)
	}
	aborts.Wait()
	f.destroy(h)
	f.set("stuck group", 0)

	h = f.plain()
	ok(t, f.ready(h))
	ok(t, f.AbortComm(h))
	ok(t, f.AbortComm(h))
	f.destroy(h)
}

// TestPlainOld checks that a plain rank can be made with a release without ncclCommSplit.
func TestPlainOld(t *testing.T) {
	f := newFake(t, 21403)
	h := f.plain()
	ok(t, f.ready(h))
	f.want("ncclGetUniqueId()", "ncclCommInitRank(rank 1 of 2)", "ncclCommUserRank(c1)", "ncclCommCount(c1)")
	f.destroy(h)
}
