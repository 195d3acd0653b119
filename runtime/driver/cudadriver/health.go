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
	// xidPatience is how long the first error of a lost device waits at most for NVML to report the
	// XID error. On an H200 NVML reports the XID error half a millisecond before CUDA returns an
	// error.
	xidPatience = 20 * time.Millisecond
	// askPatience is how long the first error of a lost device waits at most for calls of NVML,
	// which may hang if the GPU hangs.
	askPatience = 300 * time.Millisecond
	// startPatience is how long Close waits at most for NVML to start and to end the recording.
	startPatience = 5 * time.Second
)

// A watch makes NVML record the XID errors of an open device. NVML keeps the errors until they are
// read, so no goroutine waits for them.
type watch struct {
	ready   chan struct{} // closed when NVML has started or failed; nil until start is called
	explain sync.Once
	suffix  error // the last XID error, or nil; set in explain.Do

	// mu is held during calls of NVML, which may hang. So mu is locked only by functions passed to
	// within, and by the goroutine of start.
	mu      sync.Mutex
	session health.Session // protected by mu; nil until NVML has started, and after stop
}

// start begins the recording on a new goroutine, because NVML takes about ten milliseconds to
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

// stop ends the recording once NVML has started. It waits for startPatience at most.
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
		return err // the error concerns NVML only, and the caller cannot act on it
	})
}

// of adds the last XID error to the error of a lost device. The first call for a device may wait
// for xidPatience, or for askPatience if NVML hangs. Later calls do not wait.
func (w *watch) of(err error) error {
	w.explain.Do(func() { w.suffix = within(askPatience, w.last) })
	if w.suffix == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, w.suffix)
}

// last reads the recorded XID errors. It returns an error for the last of them, or nil if there is
// none. Errors that NVML has already recorded may be older than the loss, so last also waits for a
// new error.
func (w *watch) last() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session == nil {
		return nil
	}
	end := time.Now().Add(askPatience / 2)
	old := w.drain(0, end)
	if xid := w.drain(xidPatience, end); xid != 0 {
		return fmt.Errorf("the last XID error of the GPU is %w", xid)
	} else if old != 0 {
		return fmt.Errorf("the last XID error of the GPU, at an unknown time, is %w", old)
	}
	return nil
}

// drain waits for an XID error, at most for patience or a millisecond, whichever is longer. It then
// reads errors until none is left, or until end. drain returns the last error, or 0. The caller
// holds w.mu.
func (w *watch) drain(patience time.Duration, end time.Time) (last health.XID) {
	for {
		// With a timeout of 0, Wait would return at the first error of another MIG instance, even
		// if there are more errors.
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

// within calls f on a new goroutine and returns its result. If f takes longer than the limit,
// within returns nil and the goroutine runs on.
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
