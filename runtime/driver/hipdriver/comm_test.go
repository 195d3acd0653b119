//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestComms takes a communicator on the second device through all its calls. Package ncclcomm tests
// the details.
func TestComms(t *testing.T) {
	f := newFake(t, hip64)
	lib := testlib.NCCL(t, 22105, true)
	lib.Defines = append(lib.Defines, "DEVICE=1")
	t.Setenv("PUREGPU_RCCL_LIBRARY", lib.Build(t))
	first := f.device()
	open, err := New(first.lib)
	if err != nil {
		t.Fatal(err)
	}
	v, err := open.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	d := v.(*device)
	check := func(err error) {
		t.Helper()
		if err != nil || f.last() != 0 || f.current() != 1 {
			t.Errorf("%v; the thread's last error is %d, and its device %d", err, f.last(), f.current())
		}
	}
	check(d.Bind())
	if !d.Caps().Comms {
		t.Errorf("%+v", d.Caps())
	}
	id, err := d.NewUniqueID()
	check(err)
	c, err := d.NewComm(driver.CommDesc{ID: id, Rank: 0, Count: 2})
	check(err)
	for done := false; !done; time.Sleep(100 * time.Microsecond) {
		if done, err = d.CommReady(c); err != nil {
			t.Fatal(err)
		}
	}
	check(d.Collect(stream0, c, []driver.CommOp{{Kind: driver.AllToAll, Type: driver.BFloat16, Src: 64, Dst: 128, Count: 4}}))
	m, err := d.Alloc(driver.CommMem, 4096)
	check(err)
	check(d.Free(m))
	_, err = d.ShrinkComm(c, []int{1}, false)
	if e, ok := errors.AsType[*dl.SymbolError](err); !ok || e.Symbol != "ncclCommShrink" || !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("shrink: %v", err)
	}
	check(d.AbortComm(c))
	check(d.DestroyComm(c))
	err = d.CommError(c)
	if e, ok := err.(*driver.Error); !ok || e.Op != "comm error" || !errors.Is(err, nccl.ErrorInvalidArgument) || !strings.HasPrefix(err.Error(), "hip: comm error: device 1 ") {
		t.Errorf("%v", err)
	}
	check(nil)
}
