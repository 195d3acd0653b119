package cudadriver

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestGPUCommSuspend suspends a communicator of one rank and resumes it. If NCCL cannot suspend,
// the test checks that the error is ErrUnsupported and that the communicator still works.
func TestGPUCommSuspend(t *testing.T) {
	d := openGPU(t)
	s := newStream(t, d)
	src, dst := alloc(t, d, driver.CommMem, 64), alloc(t, d, driver.CommMem, 64)
	works := func(c driver.Comm) {
		t.Helper()
		ok(t, d.Collect(s, c, []driver.CommOp{{Kind: driver.AllReduce, Type: driver.Float32, Src: src.Ptr, Dst: dst.Ptr, Count: 16}}))
		finish(t, d, s)
	}
	for _, plain := range []bool{false, true} {
		c, err := d.NewComm(driver.CommDesc{ID: newID(t, d), Count: 1, Plain: plain})
		ok(t, err)
		ready(t, d, c)
		works(c)
		stats, err := d.CommStats(c)
		switch {
		case err == nil:
			t.Logf("plain %v: it has %+v", plain, stats)
		case !errors.Is(err, driver.ErrUnsupported) || errors.Is(err, dl.ErrSymbol) && !strings.Contains(err.Error(), "ncclCommMemStats"):
			t.Errorf("plain %v: statistics: %v", plain, err)
		default:
			t.Logf("plain %v: %v", plain, err)
		}
		switch err := d.SuspendComm(c); {
		case err == nil && !plain:
			t.Error("a communicator that shares its memory was suspended")
		case err == nil:
			if stats, err := d.CommStats(c); !stats.Suspended || err != nil {
				t.Errorf("suspended it has %+v, %v", stats, err)
			}
			if err := d.Collect(s, c, nil); err == nil {
				t.Error("a suspended communicator takes operations")
			}
			ok(t, d.ResumeComm(c))
			works(c)
			ok(t, d.SuspendComm(c)) // the test destroys a suspended communicator too
		case !errors.Is(err, driver.ErrUnsupported) || errors.Is(err, dl.ErrSymbol) && !strings.Contains(err.Error(), "ncclCommSuspend"):
			t.Errorf("plain %v: suspend: %v", plain, err)
		default:
			t.Logf("plain %v: %v", plain, err)
			works(c)
		}
		ok(t, d.DestroyComm(c))
	}
}
