//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
)

// TestSubmittingSetsContext tests a driver that needs a context for every call. Several threads
// submit at once. Some have no context, the others have the context of another device. After each
// call the thread must have the same context as before.
func TestSubmittingSetsContext(t *testing.T) {
	f := newFake(t, 13000)
	f.Set("bound", 1)
	d := f.device()
	if !d.sets {
		t.Fatal("the driver wants a context, but submitting sets none")
	}
	other, err := f.driver().Open(1)
	ok(t, err)
	defer other.Close()
	var threads sync.WaitGroup
	for i := range 6 {
		calls := all(d)
		threads.Go(func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			var theirs cuda.Context
			if i%2 == 1 {
				theirs = other.(*device).ctx
				if err := other.Bind(); err != nil {
					t.Error(err)
				}
			}
			for _, what := range append([]string{"write value", "wait value"}, drivertest.Submitting...) {
				if err := calls[what](); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if now, err := d.lib.CtxGetCurrent(); now != theirs || err != nil {
					t.Errorf("%s: the thread has context %#x, and had %#x (%v)", what, now, theirs, err)
				}
			}
		})
	}
	threads.Wait()
	// Record returns the error if the call itself fails, or if the context cannot be set or
	// restored.
	for name, code := range map[string]cuda.Result{"cuEventRecord": cuda.ErrorInvalidHandle, "cuCtxPushCurrent_v2": cuda.ErrorUnknown, "cuCtxPopCurrent_v2": cuda.ErrorUnknown} {
		f.Set(name, int(code))
		if err := d.Record(event0, stream0); !errors.Is(err, code) || errors.Is(err, driver.ErrLost) {
			t.Errorf("%s fails: %v", name, err)
		}
		f.Set(name, 0)
	}
}
