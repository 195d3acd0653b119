package gpu

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// MaxValue is the highest value of a semaphore.
const MaxValue = math.MaxUint64 - 1

// A Semaphore has a value that only grows. The host and devices signal the semaphore and wait for
// it; a wait may begin before the signal is submitted. A semaphore can fail once, and then stays
// failed: every wait returns the failure, even for a value that was reached before.
//
// A wait for a value is over once that value or a higher one is reached. Several operations without
// an order may signal values of one semaphore, and end in any order. Then a wait for a lower value
// may end before the operation that signals that value has ended.
//
// A semaphore belongs to no device: it orders work across all devices, and may outlive them. Make
// one with [NewSemaphore]; a zero Semaphore has value 0. Do not copy a Semaphore. All methods may
// be called concurrently.
type Semaphore struct {
	sema sema.Semaphore // must be the only field: see outer
}

// A Point is a value of a semaphore.
type Point struct {
	Semaphore *Semaphore
	Value     uint64
}

// At returns the point of the semaphore and a value.
func (s *Semaphore) At(value uint64) Point { return Point{s, value} }

// inner returns the point as a Point of package sema.
func (p Point) inner() sema.Point { return sema.Point{Semaphore: &p.Semaphore.sema, Value: p.Value} }

// inner returns points as Points of package sema. It copies and allocates nothing: both types are a
// pointer and a value, and a pointer to a Semaphore also points to its only field.
func inner(points []Point) []sema.Point {
	return unsafe.Slice((*sema.Point)(unsafe.Pointer(unsafe.SliceData(points))), len(points))
}

// outer returns the Semaphore whose only field is s.
func outer(s *sema.Semaphore) *Semaphore { return (*Semaphore)(unsafe.Pointer(s)) }

// NewSemaphore makes a semaphore with the given initial value. If the value is above [MaxValue],
// the error is [ErrArgument].
func NewSemaphore(initial uint64) (*Semaphore, error) {
	if initial > MaxValue {
		return nil, errs.Argument("semaphore", "initial value %d is above %d", initial, uint64(MaxValue))
	}
	s := new(Semaphore)
	if initial > 0 {
		s.sema.Init(initial)
	}
	return s, nil
}

// Query returns the value. If work in flight will signal the semaphore, Query first polls the
// device. If the semaphore has failed, Query returns the value before the failure, and the failure.
// Query does not block.
func (s *Semaphore) Query() (uint64, error) {
	if s == nil {
		return 0, nilSemaphore("query")
	}
	v, err := s.sema.Query()
	if err != nil {
		return v, received(err)
	}
	return v, nil
}

// Signal sets the semaphore's value from the host and releases everything that waits for this value
// or a lower one. If value is not above the present value, the error is [ErrValue]. If value is
// above [MaxValue], the error is [ErrArgument]. If the semaphore has failed, the error is its
// failure. A call that returns an error changes nothing.
func (s *Semaphore) Signal(value uint64) error {
	if s == nil {
		return nilSemaphore("signal")
	}
	if value > MaxValue || s.sema.Notes.Load() != nil {
		return s.signalSlowly(value)
	}
	if err := s.sema.Signal(value); err != nil {
		return received(err)
	}
	return nil
}

func (s *Semaphore) signalSlowly(value uint64) error {
	list, err := s.signal(value)
	sema.ReleaseFromHost(list)
	return err
}

// signal sets the value, and returns the timepoints to release.
func (s *Semaphore) signal(value uint64) (*sema.Timepoint, error) {
	if value > MaxValue {
		return nil, errs.Argument("signal", "value %d is above %d", value, uint64(MaxValue))
	}
	list, err := s.sema.Raise(value)
	if err != nil {
		return nil, received(err)
	}
	noteSignal(&s.sema, value, nil)
	return list, nil
}

// SignalAll signals points from the host, one after the other, as [Semaphore.Signal] does.
// SignalAll stops at the first point that cannot be signalled, and returns the error of this point.
// Earlier points have been signalled, later points have not. After the last signal, SignalAll
// releases everything that waits, and then calls the functions registered by [Semaphore.OnReached].
func SignalAll(points ...Point) error {
	var released sema.List
	defer func() { sema.ReleaseFromHost(released.First()) }()
	for i, p := range points {
		if p.Semaphore == nil {
			return errs.Argument("signal", "point %d has no semaphore", i)
		}
		list, err := p.Semaphore.signal(p.Value)
		if err != nil {
			return fmt.Errorf("point %d: %w", i, err)
		}
		released.Join(list)
	}
	return nil
}

// FailAll makes semaphores fail with err, one after the other, as [Semaphore.Fail] does. Then it
// releases everything that waits for them. FailAll skips nil semaphores.
func FailAll(err error, semaphores ...*Semaphore) {
	var released sema.List
	for _, s := range semaphores {
		if s != nil {
			released.Join(s.fail(err))
		}
	}
	sema.ReleaseFromHost(released.First())
}

// Fail makes the semaphore fail with err, for good. Everything that waits for the semaphore is
// released with err. If the semaphore has failed before, it keeps its first failure. Work that
// waits for the semaphore and has been issued still runs.
func (s *Semaphore) Fail(err error) {
	if s != nil {
		sema.ReleaseFromHost(s.fail(err))
	}
}

// fail makes the semaphore fail with err, and returns the timepoints to release. If err is nil, the
// failure is an [ErrArgument].
func (s *Semaphore) fail(err error) *sema.Timepoint {
	if err == nil {
		err = fmt.Errorf("gpu: semaphore failed without a reason: %w", ErrArgument)
	}
	noteSignal(&s.sema, 0, err)
	return s.sema.Fail(err)
}

// Close makes the semaphore fail with [ErrClosed], and returns nil. If the semaphore has failed or
// was closed before, Close does nothing. A semaphore need not be closed, because it holds only
// memory. Work in flight that will signal the semaphore continues. Pool memory that such work uses
// is given back to the pool only when the work is over: see [Free].
func (s *Semaphore) Close() error {
	if s != nil && s.sema.Failed() == nil {
		sema.ReleaseFromHost(s.sema.Close())
	}
	return nil
}

// SetName gives the semaphore a name for errors and [Device.Parked]. An empty string removes the
// name.
func (s *Semaphore) SetName(name string) {
	if s == nil {
		return
	}
	s.sema.SetName(name)
	if o := observe.OfSemaphore(&s.sema); o != nil {
		o.Renamed()
	}
}

// String returns semaphore "name", or "a semaphore" if the semaphore has no name.
func (s *Semaphore) String() string {
	if s == nil {
		return "no semaphore"
	}
	return s.sema.String()
}

// Wait blocks until the value is reached, the semaphore fails, or the context ends. Wait returns
// nil if the value is reached, and the failure if the semaphore fails. If the context has ended
// before the call, Wait polls the device and does not block. If the context ends before the value
// is reached, the error says which value the semaphore has and which work will signal the awaited
// value, and [errors.Is] finds the context's error and the context's cause. A value above
// [MaxValue] is [ErrArgument].
func (s *Semaphore) Wait(ctx context.Context, value uint64) error {
	if s == nil {
		return nilSemaphore("wait")
	}
	p := Point{s, value}
	if p.inner().Reached() {
		return nil
	}
	_, err := wait(ctx, []Point{p}, true)
	return err
}

// WaitAll blocks until all points are reached, one of the semaphores has failed, or the context
// ends. Its errors are those of [Semaphore.Wait]. A point without a semaphore is [ErrArgument].
// Without points WaitAll returns nil immediately.
func WaitAll(ctx context.Context, points ...Point) error {
	_, err := wait(ctx, points, true)
	return err
}

// WaitAny blocks until one of the points is reached, one of the semaphores has failed, or the
// context ends. WaitAny returns the index of a reached point, or -1 with an error. If a semaphore
// has failed, WaitAny returns the failure, even if a point of another semaphore is reached. The
// errors are those of [WaitAll]. Without points WaitAny returns -1 and nil immediately.
func WaitAny(ctx context.Context, points ...Point) (int, error) { return wait(ctx, points, false) }

func wait(ctx context.Context, points []Point, all bool) (index int, err error) {
	if ctx == nil {
		return -1, errs.Argument("wait", "no context")
	}
	for _, p := range points {
		if p.Semaphore == nil {
			return -1, errs.Argument("wait", "a point has no semaphore")
		}
		if p.Value > MaxValue {
			return -1, errs.Argument("wait", "value %d is above %d, the highest there is", p.Value, uint64(MaxValue))
		}
	}
	var seen observe.Wait
	if ctx.Err() == nil {
		seen = waits(ctx, points, all)
	}
	if index, err = sema.Wait(ctx, inner(points), all); err != nil {
		err = waitError(ctx, inner(points), err)
	}
	if seen != nil {
		for _, p := range points {
			seen.For(p.inner())
		}
		seen.Ended(err)
	}
	return index, err
}

// waitError returns the error for the program if sema.Wait or WaitIssued has returned err.
func waitError(ctx context.Context, points []sema.Point, err error) error {
	if err == sema.ErrEnded {
		return waitEnded(ctx, points)
	}
	return received(err)
}

// WaitIssued blocks until a device has been given work that will signal the value or a higher one,
// and then returns nil. WaitIssued also returns when the value is reached, the semaphore fails, or
// the context ends, with the result of [Semaphore.Wait]. The issued work need not be done yet. Use
// WaitIssued before an action that requires issued work, such as telling another process that an
// event is recorded (see package interop).
func (s *Semaphore) WaitIssued(ctx context.Context, value uint64) error {
	switch {
	case s == nil:
		return nilSemaphore("wait until issued")
	case ctx == nil:
		return errs.Argument("wait", "no context")
	case value > MaxValue:
		return errs.Argument("wait", "value %d is above %d, the highest there is", value, uint64(MaxValue))
	}
	if err := s.sema.WaitIssued(ctx, value); err != nil {
		return waitError(ctx, []sema.Point{{Semaphore: &s.sema, Value: value}}, err)
	}
	return nil
}

// OnReached registers a function to be called once: with nil when the value is reached, or with the
// failure when the semaphore fails. No lock is held during the call.
//
//   - If the value has been reached or the semaphore has failed before, OnReached itself calls the
//     function.
//   - If the program signals, fails or closes the semaphore, that call first releases everything
//     else that waits. Then it calls the functions in the order of their values, and functions for
//     the same value in the order of their registration. If a function panics or ends its
//     goroutine, the other functions are still called.
//   - If an operation signals or fails the semaphore, each function is called on a goroutine of its
//     own, in no order.
//
// The returned cancel unregisters the function. cancel returns true if the function has not been
// called and will not be called. OnReached ignores a nil function.
func (s *Semaphore) OnReached(value uint64, fn func(error)) (cancel func() bool) {
	if fn == nil {
		return sema.TooLate
	}
	if s == nil {
		fn(nilSemaphore("on reached"))
		return sema.TooLate
	}
	if o := observe.OfSemaphore(&s.sema); o != nil {
		fn = o.Calls(sema.Point{Semaphore: &s.sema, Value: value}, fn)
	}
	return s.sema.OnReached(value, func(err error) { fn(received(err)) })
}

// A link joins a timepoint of one semaphore to a point of another. When the timepoint is released,
// the link signals the point, or fails the point's semaphore.
type link struct {
	at sema.Timepoint
	to Point
}

// Link links the point s.At(from) to the point target.At(to). When the first point is reached, the
// link signals the second, as target.Signal(to) does. If target refuses the signal, target fails
// with that error. If s fails, target fails with the error of s. The returned unlink removes the
// link. unlink returns true if the link has neither signalled nor failed target, and will not. If
// target is nil, Link does nothing.
func (s *Semaphore) Link(from uint64, target *Semaphore, to uint64) (unlink func() bool) {
	if target == nil {
		return sema.TooLate
	}
	if s == nil {
		target.Fail(nilSemaphore("link"))
		return sema.TooLate
	}
	l := &link{to: Point{target, to}}
	l.at.Init(l)
	switch s.sema.Register(from, &l.at, sema.UntilReached) {
	case sema.Reached:
		sema.ReleaseFromHost(l.pass(nil))
	case sema.Failed:
		sema.ReleaseFromHost(l.pass(s.sema.Failed()))
	default:
		return l.at.Cancel
	}
	return sema.TooLate
}

// pass signals the link's target. If err is not nil, or the target cannot be signalled, pass fails
// the target. The result is the list of timepoints to release.
func (l *link) pass(err error) *sema.Timepoint {
	if err == nil {
		var list *sema.Timepoint
		if list, err = l.to.Semaphore.signal(l.to.Value); err == nil {
			return list
		}
	}
	return l.to.Semaphore.sema.Fail(err)
}

// TimepointReleased, IssueHere and HandOver make a link a [sema.Waiter]. A link has no work to
// issue.
func (l *link) TimepointReleased(err error) (ready bool, more *sema.Timepoint) {
	return false, l.pass(err)
}

func (l *link) IssueHere() bool          { return false }
func (l *link) HandOver(*sema.Timepoint) {}
