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

// This file has the steps of closing that the scheduler takes. The steps are listed in
// gpu/close.go.

// The phases of a device, in order.
const (
	isOpen    int32 = iota
	isClosing       // takes no new work
	isStopped       // issues nothing
	isLeft          // no call may begin to use native objects of the device
	// The device's thread gives everything back. Set under mu: readyAll and enter check it.
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
	inUse      bool
	leftBehind atomic.Bool // all native objects are left to the driver
	left       []error     // errors of the device's thread from giving things back
	// known is a loss that Close does not return: it was known before, or giving up caused it.
	known     *Failure
	refusalMu sync.Mutex // protects refusals; a leaf
	// refusals are errors of giving things back that no call returned. Close returns them.
	refusals []error
}

// GiveBackTime is the least time that closing waits for things that failed work still uses.
const GiveBackTime = 500 * time.Millisecond

// An Unended records what had not ended in time.
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

// giveUp notes that the context ended before a wait was over.
func (u *Unended) giveUp(ctx context.Context) { u.After, u.Err = time.Since(u.Began), ctx.Err() }

// Lasting returns a context that ends with ctx, but not before GiveBackTime has passed. Work that
// is done must still be retired, and calls that wait for work that has just failed must return.
func Lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	least := time.Now().Add(GiveBackTime)
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(time.Until(least), cancel) })
	return within, func() {
		stop()
		cancel()
	}
}

// Stop takes the device through steps 1 to 3. When it returns, nothing is parked, and everything in
// flight is done or has failed. It returns the errors of closing the lanes. If work does not end in
// time, Stop records that in u and loses the device. lost makes the error of the loss, which is
// ErrGivenUp.
func (d *Device) Stop(ctx context.Context, u *Unended, lost func() error) (lanes error) {
	d.ending.known = d.lost.Load()

	d.phase.Store(isClosing)
	wake.Until(ctx, func() bool { return !d.toIssue() || d.lost.Load() != nil })
	lanes = d.closeLanes(ctx)

	d.phase.Store(isStopped)
	last := d.lastIssued()
	d.cancelParked(d.ClosedError(), false)
	d.wantPassing()
	within, cancel := Lasting(ctx)
	defer cancel()
	if !last.await(within) || !d.pending.npassing.Wait(within) {
		u.Submissions = max(d.inFlight(), 1)
		u.giveUp(ctx)
		why := lost()
		d.Lose(why)
		// Otherwise somebody else has found a loss first.
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

// LetGoOf takes the device through step 4, and starts step 5 on the device's thread (see
// GivenBack).
func (d *Device) LetGoOf(ctx context.Context, u *Unended) {
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
	if !d.takeBack(within) {
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
	n := d.pending.npassing.Load()
	for _, tl := range d.All() {
		n += tl.inFlight()
	}
	return n
}

// lastIssued returns the last number of each timeline. No work gets a later number: the device has
// stopped, and issuers check that under the timeline's mu.
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

// Stay keeps the device from giving back its native objects until the caller calls Leave. It
// returns an error if it is too late, and then Leave must not be called.
func (d *Device) Stay() error {
	d.calls.Add(1)
	if d.phase.Load() >= isLeft {
		d.calls.Add(-1)
		return d.ClosedError()
	}
	return nil
}

func (d *Device) Leave() { d.calls.Add(-1) }

// takeBack waits until no other device uses anything of this one. It returns false if the context
// ends first.
func (d *Device) takeBack(ctx context.Context) bool {
	for _, m := range d.lent.end() {
		if !wake.Lock(ctx, &m.Timeline.mu) { // a lane's thread may hold it for long
			return false
		}
		// The driver may have refused the work of the mark.
		m.Seq = min(m.Seq, m.Timeline.issued.Load())
		m.Timeline.mu.Unlock()
		if !m.Await(ctx) || !m.outlasted() {
			return false
		}
	}
	return true
}

// outlasted reports whether the work at m, of another device, can no longer use anything of this
// one. A device that is lost because of a third one may still run work. So outlasted waits up to
// GiveBackTime for the stream to pass the mark. It also accepts that the stream has passed the last
// work before a wait for lost work, because work behind that wait has not begun.
func (m Mark) outlasted() bool {
	d := m.Timeline.Device
	if m.Timeline.passed.Load() >= m.Seq {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), GiveBackTime)
	defer cancel()
	// Its streams are gone, or soon will be, unless they are left to the driver.
	if d.Stay() != nil {
		select {
		case <-d.ending.over:
			return !d.ending.leftBehind.Load()
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

// End makes all callers stop recording events in the stream and asking about them. The stream is
// about to be destroyed.
func (tl *Timeline) End() {
	wake.Lock(context.Background(), &tl.askMu)
	defer tl.askMu.Unlock()
	if tl.lockToEnd() {
		defer tl.mu.Unlock()
	}
	tl.ended.Store(true)
}

// IsOver returns a channel that is closed when the device's thread has ended.
func (d *Device) IsOver() <-chan struct{} { return d.ending.over }

// LossToTell returns the loss of the device, or nil. tell reports whether Close must return it: it
// was not known before Close, and Close did not cause it by giving up.
func (d *Device) LossToTell() (lost error, tell bool) {
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

// GivenBack waits until the device's thread has given everything back, and returns the errors. A
// driver may wait for work that never ends, so GivenBack returns an error at 2*GiveBackTime after
// the context has ended.
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
	// The device was lost because of another one, or was given up.
	if errors.Is(err, driver.ErrBusy) {
		return "a stream is still at work"
	}
	if err != nil {
		add(fmt.Errorf("gpu: device %s: a stream: %w", d.Info.Name, err))
	}
	return ""
}

// Outlast is called when the device's own streams have been destroyed. It waits until none of its
// work runs any more, or until the context ends. If all native objects must be left to the driver
// it returns the reason, otherwise "".
func (d *Device) Outlast(ctx context.Context, lost bool) (why string) {
	switch {
	case lost && !d.outlastAdopted(ctx):
		return "an adopted stream is still at work"
	case !d.outlastOthers(ctx):
		return "a stream waits for what others bring"
	}
	return ""
}

// DestroyNative destroys the events and closes the driver's device, after all else. It passes
// errors to add, among them the earlier refusals that NotTaken noted. It runs on the device's
// thread.
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
// returns true first. It runs on a bound thread. If a query fails, Drain asks about the same event
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
// false if the context ends first. If the driver itself has lost the device, the streams count as
// having passed it.
func (d *Device) outlastAdopted(ctx context.Context) bool {
	for _, tl := range d.All() {
		if !tl.Adopted {
			continue
		}
		// On an adopted stream an event is behind every operation.
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

// outlastOthers waits until no stream waits for others outside any more, and returns false if the
// context ends first. It is for a device that was given up; for others it returns true at once. The
// streams have been destroyed by then. No driver waits for a stream when it destroys one.
func (d *Device) outlastOthers(ctx context.Context) bool {
	if !errors.Is(d.Failed(), ErrGivenUp) {
		return true
	}
	return wake.Until(ctx, func() bool {
		return !slices.ContainsFunc(d.All(), (*Timeline).stillAwaits)
	})
}

// stillAwaits asks the driver whether the stream still waits for others outside. The event behind
// such a wait is recorded at once (see records).
func (tl *Timeline) stillAwaits() bool {
	seq := tl.awaiting.Load()
	if tl.passed.Load() >= seq {
		return false
	}
	at, done, err := tl.query(seq, math.MaxUint64, 1)
	return at != 0 && !done && err == nil
}

// LeaveBehind leaves all native objects to the driver. It is called if other devices' work still
// uses them, or a stream is still at work or waits for others outside. Freeing memory or closing
// the device would make the driver wait for that stream, and the driver would take no work of the
// process meanwhile. Work that is left keeps what it holds. Order.Free fails, and functions to be
// called when memory is no longer used are not called.
func (d *Device) LeaveBehind(why string) error {
	d.ending.leftBehind.Store(true)
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

// NotTaken notes an error of giving something back to the driver, for Close to return. Nil is
// ignored. The runtime does not try again: the driver may have freed the thing all the same, and
// may use its handle for another one.
func (d *Device) NotTaken(err error) {
	if err != nil {
		d.ending.refusalMu.Lock()
		d.ending.refusals = append(d.ending.refusals, err)
		d.ending.refusalMu.Unlock()
	}
}
