package simdriver

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Values = (*device)(nil)

// WriteValue writes a value in stream order.
func (v *device) WriteValue(h driver.Stream, p driver.Ptr, value uint64) error {
	return v.value(codeWriteValue, h, p, value)
}

// WaitValue makes the stream wait until the number at p has reached value.
func (v *device) WaitValue(h driver.Stream, p driver.Ptr, value uint64) error {
	return v.value(codeWaitValue, h, p, value)
}

func (v *device) value(c code, h driver.Stream, p driver.Ptr, value uint64) error {
	later, err := v.submit(c)
	if err != nil {
		return err
	}
	if !v.d.caps.Values {
		return v.cannot(c)
	}
	if p%8 != 0 {
		return failf(c, "a value at %#x: %w: the address is not a multiple of 8", uint64(p), ErrInvalidValue)
	}
	switch a := v.d.find(p); {
	case a == nil: // unknown memory is an error when the operation executes
	case a.kind == driver.ManagedMem:
		return failf(c, "a value at %#x: %w: it is managed memory", uint64(p), ErrInvalidValue)
	case a.segment != nil || a.origin != nil && a.origin.segment != nil: // cuStreamWriteValue64 refuses it too
		return failf(c, "a value at %#x: %w: it is memory of a pool", uint64(p), ErrInvalidValue)
	}
	s, err := v.working(c, h)
	if err != nil {
		return err
	}
	s.mu.Lock()
	o := s.slot(c)
	o.fail, o.dst, o.to, o.n = later, p, v, value
	s.publish()
	s.mu.Unlock()
	return nil
}

// word returns the word at p, for the device to access.
func (v *device) word(p driver.Ptr, writes bool) (*atomic.Uint64, *AccessError) {
	b, err := v.access(p, 8, writes)
	if err != nil {
		return nil, err
	}
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b))), nil
}

// reached reports whether the value that o waits for has come. It also returns true if the device
// cannot read the memory: executing o then returns the error.
func (o *operation) reached() bool {
	w, err := o.to.word(o.dst, false)
	return err != nil || int64(w.Load()-o.n) >= 0
}

// The first and the longest pause before a value is read again. The host may write the value
// without any notice to the stream.
const (
	firstPause   = 20 * time.Microsecond
	longestPause = time.Millisecond
)

// awaitValue waits until the value that o waits for may have come, or the stream is poked. o is the
// oldest operation.
func (s *stream) awaitValue(o *operation) {
	for n := 0; s.pause == 0 && n < spins; n++ { // the value often comes soon, so yield before sleeping
		runtime.Gosched()
		if o.ready() {
			return
		}
	}
	s.pause = min(max(2*s.pause, firstPause), longestPause)
	if s.timer == nil {
		s.timer = time.NewTimer(s.pause)
	} else {
		s.timer.Reset(s.pause)
	}
	select {
	case <-s.timer.C:
	case <-s.wake:
		s.timer.Stop()
	}
}
