//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// withNCCL makes the drivers of the test load a fake NCCL of a release.
func withNCCL(t *testing.T, release int) {
	t.Helper()
	lib := testlib.NCCL(t, release, false)
	lib.Defines = append(lib.Defines, "DEVICE=1")
	t.Setenv("PUREGPU_NCCL_LIBRARY", lib.Build(t))
}

// TestComms uses a communicator from NewComm to DestroyComm, and checks the contexts of threads.
// Package ncclcomm tests the details.
func TestComms(t *testing.T) {
	f := newFake(t, 13000)
	withNCCL(t, 22803)
	d := f.device()
	if !d.Caps().Comms {
		t.Errorf("%+v", d.Caps())
	}
	stack := f.stack()
	id, err := d.NewUniqueID()
	ok(t, err)
	c, err := d.NewComm(driver.CommDesc{ID: id, Rank: 1, Count: 2, Name: "test"})
	ok(t, err)
	ready(t, d, c)
	if r, n, err := d.CommRank(c); r != 1 || n != 2 || err != nil {
		t.Errorf("rank %d of %d, %v", r, n, err)
	}
	ok(t, d.Collect(stream0, c, []driver.CommOp{{Kind: driver.AllReduce, Type: driver.Float32, Src: 64, Dst: 128, Count: 4}}))
	m, err := d.Alloc(driver.CommMem, 4096)
	ok(t, err)
	if m.Kind != driver.CommMem || m.Ptr == 0 || m.Host != nil || m.Size != 4096 {
		t.Errorf("memory for communicators: %+v", m)
	}
	registered, err := d.RegisterComm(c, m.Ptr, m.Size)
	ok(t, err)
	ok(t, d.ReleaseCommMemory(c, registered))
	child, err := d.SplitComm(c, 0, 0)
	ok(t, err)
	ready(t, d, child)
	ok(t, d.AbortComm(c))
	ok(t, d.DestroyComm(c))
	ok(t, d.DestroyComm(child))
	ok(t, d.Free(m))

	err = d.Collect(stream0, child, nil)
	e, isError := err.(*driver.Error)
	if !isError || e.Op != "collect" || !errors.Is(err, nccl.ErrorInvalidArgument) || !strings.HasPrefix(err.Error(), "cuda: collect: device 0 (Fake 0): communicator 2 in stream 0x5000: ") {
		t.Errorf("%v", err)
	}
	if f.stack() != stack {
		t.Errorf("contexts %#x, want %#x", f.stack(), stack)
	}
	// AbortComm and DestroyComm call the library on other threads, which have the context only
	// during the call.
	calls := f.Calls()
	if n := len(slices.DeleteFunc(calls, func(c string) bool { return c != "cuCtxSetCurrent(0xc0)" })); n < 6 {
		t.Errorf("the context is set %d times: %v", n, calls)
	}
}
