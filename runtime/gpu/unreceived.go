package gpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
)

// A failedStreams records the errors with which a device's streams have failed. Close returns the
// first error that the program has not received. For example, the program does not receive the
// error if it does not wait for the stream.
type failedStreams struct {
	mu   sync.Mutex // protects the following fields; no other lock is taken while it is held
	errs []*SubmitError
	more bool // an error was not recorded, because errs was full
}

// mostFailed is the largest number of errors that are kept for Close.
const mostFailed = 256

// note records a stream's error.
func (f *failedStreams) note(err *SubmitError) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) == mostFailed {
		f.errs = unreceived(f.errs)
	}
	if len(f.errs) == mostFailed {
		f.more = true
		return
	}
	f.errs = append(f.errs, err)
}

// unreceived returns errs without the errors that the program has received. It reuses the array of
// errs.
func unreceived(errs []*SubmitError) []*SubmitError {
	left := errs[:0]
	for _, e := range errs {
		if !e.received.Load() {
			left = append(left, e)
		}
	}
	clear(errs[len(left):])
	return left
}

// err returns an error for the streams whose errors the program has not received, or nil. If
// lossTold is set, it leaves out errors of a loss, because Close returns the loss.
func (f *failedStreams) err(d *Device, lossTold bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	var first error
	for _, e := range unreceived(f.errs) {
		if lossTold && errors.Is(e, driver.ErrLost) {
			continue
		}
		if n++; first == nil {
			first = e
		}
	}
	if first == nil {
		return nil
	}
	atLeast := ""
	if f.more {
		atLeast = "at least "
	}
	return fmt.Errorf("gpu: device %s: streams whose error nobody received (%s%d): the first: %w", d.native.Info.Name, atLeast, n, first)
}

// noteFailure records that a stream has failed with err, the error of one of its operations. It
// records nothing if the program caused the failure. The program causes a failure if it fails a
// semaphore that the operation waits for, closes the device or the queue, or closes or aborts the
// communicator.
func (s *record) noteFailure(err error) {
	e, ok := err.(*SubmitError)
	if !ok || e.received == nil {
		return
	}
	for _, w := range s.Waits {
		if _, ofWork := w.Semaphore.Failed().(*SubmitError); w.Semaphore.Failed() != nil && !ofWork {
			return
		}
	}
	d, closes := s.q.dev, errors.Is(err, ErrClosed) || errors.Is(err, comm.ErrAborted)
	if closes && (s.Timeline.IsClosing() || s.Timeline.Lane != nil) {
		return
	}
	d.failedStreams.note(e)
}

// received notes that the program receives err. It marks all SubmitErrors in err, and returns err.
func received(err error) error {
	for e := err; e != nil; {
		s, ok := e.(*SubmitError)
		if !ok && !errors.As(e, &s) {
			return err
		}
		if s.received != nil {
			s.received.Store(true)
		}
		e = s.Err
	}
	return err
}

// receipt returns a flag for SubmitError.received, which says whether the program has received the
// error. All operations that fail because of a loss share one flag.
func (d *Device) receipt(err error) *atomic.Bool {
	if errors.Is(err, driver.ErrLost) {
		return &d.lossReceived
	}
	return new(atomic.Bool)
}
