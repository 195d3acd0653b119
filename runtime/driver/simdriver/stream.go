package simdriver

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// errTooMany is the error when a table is full.
var errTooMany = errors.New("too many objects: destroy unused ones")

// A stream executes operations in order.
type stream struct {
	queue // its mu is the stream's mu too
	calls calls
	dev   *device
	id    driver.Stream

	priority int
	done     atomic.Uint64 // number of operations executed; does not grow while the device is lost or closed
	stalled  atomic.Bool
	stopped  atomic.Bool // the stream was destroyed, or its process was killed
	started  bool        // the goroutine has been started; protected by mu

	captured atomic.Pointer[capture] // the capture that gets the operations, or nil; changed under mu
	launch   atomic.Uint64           // launch number for graphs launched in the stream, or 0

	wake   chan struct{} // makes the goroutine check again whether it may continue
	ended  chan struct{} // closed when the goroutine has ended
	asleep atomic.Bool   // the goroutine waits for operations

	// The next fields are only for the goroutine that executes the stream.
	due      time.Time // when the latency of the oldest operation ends; zero before the latency begins
	timer    *time.Timer
	pause    time.Duration // last pause before an awaited value was read again; 0 before the first pause
	enlisted uint64        // head+1 when the stream last became a waiter

	executing atomic.Bool  // the goroutine executes the oldest operation
	outside   atomic.Int32 // number of goroutines in code of the program: a kernel or Config.OnExecute
	question  atomic.Pointer[question]

	seen []mark // marks in other streams that the stream's next operation comes after; protected by mu

	waitersMu sync.Mutex
	waiters   []waiter
	waiting   atomic.Int32 // number of waiters
}

// A waiter is a stream that waits until another stream has executed seq operations.
type waiter struct {
	stream *stream
	seq    uint64
}

// A mark is the position behind the first seq operations of a stream.
type mark struct {
	stream *stream
	seq    uint64
}

// note records that the stream's next operations come after the frees among the first seq
// operations of src. The caller holds mu.
func (s *stream) note(src *stream, seq uint64) {
	for i := range s.seen {
		if m := &s.seen[i]; m.stream == src {
			m.seq = max(m.seq, seq)
			return
		}
	}
	s.seen = slices.DeleteFunc(s.seen, func(m mark) bool { return m.stream.stopped.Load() })
	s.seen = append(s.seen, mark{src, seq})
}

// after reports whether s.note has recorded that the stream's next operations come after the frees
// among the first seq operations of src. The caller holds mu.
func (s *stream) after(src *stream, seq uint64) bool {
	for _, m := range s.seen {
		if m.stream == src {
			return m.seq >= seq
		}
	}
	return false
}

// NewStream makes a stream. Its goroutine starts with its first operation.
func (v *device) NewStream() (driver.Stream, error) { return v.newStream(0) }

// newStream makes a stream with a priority.
func (v *device) newStream(priority int) (driver.Stream, error) {
	if err := v.enter(codeNewStream, true); err != nil {
		return 0, err
	}
	s := &stream{dev: v, priority: priority, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	d := v.d
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.streams.add(s)
	if h == 0 {
		return 0, fail(codeNewStream, errTooMany)
	}
	s.id = driver.Stream(h)
	d.order = append(d.order, s)
	return s.id, nil
}

// DestroyStream destroys a stream. It fails if the stream has pending work that may still execute.
func (v *device) DestroyStream(h driver.Stream) error {
	err, ok := v.end(codeDestroyStream)
	if !ok {
		return err
	}
	s, bad := v.stream(codeDestroyStream, h)
	if bad != nil {
		return bad
	}
	if n := s.pending(); n > 0 && err == nil && !s.doomed() {
		return failf(codeDestroyStream, "stream %#x of device %d: %d operations are pending: %w", uint64(h), v.index, n, ErrBusy)
	}
	if s.awaitsOthers() {
		v.stuck.Store(true)
	}
	if v.d.streams.remove(uintptr(h)) != nil {
		if v.d.dropStream(s) {
			s.awaitEnd(err == nil)
		}
	}
	if p := v.down.Load(); p != nil && p.lost {
		v.awaitStop()
	}
	return err
}

// awaitStop waits until no stream of a lost device executes an operation, except streams that were
// destroyed. It waits for a kernel or OnExecute no longer than lastMoment.
func (v *device) awaitStop() {
	var all []*stream
	v.d.streams.all(func(_ uintptr, s *stream) {
		if s.dev == v {
			all = append(all, s)
		}
	})
	began := time.Now()
	for _, s := range all {
		for s.executing.Load() && (s.outside.Load() == 0 || time.Since(began) < lastMoment) {
			time.Sleep(10 * time.Microsecond)
		}
	}
}

// lastMoment limits how long DestroyStream waits for a kernel or OnExecute on a lost device.
const lastMoment = 250 * time.Millisecond

// awaitEnd waits until the goroutine of a dropped stream has ended. If the parameter idle is true,
// the stream executes nothing, and the goroutine ends at once. Otherwise the goroutine may be
// executing an operation, which touches memory. awaitEnd waits without a limit for the driver's own
// operations, which always end, but for a kernel or OnExecute only about lastMoment.
func (s *stream) awaitEnd(idle bool) {
	if idle {
		<-s.ended
		return
	}
	for {
		select {
		case <-s.ended:
			return
		case <-time.After(lastMoment):
			if s.outside.Load() > 0 {
				return
			}
		}
	}
}

// dropStream ends a stream that was removed from the table. It reports whether the stream has a
// goroutine, which still has to end.
func (d *Driver) dropStream(s *stream) (ending bool) {
	d.mu.Lock()
	if i := slices.Index(d.order, s); i >= 0 {
		d.order = slices.Delete(d.order, i, i+1)
	}
	s.dev.retired.Add(s.done.Load())
	d.mu.Unlock()
	s.stopped.Store(true)
	if d.manual {
		d.steps.mu.Lock()
		s.drop()
		d.steps.mu.Unlock()
		return false
	}
	s.mu.Lock()
	started := s.started
	s.started = true // so that publish does not start the goroutine
	s.mu.Unlock()
	if started {
		s.poke()
	}
	return started
}

// stream finds a stream of the device by handle.
func (v *device) stream(c code, h driver.Stream) (*stream, error) {
	s := v.d.streams.get(uintptr(h))
	if s == nil {
		return nil, failf(c, "stream %#x: %w: no such stream, or it was destroyed", uint64(h), ErrInvalidHandle)
	}
	if s.dev != v {
		return nil, failf(c, "stream %#x: %w: it belongs to device %d, not %d", uint64(h), ErrInvalidHandle, s.dev.index, v.index)
	}
	return s, nil
}

// working finds a stream as the method stream does, for an operation that cannot be captured. If
// the stream is being captured, working returns an error, and so will EndCapture.
func (v *device) working(c code, h driver.Stream) (*stream, error) {
	s, err := v.stream(c, h)
	if err != nil || s.captured.Load() == nil {
		return s, err
	}
	err = failf(c, "stream %#x: %w: it is capturing; only fills, copies and launches can be captured", uint64(h), ErrInvalidValue)
	s.mu.Lock()
	s.captured.Load().bad = err
	s.mu.Unlock()
	return nil, err
}

// pending returns the number of operations that have not executed yet.
func (s *stream) pending() uint64 { return s.tail.Load() - s.done.Load() }

// idle reports whether an operation that does nothing would execute at once, so that it can be left
// out. The caller holds mu.
func (s *stream) idle(c code) bool {
	d := s.dev.d
	return s.done.Load() == s.tail.Load() && !d.manual && d.executed == nil && !s.held() && d.delays[c].Load() == 0
}

// held reports whether the stream or its device is stalled.
func (s *stream) held() bool { return s.stalled.Load() || s.dev.stalled.Load() }

// publish adds to the stream, or to the stream's capture, the operation that the caller has set in
// the place from slot. The caller holds mu.
func (s *stream) publish() {
	if c := s.captured.Load(); c != nil {
		c.note(s.dev.d)
		return
	}
	s.add()
	if s.dev.d.manual {
		return
	}
	if !s.started {
		s.started = true
		go s.work()
		return
	}
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.poke()
	}
}

// poke makes the goroutine check again whether it may continue.
func (s *stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
