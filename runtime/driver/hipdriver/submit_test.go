//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
)

// TestSubmittingSetsDevice tests an old release, which needs the device to be current, and a newer
// release for which Open finds the same need. Several threads submit at once, without a chosen
// device or with another device. Every call runs with the right device, and each thread has its own
// device again afterwards.
func TestSubmittingSetsDevice(t *testing.T) {
	for _, release := range []dl.Version{hip52, hip71} {
		for mine := range 2 {
			f := newFake(t, release)
			if release >= fromStream {
				f.Set("idle", 1) // copies do nothing, so Open concludes that the device must be current
			}
			drv := f.driver(WithPools())
			open, err := drv.Open(mine)
			if err != nil {
				t.Fatal(err)
			}
			d := open.(*device)
			if !d.sets {
				t.Fatal("the library wants the device to be current, but submitting does not set it")
			}
			f.Set("idle", 0)
			f.Set("stream's device", mine)
			f.Calls()
			var threads sync.WaitGroup
			for i := range 6 {
				threads.Go(func() {
					runtime.LockOSThread() // the thread ends with the goroutine
					theirs := 0
					if i%2 == 1 {
						theirs = 1 - mine
						if err := d.lib.SetDevice(int32(theirs)); err != nil {
							t.Error(err)
						}
					}
					calls := all(d)
					for _, what := range drivertest.Submitting {
						if err := calls[what](); err != nil && !errors.Is(err, driver.ErrUnsupported) {
							t.Errorf("%s: %v", what, err)
						}
						if f.current() != theirs || f.last() != 0 {
							t.Errorf("%s: the thread has device %d, and had %d; its last error is %d", what, f.current(), theirs, f.last())
						}
					}
				})
			}
			threads.Wait()
			for _, c := range f.Calls() {
				if call, on, ok := strings.Cut(c, " on "); ok && on != string(rune('0'+mine)) {
					t.Errorf("device %d: %s is called on %s", mine, call, on)
				}
			}
			// A failing call restores the thread's device too. So does a call for which the device
			// cannot be set.
			runtime.LockOSThread()
			before := f.current()
			for name, code := range map[string]hip.Result{"hipEventRecord": hip.ErrorInvalidHandle, "hipGetDevice": hip.ErrorUnknown, "hipSetDevice": hip.ErrorUnknown} {
				f.Set(name, int(code))
				if err := d.Record(event0, stream0); !errors.Is(err, code) || errors.Is(err, driver.ErrLost) {
					t.Errorf("%s fails: %v", name, err)
				}
				f.Set(name, 0)
				if f.current() != before || f.last() != 0 {
					t.Errorf("%s fails: the thread has device %d, and had %d; its last error is %d", name, f.current(), before, f.last())
				}
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			runtime.UnlockOSThread()
		}
	}
}
