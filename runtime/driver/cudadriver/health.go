package cudadriver

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/health"
	"github.com/puregpu/puregpu/runtime/health/nvmlhealth"
)

// xidPatience is how long the first error of a lost device waits for NVML to tell the XID error.
// On an H200 the XID error comes half a millisecond before CUDA's error.
const xidPatience = 20 * time.Millisecond

// A watch knows the XID errors of an open device, where there is NVML.
type watch struct {
	watcher atomic.Pointer[health.Watcher]
	closed  atomic.Bool
	explain sync.Once
	suffix  error // what explain found, or nil
}

// start begins to watch on a goroutine of its own, because NVML takes some ten milliseconds to
// start. Without NVML nothing is watched.
func (w *watch) start(lib func() (*nvml.Library, error), info driver.Info) {
	go func() {
		lib, err := lib()
		if err != nil {
			return
		}
		watcher, err := health.Watch(nvmlhealth.New(lib), []driver.Info{info}, health.Options{Interval: -1})
		if err != nil {
			return
		}
		w.watcher.Store(watcher)
		if w.closed.Load() {
			w.stop()
		}
	}()
}

// stop ends the watching. It does not wait for a call of NVML that is under way.
func (w *watch) stop() {
	w.closed.Store(true)
	if watcher := w.watcher.Swap(nil); watcher != nil {
		go watcher.Close()
	}
}

// of adds the last XID error to the error that a device is lost with. The first call for a device may
// wait for xidPatience, later ones do not wait.
func (w *watch) of(err error) error {
	w.explain.Do(func() {
		watcher := w.watcher.Load()
		if watcher == nil {
			return
		}
		xid, at := watcher.LastXID(0, xidPatience)
		age := time.Since(at).Round(time.Second)
		switch {
		case xid == 0:
		case age < 2*time.Second:
			w.suffix = fmt.Errorf("the GPU reported %w", xid)
		default:
			w.suffix = fmt.Errorf("%v before, the GPU reported %w", age, xid)
		}
	})
	if w.suffix == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, w.suffix)
}
