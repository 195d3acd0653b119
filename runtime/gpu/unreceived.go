package gpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A failedStreams notes with which errors a device's streams have failed. Close returns those that the program has not received, for a
// stream for which nobody waits tells nobody.
type failedStreams struct {
	mu   sync.Mutex // a leaf; protects the following fields
	errs []*SubmitError
	more bool // that were not noted, as there were mostFailed
}

// mostFailed is for how many streams errors are kept that the program has not received.
const mostFailed = 256

// note notes a stream's error.
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

// unreceived removes the errors that the program has received.
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

// err returns an error for the streams whose errors the program has not received, or nil. Those of a loss are left out if it is told
// anyway.
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

// noteFailure notes that a stream has failed with err, the error of one of its operations, unless the program has brought that about: it
// has failed what the operation waited for, or closed the device, the queue or its lane.
func (s *record) noteFailure(stream *sema.Semaphore, err error) {
	e, ok := err.(*SubmitError)
	if !ok || e.received == nil || !stream.Tag.CompareAndSwap(engine.IsStream, engine.IsStreamFailed) {
		return
	}
	for _, w := range s.Waits {
		if _, ofWork := w.Semaphore.Failed().(*SubmitError); w.Semaphore.Failed() != nil && !ofWork {
			return
		}
	}
	d, closes := s.q.dev, errors.Is(err, ErrClosed) || errors.Is(err, ErrAborted)
	if closes && (s.Timeline.IsClosing() || s.Timeline.Lane != nil) {
		return
	}
	d.failedStreams.note(e)
}

// received notes that the program receives an error, if it is one of work that has failed. It returns the error.
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

// receipt returns what says whether the program has received the error of an operation: for all that fail with a loss it is one.
func (d *Device) receipt(err error) *atomic.Bool {
	if errors.Is(err, driver.ErrLost) {
		return &d.lossReceived
	}
	return new(atomic.Bool)
}
