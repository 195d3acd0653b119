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
	// askPatience is how long the first error of a lost device waits for calls of NVML, which may hang
	// with the GPU.
	askPatience = 300 * time.Millisecond
	// startPatience is how long Close waits for NVML to start and to end the recording.
	startPatience = 5 * time.Second
)

// A watch has NVML record the XID errors of an open device. NVML keeps them until they are read, so
// no goroutine waits for them.
type watch struct {
	ready   chan struct{} // closed when NVML has started, or cannot; nil before start
	explain sync.Once
	suffix  error // what explain found, or nil

	// mu is held during calls of NVML, so only goroutines lock it that nobody waits for without a limit.
	mu      sync.Mutex
	session health.Session // protected by mu; nil without NVML, and after stop
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
		w.session = session
	}()
}

// stop ends the recording once NVML has started. It waits for that no longer than startPatience.
func (w *watch) stop() {
	if w.ready == nil {
		return
	}
	within(startPatience, func() (err error) {
		<-w.ready
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.session != nil {
			err, w.session = w.session.Close(), nil
		}
		return err // it concerns NVML alone, and nobody can do anything about it
	})
}

// of adds the last XID error to the error that a device is lost with. The first call for a device may
// wait for xidPatience, and if NVML hangs for askPatience. Later ones do not wait.
func (w *watch) of(err error) error {
	w.explain.Do(func() { w.suffix = within(askPatience, w.last) })
	if w.suffix == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, w.suffix)
}

// last reads the XID errors that were recorded, and returns what to say of the last one, or nil if
// there is none. Those that are there at once may be of any time since the device was opened, so it
// waits for another one.
func (w *watch) last() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session == nil {
		return nil
	}
	end := time.Now().Add(askPatience / 2)
	old := w.drain(0, end)
	if xid := w.drain(xidPatience, end); xid != 0 {
		return fmt.Errorf("the last that the GPU reported is %w", xid)
	} else if old != 0 {
		return fmt.Errorf("the last that the GPU reported, at a time that is not known, is %w", old)
	}
	return nil
}

// drain waits for an XID error, reads until none is left or end has come, and returns the last one, or
// 0 if there is none. The caller holds w.mu.
func (w *watch) drain(patience time.Duration, end time.Time) (last health.XID) {
	for {
		// Wait passes over errors of other instances of MIG only while it has time.
		xid, ok, err := w.session.Wait(max(patience, time.Millisecond))
		if !ok || err != nil {
			return last
		}
		last, patience = xid, 0
		if time.Now().After(end) {
			return last
		}
	}
}

// within calls f on a goroutine and returns what f does, or nil when the limit is over. A goroutine
// that is late is left behind.
func within(limit time.Duration, f func() error) error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C:
		return nil
	}
}
