package cudadriver

import (
	"fmt"
	"sync"
	"time"

	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/health"
	"github.com/puregpu/puregpu/runtime/health/nvmlhealth"
)

const (
	// xidPatience is how long the first error of a lost device waits for NVML to tell the XID error.
	// On an H200 the XID error comes half a millisecond before CUDA's error.
	xidPatience = 20 * time.Millisecond
	// startPatience is how long Close waits for NVML to start.
	startPatience = 5 * time.Second
	// mostXIDs limits how many XID errors are read when a device is lost.
	mostXIDs = 100
)

// A watch has NVML record the XID errors of an open device. NVML keeps them until they are read, so
// no goroutine waits for them.
type watch struct {
	ready   chan struct{} // closed when NVML has started, or cannot; nil before start
	explain sync.Once
	suffix  error // what explain found, or nil

	mu      sync.Mutex     // protects the following fields
	session health.Session // nil without NVML, and after stop
	stopped bool
}

// start begins to record, on a goroutine of its own, because NVML takes some ten milliseconds to
// start. Without NVML nothing is recorded.
func (w *watch) start(lib func() (*nvml.Library, error), info driver.Info) {
	w.ready = make(chan struct{})
	go func() {
		defer close(w.ready)
		lib, err := lib()
		if err != nil {
			return
		}
		session, err := nvmlhealth.New(lib).Watch(info)
		if err != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.stopped {
			session.Close()
			return
		}
		w.session = session
	}()
}

// stop ends the recording. It waits until NVML has started, but not longer than startPatience.
func (w *watch) stop() {
	if w.ready == nil {
		return
	}
	timer := time.NewTimer(startPatience)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.session != nil {
		w.session.Close() // an error concerns NVML alone, and nobody can do anything about it
		w.session = nil
	}
}

// of adds the last XID error to the error that a device is lost with. The first call for a device may
// wait for xidPatience, later ones do not wait.
func (w *watch) of(err error) error {
	w.explain.Do(func() {
		if xid := w.last(); xid != 0 {
			w.suffix = fmt.Errorf("the last that the GPU reported is %w", xid)
		}
	})
	if w.suffix == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, w.suffix)
}

// last reads the XID errors that were recorded, and returns the last one, or 0 if there is none.
func (w *watch) last() (last health.XID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session == nil {
		return 0
	}
	patience := xidPatience
	for range mostXIDs {
		xid, ok, err := w.session.Wait(patience)
		if !ok || err != nil {
			break
		}
		last, patience = xid, 0
	}
	return last
}
