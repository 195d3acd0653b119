package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// This file implements the scheduler's steps of closing a device. gpu/close.go lists all steps.

// The phases of a device, in order.
const (
	isOpen    int32 = iota
	isClosing       // takes no new work
	isStopped       // issues nothing
	isLeft          // no call may begin to use native objects of the device
	// The device's thread destroys the native objects. isEnded is set under Device.mu, because
	// readyAll and enter check it there.
	isEnded
)

// IsClosing reports whether the device, or the queue of an adopted timeline, was closed or is being
// closed.
func (tl *Timeline) IsClosing() bool { return tl.Device.phase.Load() != isOpen || tl.closed.Load() }

// IsLeaving reports whether calls may no longer begin to use native objects of the device.
func (d *Device) IsLeaving() bool { return d.phase.Load() >= isLeft }

// An ending is the state of a device that is being closed.
type ending struct {
	over    chan struct{} // closed when the device's thread has ended
	overdue bool          // Close gave up waiting for host calls
	// inUse says that Close gave up waiting for other devices' work that uses memory or events of
	// this one.
	inUse        bool
	leftToDriver atomic.Bool // all native objects are left to the driver
	left         []error     // errors from destroying native objects on the device's thread
	// known is a loss that Close does not return: it was known before Close, or Close caused it by
	// giving up.
	known     *Failure
	refusalMu sync.Mutex // protects refusals; a leaf
	// refusals are errors of calls that freed or destroyed native objects in the background. No
	// call of the program has returned them, so Close does.
	refusals []error
}

// GiveBackTime is how long Close waits at least, even if its context has ended, for failed work to
// stop using memory and other native objects.
const GiveBackTime = 500 * time.Millisecond

// An Unended records what was still running when the context of Close ended.
type Unended struct {
	Submissions int           // in flight
	Calls       int           // host calls, and other calls that use the device
	Others      bool          // other devices' work still uses memory or events of this one
	After       time.Duration // how long Close had waited
	Err         error         // the error of Close's context
	Began       time.Time
}

// ErrGivenUp marks the loss of a device that Close has given up.
var ErrGivenUp = errors.New("gpu: the device was given up")

// giveUp records that the context of Close ended before one of its waits was over.
func (u *Unended) giveUp(ctx context.Context) { u.After, u.Err = time.Since(u.Began), ctx.Err() }

// Lasting returns a context that ends with ctx, but not before GiveBackTime has passed. This leaves
// time to retire finished work, and for calls to return that wait for work that has just failed.
func Lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	least := time.Now().Add(GiveBackTime)
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(time.Until(least), cancel) })
	return within, func() {
		stop()
		cancel()
	}
}

// Stop executes steps 1 to 3 of closing. When it returns, nothing is parked, and everything in
// flight is done or has failed. It returns the errors of closing the lanes. If work does not end in
// time, Stop records that in u and loses the device. lost returns the error of that loss, which
// wraps ErrGivenUp.
func (d *Device) Stop(ctx context.Context, u *Unended, lost func() error) (lanes error) {
	d.ending.known = d.lost.Load()

	d.phase.Store(isClosing)
	wake.Until(ctx, func() bool { return !d.toIssue() || d.lost.Load() != nil })
	lanes = d.closeLanes(ctx)

	d.phase.Store(isStopped)
	last := d.lastIssued()
	d.cancelParked(d.ClosedError(), false)
	d.wantPublished()
	within, cancel := Lasting(ctx)
	defer cancel()
	if !last.await(within) || !d.pending.npublished.Wait(within) {
		u.Submissions = max(d.inFlight(), 1)
		u.giveUp(ctx)
		why := lost()
		d.Lose(why)
		// Otherwise another goroutine lost the device first.
		if f := d.lost.Load(); errors.Is(f.Err, why) {
			d.ending.known = f
		}
	}
	if d.lost.Load() != nil { // the goroutine that found the loss may not have done this yet
		d.failInFlight()
	}
	d.cancelParked(d.ClosedError(), true)
	return lanes
}

// AwaitUsers executes step 4 of closing and starts step 5 on the device's thread. GivenBack waits
// for step 5.
func (d *Device) AwaitUsers(ctx context.Context, u *Unended) {
	d.phase.Store(isLeft)
	within, cancel := Lasting(ctx) // host calls may have waited for work that has failed only now
	defer cancel()
	if !d.calls.Wait(within) {
		d.ending.overdue = true
		u.Calls = max(d.calls.Load(), 1)
		u.giveUp(ctx)
	}
	within, cancel = Lasting(ctx)
	defer cancel()
	if !d.awaitBorrowers(within) {
		d.ending.inUse, u.Others = true, true
		u.giveUp(ctx)
	}

	d.poller.Stop()
	for _, tl := range d.All() {
		tl.End()
	}
	d.mu.Lock()
	d.phase.Store(isEnded)
	d.mu.Unlock()
	d.signalThread()
}

// inFlight returns how many submissions are in flight, including passing barriers.
func (d *Device) inFlight() int {
	n := d.pending.npublished.Load()
	for _, tl := range d.All() {
		n += tl.inFlight()
	}
	return n
}

// lastIssued returns the marks of the work issued last on each timeline. No later work follows: the
// device has stopped, and issuers check for that under the timeline's mu.
func (d *Device) lastIssued() (last Frontier) {
	for _, tl := range d.All() {
		locked := tl.lockToEnd()
		last = append(last, Mark{tl, tl.issued.Load()})
		if locked {
			tl.mu.Unlock()
		}
	}
	return last
}

// lockToEnd locks mu after the device has stopped. It returns false, without the lock, if a lane's
// thread may hold mu for ever.
func (tl *Timeline) lockToEnd() bool {
	return !(tl.Lane != nil && tl.Lane.ThreadState() == LaneLost) && wake.Lock(context.Background(), &tl.mu)
}

// Stay has Close wait for the caller before it destroys native objects of the device. The caller
// must call Leave when it no longer uses them. Stay returns an error if Close no longer waits; then
// the caller must neither use them nor call Leave.
func (d *Device) Stay() error {
	d.calls.Add(1)
	if d.phase.Load() >= isLeft {
		d.calls.Add(-1)
		return d.ClosedError()
	}
	return nil
}

func (d *Device) Leave() { d.calls.Add(-1) }

// takeBack waits until no work of other devices uses memory or events of this device. It returns
// false if the context ends first.
func (d *Device) awaitBorrowers(ctx context.Context) bool {
	for _, m := range d.lent.end() {
		if !wake.Lock(ctx, &m.Timeline.mu) { // a lane's thread may hold the mutex for long
			return false
		}
		// The driver may have refused the work at the mark, so perhaps no work has that number.
		m.Seq = min(m.Seq, m.Timeline.issued.Load())
		m.Timeline.mu.Unlock()
		if !m.Await(ctx) || !m.outlasted() {
			return false
		}
	}
	return true
}

// outlasted reports whether the work at m can no longer use memory or events of the device that is
// being closed, which is another one than m's. m's device may be lost and still run work, so
// outlasted waits up to GiveBackTime for the stream to pass the mark.
//
// A stream that waits for work of a lost device has not begun the work behind that wait. So
// outlasted also returns true if the stream has passed the work in front of the first such wait.
func (m Mark) outlasted() bool {
	d := m.Timeline.Device
	if m.Timeline.passed.Load() >= m.Seq {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), GiveBackTime)
	defer cancel()
	// m's device is being closed too. Its streams are destroyed, or soon will be, unless they are
	// left to the driver.
	if d.Stay() != nil {
		select {
		case <-d.ending.over:
			return !d.ending.leftToDriver.Load()
		case <-ctx.Done():
			return false
		}
	}
	defer d.Leave()
	if m.Timeline.hasPassedIn(ctx, m.Seq) {
		return true
	}
	stuck := m.Timeline.firstBehindLost(m.Seq)
	return stuck > 0 && m.Timeline.hasPassed(stuck-1) // an event is recorded in front of each wait
}

// End keeps all goroutines from recording or querying events of the stream, which is about to be
// destroyed.
func (tl *Timeline) End() {
	wake.Lock(context.Background(), &tl.queryMu)
	defer tl.queryMu.Unlock()
	if tl.lockToEnd() {
		defer tl.mu.Unlock()
	}
	tl.ended.Store(true)
}

// IsOver returns a channel that is closed when the device's thread has ended.
func (d *Device) IsOver() <-chan struct{} { return d.ending.over }

// LossToReturn returns why the device is lost, or nil. tell says that Close must return that error:
// the loss was not known before Close, and Close did not cause it by giving up.
func (d *Device) LossToReturn() (lost error, tell bool) {
	f := d.lost.Load()
	if f == nil {
		return nil, false
	}
	return f.Err, f != d.ending.known
}

// InUse reports whether Close gave up waiting for other devices' work that uses memory or events of
// this one.
func (d *Device) InUse() bool { return d.ending.inUse }

// Overdue reports whether Close gave up waiting for calls that use the device.
func (d *Device) Overdue() bool { return d.ending.overdue }

// GivenBack waits until the device's thread has destroyed all native objects, and returns the
// errors of that. A driver may block until work ends that never does, so GivenBack gives up
// 2*GiveBackTime after the context has ended, and returns an error.
func (d *Device) GivenBack(ctx context.Context) []error {
	select {
	case <-d.ending.over:
		return d.ending.left
	case <-ctx.Done():
	}
	late := time.NewTimer(2 * GiveBackTime)
	defer late.Stop()
	select {
	case <-d.ending.over:
		return d.ending.left
	case <-late.C:
		return []error{fmt.Errorf("gpu: device %s: the driver has not taken everything back %v after the context of Close ended: %w: %w",
			d.Info.Name, 2*GiveBackTime, driver.ErrBusy, ctx.Err())}
	}
}

// DestroyStreams destroys the streams of the device's own queues and lanes, and the streams in
// others. It passes errors to add. If all native objects must be left to the driver it returns the
// reason, otherwise "". It runs on the device's thread.
func (d *Device) DestroyStreams(ctx context.Context, others []driver.Stream, add func(error)) (why string) {
	var streams []driver.Stream
	for _, tl := range d.All() {
		if !tl.Adopted {
			streams = append(streams, tl.Stream)
		}
	}
	// The streams may still have work without a number, such as frees and timing events.
	for _, h := range append(streams, others...) {
		if why = d.DestroyStream(ctx, h, add); why != "" {
			return why
		}
	}
	return ""
}

// DestroyStream destroys one stream, like DestroyStreams.
func (d *Device) DestroyStream(ctx context.Context, h driver.Stream, add func(error)) (why string) {
	err := d.Insist(ctx, func() error { return d.Native.DestroyStream(h) })
	// This happens if the device was lost because of another one, or if Close gave up.
	if errors.Is(err, driver.ErrBusy) {
		return "a stream is still at work"
	}
	if err != nil {
		add(fmt.Errorf("gpu: device %s: a stream: %w", d.Info.Name, err))
	}
	return ""
}

// Outlast waits until none of the device's work runs any more, or until the context ends. The
// device's own streams have been destroyed by then. If all native objects must be left to the
// driver it returns the reason, otherwise "".
func (d *Device) Outlast(ctx context.Context, lost bool) (why string) {
	switch {
	case lost && !d.outlastAdopted(ctx):
		return "an adopted stream is still at work"
	case !d.outlastOthers(ctx):
		return "a stream waits for what others bring"
	}
	return ""
}

// DestroyNative destroys the events and closes the driver's device. It is the last step of closing,
// on the device's thread. It passes errors to add, including those that NotTaken recorded.
func (d *Device) DestroyNative(ctx context.Context, add func(error)) {
	add(d.Events.close(ctx))
	d.ending.refusalMu.Lock()
	refusals := d.ending.refusals
	d.ending.refusalMu.Unlock()
	for _, err := range refusals {
		add(err)
	}
	add(d.Native.Close())
}

// Settle waits until the stream has done all its work. It returns an error if the context ends or
// the device is lost first. It runs on a bound thread.
func (tl *Timeline) Settle(ctx context.Context) error {
	d := tl.Device
	done, err := d.Drain(ctx, tl.Stream, func() bool { return d.lost.Load() != nil })
	if !done && err == nil {
		err = fmt.Errorf("a stream still has work: %w", sema.ErrClosed)
	}
	return err
}

// Drain waits until a stream has done all its work. It returns false if the context ends or stop
// returns true first. It runs on a bound thread. If a query fails, Drain queries the same event
// again, because a pending event must not be recorded again. For the same reason an event that
// stays pending does not go back to the pool.
func (d *Device) Drain(ctx context.Context, h driver.Stream, stop func() bool) (done bool, err error) {
	e, err := d.Events.get()
	if err != nil {
		return false, err
	}
	if err := d.Native.Record(e.Handle, h); err != nil {
		e.Drop()
		return false, err
	}
	failed := 0
	ended := wake.Until(ctx, func() bool {
		if done, err = d.Native.Query(e.Handle); err != nil {
			failed++
		}
		return done || failed >= maxFailed || errors.Is(err, driver.ErrLost) || stop()
	})
	switch {
	case done:
		e.Drop()
		return true, nil
	case !ended:
		return false, nil
	}
	return false, err
}

// Insist repeats f while its error is driver.ErrBusy, until the context ends: the device may soon
// finish the work that keeps it busy. Insist runs on the device's thread while the device is being
// closed.
func (d *Device) Insist(ctx context.Context, f func() error) (err error) {
	wake.Until(ctx, func() bool {
		err = f()
		return !errors.Is(err, driver.ErrBusy)
	})
	return err
}

// outlastAdopted waits until the adopted streams have passed the work of this device. It returns
// false if the context ends first. If the driver itself has lost the device, its queries fail, and
// the streams count as having passed the work.
func (d *Device) outlastAdopted(ctx context.Context) bool {
	for _, tl := range d.All() {
		if !tl.Adopted {
			continue
		}
		// An adopted stream has an event recorded behind every operation.
		if !tl.hasPassedIn(ctx, tl.issued.Load()) {
			return false
		}
	}
	return true
}

// hasPassedIn waits until the stream has passed a number, or the driver's Query fails. It returns
// false if the context ends first.
func (tl *Timeline) hasPassedIn(ctx context.Context, seq uint64) bool {
	e, _ := tl.eventBehind(seq)
	if e == nil {
		return true
	}
	defer e.Drop()
	return wake.Until(ctx, func() bool {
		done, err := tl.Device.Native.Query(e.Handle)
		return done || err != nil
	})
}

// outlastOthers waits until no stream waits for outside code any more (see Timeline.awaiting). It
// returns false if the context ends first. Unless Close gave up the device, it returns true at
// once. The streams have been destroyed by then, but their work may still run: no driver waits for
// the work of a stream that it destroys.
func (d *Device) outlastOthers(ctx context.Context) bool {
	if !errors.Is(d.Failed(), ErrGivenUp) {
		return true
	}
	return wake.Until(ctx, func() bool {
		return !slices.ContainsFunc(d.All(), (*Timeline).stillAwaits)
	})
}

// stillAwaits queries whether the stream still waits for outside code. The event behind such a wait
// is recorded at once (see records).
func (tl *Timeline) stillAwaits() bool {
	seq := tl.awaiting.Load()
	if tl.passed.Load() >= seq {
		return false
	}
	at, done, err := tl.query(seq, math.MaxUint64, 1)
	return at != 0 && !done && err == nil
}

// LeaveToDriver leaves all native objects to the driver. It is called instead of destroying them if
// other devices' work still uses them, or if a stream is still busy or waits for outside code.
// Freeing memory or closing the device would make the driver wait for that stream, and meanwhile
// the driver would take no work from this process.
//
// Work in flight keeps what it holds. Order.Free fails, and functions to be called when memory is
// no longer used are not called.
func (d *Device) LeaveToDriver(why string) error {
	d.ending.leftToDriver.Store(true)
	left := fmt.Errorf("gpu: device %s: %s: what the device has is left to the driver: %w", d.Info.Name, why, driver.ErrBusy)
	for _, tl := range d.All() {
		tl.retireMu.Lock()
		tl.ring.mu.Lock()
		for seq := tl.ring.head; seq <= tl.issued.Load(); seq++ {
			tl.ring.at(seq).Rest.Leave(left)
		}
		tl.ring.mu.Unlock()
		tl.retireMu.Unlock()
	}
	return left
}

// NotTaken records an error from freeing or destroying a native object, for Close to return. It
// ignores nil. The runtime does not try again: the driver may have freed the object despite the
// error, and may use its handle for a new one.
func (d *Device) NotTaken(err error) {
	if err != nil {
		d.ending.refusalMu.Lock()
		d.ending.refusals = append(d.ending.refusals, err)
		d.ending.refusalMu.Unlock()
	}
}
