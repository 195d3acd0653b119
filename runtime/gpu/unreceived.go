package gpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
)

// A failedStreams records the errors with which a device's Streams have failed. Device.Close
// returns the first error that the program has not received. For example, a program that does not
// wait for a Stream may not receive the Stream's error.
type failedStreams struct {
	mu   sync.Mutex // protects the following fields; no other lock is taken while it is held
	errs []*SubmitError
	more bool // an error was not recorded, because errs was full
}

// mostFailed is the largest length of failedStreams.errs.
const mostFailed = 256

// note records a Stream's error. If errs is full, it first removes the errors that the program has
// received.
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

// err returns an error for the Streams whose errors the program has not received, or nil. If
// lossTold is true, Close returns the loss of the device, so the result leaves out the errors of
// Streams that the loss has failed.
func (f *failedStreams) err(d *Device, lossTold bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	var first error
	f.errs = unreceived(f.errs)
	for _, e := range f.errs {
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

// noteFailure records that a Stream has failed with err, the error of one of its operations. It
// records nothing if the program caused the failure. The program causes a failure if it fails a
// semaphore that the operation waits for, closes the device or the queue, or closes or aborts the
// communicator of a collective.
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

// received notes that the program receives err: it sets SubmitError.received in the first
// SubmitError in err, and in the SubmitErrors that the first one wraps. It returns err.
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

// receipt returns SubmitError.received for a new SubmitError with the error err. All SubmitErrors
// of d that say that a device is lost share d.lossReceived.
func (d *Device) receipt(err error) *atomic.Bool {
	if errors.Is(err, driver.ErrLost) {
		return &d.lossReceived
	}
	return new(atomic.Bool)
}
