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

// This file implements the steps of closing a device that belong to the scheduler.
// runtime/gpu/close.go lists all steps.

// The phases of a device, in order. Device.phase has the current one.
const (
	isOpen    int32 = iota
	isClosing       // no new submissions are accepted
	isStopped       // nothing is issued any more, not even parked submissions
	isLeft          // Stay returns an error: Close does not wait for calls that begin now
	// isEnded: the pending-queue thread destroys the native objects. This phase is set under
	// Device.mu, because Device.readyAll and Device.enter check for isEnded under that mutex.
	isEnded
)

// IsClosing reports whether closing of the device has begun, or this timeline is adopted and its
// queue was closed.
func (tl *Timeline) IsClosing() bool { return tl.Device.phase.Load() != isOpen || tl.closed.Load() }

// IsLeaving reports whether Stay returns an error, because Close no longer waits for new calls.
func (d *Device) IsLeaving() bool { return d.phase.Load() >= isLeft }

// An ending is the part of a Device that Close uses.
type ending struct {
	over    chan struct{} // closed when the pending-queue thread has ended
	overdue bool          // Close gave up waiting for calls that use the device
	// inUse says that Close gave up waiting for work of other devices that uses memory or events of
	// this device.
	inUse        bool
	leftToDriver atomic.Bool // LeaveToDriver was called: native objects are not destroyed
	left         []error     // the errors of Owner.Destroy
	// known is the error with which the device was lost, if the device was lost before Close or
	// because Close gave up. Close must not return this error: see LossToReturn.
	known     *Failure
	refusalMu sync.Mutex // protects refusals; no other lock is taken while it is held
	// refusals are errors from freeing or destroying native objects in the background. No call of
	// the program could return them, so Close does.
	refusals []error
}

// GiveBackTime is the time that several steps of Close get even if the context of Close has ended:
// for example, to wait until failed work no longer uses native objects.
const GiveBackTime = 500 * time.Millisecond

// An Unended counts the work that was still running when Close gave up waiting. Close reports the
// Unended to the program.
type Unended struct {
	Submissions int           // submissions in flight
	Calls       int           // running host calls and other running calls that use the device
	Others      bool          // work of other devices still uses memory or events of the closing device
	After       time.Duration // time from Began until Close gave up
	Err         error         // the error of the context of Close
	Began       time.Time     // when Close began
}

// ErrGivenUp is wrapped in the error of a device that is lost because its Close gave up waiting for
// work.
var ErrGivenUp = errors.New("gpu: the device was given up")

// giveUp records that Close gives up waiting now. ctx is the context of Close.
func (u *Unended) giveUp(ctx context.Context) { u.After, u.Err = time.Since(u.Began), ctx.Err() }

// Lasting returns a context that ends when ctx ends, but not earlier than GiveBackTime after this
// call. In that time, finished work can be retired, and calls that wait for failed work can return.
func Lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	least := time.Now().Add(GiveBackTime)
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(time.Until(least), cancel) })
	return within, func() {
		stop()
		cancel()
	}
}

// Stop executes steps 1 to 3 of closing. When it returns, no submission is parked, and all work in
// flight is done or has failed. If work does not end in time, Stop notes that in u and marks the
// device as lost, with the error that the function lost returns. That error wraps ErrGivenUp. Stop
// returns the errors of closing the lanes.
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
	if !last.Await(within) || !d.pending.npublished.Wait(within) {
		u.Submissions = max(d.inFlight(), 1)
		u.giveUp(ctx)
		why := lost()
		d.Lose(why)
		// If f.Err does not wrap the error why, another goroutine had already lost the device, for
		// another reason.
		if f := d.lost.Load(); errors.Is(f.Err, why) {
			d.ending.known = f
		}
	}
	if d.lost.Load() != nil { // the goroutine that lost the device may not have failed the work yet
		d.failInFlight()
	}
	d.cancelParked(d.ClosedError(), true)
	return lanes
}

// AwaitUsers executes step 4 of closing: it waits for calls that use the device, and for work of
// other devices that uses memory or events of this device. Then it starts step 5 on the
// pending-queue thread. GivenBack waits for step 5.
func (d *Device) AwaitUsers(ctx context.Context, u *Unended) {
	d.phase.Store(isLeft)
	within, cancel := Lasting(ctx) // host calls may have waited for work that Stop has just failed
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

// inFlight returns how many submissions are in flight and have not failed, plus the number of
// published barriers.
func (d *Device) inFlight() int {
	n := d.pending.npublished.Load()
	for _, tl := range d.All() {
		n += tl.inFlight()
	}
	return n
}

// lastIssued returns the mark of the last submission issued on each timeline. The device is in
// phase isStopped. Issuers check the phase under tl.mu, so nothing is issued any more on a timeline
// that lastIssued has locked.
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

// lockToEnd locks tl.mu while the device, or the timeline's communicator, is being closed. It
// returns false, without the lock, if a lane's thread hangs in a native call and may hold tl.mu for
// ever.
func (tl *Timeline) lockToEnd() bool {
	return !(tl.Lane != nil && tl.Lane.ThreadState() == LaneLost) && wake.Lock(context.Background(), &tl.mu)
}

// Stay makes Close wait until the caller calls Leave. Between Stay and Leave the caller may use
// native objects of the device. If Close no longer waits, Stay returns an error. Then the caller
// must neither use native objects nor call Leave.
func (d *Device) Stay() error {
	d.calls.Add(1)
	if d.phase.Load() >= isLeft {
		d.calls.Add(-1)
		return d.ClosedError()
	}
	return nil
}

// Leave undoes Stay.
func (d *Device) Leave() { d.calls.Add(-1) }

// awaitBorrowers waits until no work of other devices uses memory or events of this device. It
// returns false if the context ends first, or if such work may still run (see outlasted).
func (d *Device) awaitBorrowers(ctx context.Context) bool {
	for _, m := range d.lent.end() {
		if !wake.Lock(ctx, &m.Timeline.mu) { // a lane's thread may hold this mutex for long
			return false
		}
		// If the driver has refused the work at the mark, no submission has that number.
		m.Seq = min(m.Seq, m.Timeline.issued.Load())
		m.Timeline.mu.Unlock()
		if !m.Await(ctx) || !m.outlasted() {
			return false
		}
	}
	return true
}

// outlasted reports whether the work at m can no longer use memory or events of a device that is
// being closed. m is on another device. That device may be lost and still run its work, so
// outlasted waits up to GiveBackTime until the stream has passed the mark.
//
// If m's stream waits for work that never begins, because the driver has lost a device, the work
// behind that wait never begins either. So outlasted also returns true if the stream has passed all
// work in front of the first such wait.
func (m Mark) outlasted() bool {
	d := m.Timeline.Device
	if m.Timeline.passed.Load() >= m.Seq {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), GiveBackTime)
	defer cancel()
	// If Stay fails, m's device is being closed too. Wait until its streams are destroyed. If they
	// are left to the driver instead, they may still run.
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
	stuck := deadSearch{}.first(m.Timeline, m.Seq)
	// There is an event behind stuck-1 to query, because one is recorded in front of every native
	// wait.
	return stuck > 0 && m.Timeline.hasPassed(stuck-1)
}

// End must be called before the stream is destroyed. After End, no goroutine records events in the
// stream, and none but the pending-queue thread queries them.
func (tl *Timeline) End() {
	wake.Lock(context.Background(), &tl.queryMu)
	defer tl.queryMu.Unlock()
	if tl.lockToEnd() {
		defer tl.mu.Unlock()
	}
	tl.ended.Store(true)
}

// LossToReturn returns the error with which the device was lost, or nil. tell is true if Close must
// return this error: the device was lost during Close, and not because Close gave up.
func (d *Device) LossToReturn() (lost error, tell bool) {
	f := d.lost.Load()
	if f == nil {
		return nil, false
	}
	return f.Err, f != d.ending.known
}

// InUse reports whether Close gave up waiting for work of other devices that uses memory or events
// of this device.
func (d *Device) InUse() bool { return d.ending.inUse }

// Overdue reports whether Close gave up waiting for calls that use the device.
func (d *Device) Overdue() bool { return d.ending.overdue }

// GivenBack waits until the pending-queue thread has destroyed all native objects or left them to
// the driver, and returns the errors of Owner.Destroy. A driver call that destroys an object may
// block until work ends, and the work may never end. So when the context has ended, GivenBack waits
// only 2*GiveBackTime longer, and then returns an error.
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

// DestroyStreams destroys the streams of the device's own queues and lanes, and the streams in the
// list others. It reports errors by calling add. If a stream is still at work, DestroyStreams
// returns a text that says so, and all native objects must be left to the driver. Otherwise it
// returns "". It runs on the pending-queue thread.
func (d *Device) DestroyStreams(ctx context.Context, others []driver.Stream, add func(error)) (why string) {
	var streams []driver.Stream
	for _, tl := range d.All() {
		if !tl.Adopted {
			streams = append(streams, tl.Stream)
		}
	}
	// A stream may be busy although it has passed all numbered work. Timing events have no number,
	// nor do frees of pool memory whose buffer was closed.
	for _, h := range append(streams, others...) {
		if why = d.DestroyStream(ctx, h, add); why != "" {
			return why
		}
	}
	return ""
}

// DestroyStream destroys one stream. If the stream is still at work, DestroyStream returns a text
// that says so, like DestroyStreams.
func (d *Device) DestroyStream(ctx context.Context, h driver.Stream, add func(error)) (why string) {
	err := d.Insist(ctx, func() error { return d.Native.DestroyStream(h) })
	// A stream can still be busy here if Close gave up, or if the runtime counts the device as lost
	// but the driver has not lost it: for example, if the device waits for another lost device.
	if errors.Is(err, driver.ErrBusy) {
		return "a stream is still at work"
	}
	if err != nil {
		add(fmt.Errorf("gpu: device %s: a stream: %w", d.Info.Name, err))
	}
	return ""
}

// Outlast is called after the device's own streams have been destroyed. If the device is lost,
// Outlast waits until the work on adopted streams has ended. If Close gave up, Outlast waits until
// no stream waits for other code. If the context ends first, Outlast returns a text that says which
// work may still run, and all native objects must be left to the driver. Otherwise it returns "".
func (d *Device) Outlast(ctx context.Context, lost bool) (why string) {
	switch {
	case lost && !d.outlastAdopted(ctx):
		return "an adopted stream is still at work"
	case !d.outlastOthers(ctx):
		return "a stream waits for what others bring"
	}
	return ""
}

// DestroyNative destroys the events and closes the driver's device. It is the last step of closing
// and runs on the pending-queue thread. It calls add for its own errors and for the errors that
// NotTaken has stored.
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

// Settle waits until the stream is idle. It returns an error if the context ends or the device is
// lost first, or if the driver returns an error. It runs on a thread bound to the device.
func (tl *Timeline) Settle(ctx context.Context) error {
	d := tl.Device
	done, err := d.Drain(ctx, tl.Stream, func() bool { return d.lost.Load() != nil })
	if !done && err == nil {
		err = fmt.Errorf("a stream still has work: %w", sema.ErrClosed)
	}
	return err
}

// Drain records an event and waits until the stream has passed it. Drain returns false if the
// context ends or the function stop returns true first, if the event cannot be made or recorded, if
// the device is lost, or after maxFailed failed queries. It runs on a thread bound to the device. A
// pending event must not be recorded again. So Drain puts a recorded event back into the pool only
// after it has seen the event complete.
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

// Insist calls f again and again while f returns driver.ErrBusy, until the context ends. The device
// may soon finish the work that keeps it busy. Insist runs on the pending-queue thread.
func (d *Device) Insist(ctx context.Context, f func() error) (err error) {
	wake.Until(ctx, func() bool {
		err = f()
		return !errors.Is(err, driver.ErrBusy)
	})
	return err
}

// outlastAdopted waits until the adopted streams have passed this device's work. It returns false
// if the context ends first.
func (d *Device) outlastAdopted(ctx context.Context) bool {
	for _, tl := range d.All() {
		if tl.Adopted && !tl.hasPassedIn(ctx, tl.issued.Load()) {
			return false
		}
	}
	return true
}

// hasPassedIn waits until the stream has passed seq. It returns false if the context ends first.
// The device may have been lost before an event was recorded behind seq. Then hasPassedIn records
// an event, except on an adopted stream, which other code may have destroyed. If the driver itself
// has lost the device, queries return driver.ErrLost and no stream goes on. Then hasPassedIn
// returns true.
func (tl *Timeline) hasPassedIn(ctx context.Context, seq uint64) bool {
	return wake.Until(ctx, func() bool {
		if !tl.Adopted {
			// Ignore the error: if the device is lost, the query below returns ErrLost.
			tl.tryMark(seq)
		}
		e, recorded := tl.eventOf(seq)
		if e == nil {
			return true
		}
		defer e.Drop()
		done, err := tl.Device.Native.Query(e.Handle)
		return done && recorded || errors.Is(err, driver.ErrLost)
	})
}

// eventOf returns the first event recorded behind seq, and true. If there is none, eventOf returns
// the event of the submission seq, which is not recorded yet, and false. If that submission has
// been retired, eventOf returns nil and true. seq must be at most tl.issued. The caller must Drop
// the event.
func (tl *Timeline) eventOf(seq uint64) (e *Event, recorded bool) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	if seq < tl.ring.head {
		return nil, true
	}
	s := tl.ring.marked(seq, tl.issued.Load())
	if recorded = s != nil; !recorded {
		s = tl.ring.at(seq)
	}
	s.event.Hold()
	return s.event, recorded
}

// outlastOthers waits until no stream waits for other code any more (see Timeline.awaiting).
// outlastOthers returns false if the context ends first. If Close did not give up the device,
// outlastOthers returns true at once. It asks the driver about destroyed streams too. DestroyStream
// of driver.Device destroys a stream if the driver knows that the stream's pending work can never
// execute, and a wait for other code may be a part of that work.
func (d *Device) outlastOthers(ctx context.Context) bool {
	if !errors.Is(d.Failed(), ErrGivenUp) {
		return true
	}
	return wake.Until(ctx, func() bool {
		return !slices.ContainsFunc(d.All(), (*Timeline).stillAwaits)
	})
}

// stillAwaits asks the driver whether the stream still waits for other code. An event is always
// recorded behind such a wait (see Timeline.records).
func (tl *Timeline) stillAwaits() bool {
	seq := tl.awaiting.Load()
	if tl.passed.Load() >= seq {
		return false
	}
	at, done, err := tl.query(seq, math.MaxUint64, 1)
	return at != 0 && !done && err == nil
}

// LeaveToDriver makes Close leave the native objects that are not destroyed yet to the driver: they
// stay allocated. It returns the error for Close. why is the reason in that error. LeaveToDriver is
// called if other devices' work still uses the objects, if a stream is still busy or waits for
// other code, or if there is no stream in which pool memory could be freed, because none can be
// made. If a stream is busy or waits, freeing memory or closing the device would block in the
// driver until that stream is idle. Meanwhile the driver would accept no work from this process.
//
// Work in flight keeps everything that it holds. Semaphores given in Order.Free fail. Functions
// that the program wanted called after the last use of memory are not called.
func (d *Device) LeaveToDriver(why string) error {
	d.ending.leftToDriver.Store(true)
	left := fmt.Errorf("gpu: device %s: %s: the native objects of the device are left to the driver: %w", d.Info.Name, why, driver.ErrBusy)
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

// NotTaken stores an error from freeing or destroying a native object, for Close to return. It
// ignores nil. The caller must not try to free the object again: the driver may have freed it
// despite the error, and may have given its handle to a new object.
func (d *Device) NotTaken(err error) {
	if err != nil {
		d.ending.refusalMu.Lock()
		d.ending.refusals = append(d.ending.refusals, err)
		d.ending.refusalMu.Unlock()
	}
}
