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

// This is the native device's part of closing: close.go has the steps.

// The phases of a device, in order.
const (
	isOpen    int32 = iota
	isClosing       // takes nothing new
	isStopped       // issues nothing any more
	isLeft          // no call may begin to use what it has
	isEnded         // the thread gives everything back; set under mu, for who hands something over to it
)

// IsClosing reports whether the device, or an adopted queue's timeline, was closed, or is being closed.
func (tl *Timeline) IsClosing() bool { return tl.Device.phase.Load() != isOpen || tl.closed.Load() }

// IsLeaving reports whether no call may begin to use what the device has.
func (d *Device) IsLeaving() bool { return d.phase.Load() >= isLeft }

// An ending is what has become of a native device that is being closed.
type ending struct {
	over       chan struct{} // closed when the thread has ended
	overdue    bool          // Close has not waited for all host calls
	inUse      bool          // Close has not waited for all work of other devices that uses what this one has
	leftBehind atomic.Bool   // all that it has is left to the driver
	left       []error       // of what the thread could not give back
	known      *Failure      // a loss that Close does not return, for it was known before, or comes of giving up
	refusalMu  sync.Mutex    // protects refusals; a leaf
	refusals   []error       // errors of giving something back that no caller was returned; Close returns them
}

// giveBackTime is how long closing waits at least for what is still in use by work that has failed.
const GiveBackTime = 500 * time.Millisecond

// An Unended gathers what has not ended in time.
type Unended struct {
	Submissions int           // in flight
	Calls       int           // host calls, and others that use the device
	Others      bool          // other devices' work still uses what the device has
	After       time.Duration // how long Close had waited
	Err         error         // of Close's context
	Began       time.Time
}

// errGivenUp is what the error of a device is that Close has given up.
var ErrGivenUp = errors.New("gpu: the device was given up")

// giveUp notes that the context has ended before what is waited for.
func (u *Unended) giveUp(ctx context.Context) { u.After, u.Err = time.Since(u.Began), ctx.Err() }

// Lasting returns a context that ends with ctx, but not before giveBackTime has passed: work that is done must still be found done, and
// calls that wait for what has just failed must return.
func Lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	least := time.Now().Add(GiveBackTime)
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(time.Until(least), cancel) })
	return within, func() {
		stop()
		cancel()
	}
}

// Stop takes the device through steps 1 to 3: then nothing is parked, or in flight as far as anybody will
// know. It returns the errors of lanes. If work does not end in time, it notes that and gives the device
// up: lost makes the error, which is errGivenUp.
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
		if f := d.lost.Load(); errors.Is(f.Err, why) { // else somebody else has found a loss
			d.ending.known = f
		}
	}
	if d.lost.Load() != nil { // the goroutine that found the loss may not have done this yet
		d.failInFlight()
	}
	d.cancelParked(d.ClosedError(), true)
	return lanes
}

// LetGoOf takes the device through step 4, and begins step 5, which its thread does (givenBack).
func (d *Device) LetGoOf(ctx context.Context, u *Unended) {
	d.phase.Store(isLeft)
	within, cancel := Lasting(ctx) // host calls may have waited for what has failed now
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

// inFlight returns how many submissions are in flight, with barriers that pass behind some.
func (d *Device) inFlight() int {
	n := d.pending.npassing.Load()
	for _, tl := range d.All() {
		n += tl.inFlight()
	}
	return n
}

// lastIssued returns the last number of each timeline. Nothing comes behind it: the device has stopped, and
// whoever issues checks that under the timeline's mu.
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

// lockToEnd locks mu when the device has stopped. It reports false if the thread of a lane may hold mu
// for ever.
func (tl *Timeline) lockToEnd() bool {
	return !(tl.Lane != nil && tl.Lane.ThreadState() == LaneLost) && wake.Lock(context.Background(), &tl.mu)
}

// Stay keeps the device from giving back what it has, until leave. Its error says that it is too late.
func (d *Device) Stay() error {
	d.calls.Add(1)
	if d.phase.Load() >= isLeft {
		d.calls.Add(-1)
		return d.ClosedError()
	}
	return nil
}

func (d *Device) Leave() { d.calls.Add(-1) }

// takeBack waits until no other device uses anything of this one, and reports false if the context ends before.
func (d *Device) takeBack(ctx context.Context) bool {
	for _, m := range d.lent.end() {
		if !wake.Lock(ctx, &m.Timeline.mu) { // the thread of a lane may have it for long
			return false
		}
		m.Seq = min(m.Seq, m.Timeline.issued.Load()) // it may have been refused
		m.Timeline.mu.Unlock()
		if !m.Await(ctx) || !m.outlasted() {
			return false
		}
	}
	return true
}

// outlasted reports whether another device's work can no longer use anything. A device that is lost behind
// a third one may still run work. So it waits a moment for the stream to pass the mark, or the last work
// in front of a wait for lost work: what comes behind that has not begun.
func (m Mark) outlasted() bool {
	d := m.Timeline.Device
	if m.Timeline.passed.Load() >= m.Seq {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), GiveBackTime)
	defer cancel()
	if d.Stay() != nil { // its streams are gone, or about to be, unless they are left
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
	return stuck > 0 && m.Timeline.hasPassed(stuck-1) // there is an event in front of each wait
}

// End has nobody ask about events of the stream any more, or record one, for it is about to be destroyed.
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

// LossToTell returns the loss of the device, and whether Close has still to return it: nobody has heard of
// it, and it is not what Close brought about.
func (d *Device) LossToTell() (lost error, tell bool) {
	f := d.lost.Load()
	if f == nil {
		return nil, false
	}
	return f.Err, f != d.ending.known
}

// InUse reports whether Close has not waited for all work of other devices that uses what this one has.
func (d *Device) InUse() bool { return d.ending.inUse }

// Overdue reports whether Close has not waited for all calls that use the device.
func (d *Device) Overdue() bool { return d.ending.overdue }

// GivenBack waits until the thread has given everything back, and returns what it could not. Drivers may wait for work that does not end.
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

// DestroyStreams destroys the streams of the device's own queues and of lanes, and others that its owner has
// made, and tells add of errors. If all must be left to the driver it returns the reason, otherwise "". It
// runs on the device's thread.
func (d *Device) DestroyStreams(ctx context.Context, others []driver.Stream, add func(error)) (why string) {
	var streams []driver.Stream
	for _, tl := range d.All() {
		if !tl.Adopted {
			streams = append(streams, tl.Stream)
		}
	}
	for _, h := range append(streams, others...) { // they may have work without a number still, such as frees and timing events
		if why = d.DestroyStream(ctx, h, add); why != "" {
			return why
		}
	}
	return ""
}

// DestroyStream destroys one stream as destroyStreams does.
func (d *Device) DestroyStream(ctx context.Context, h driver.Stream, add func(error)) (why string) {
	err := d.Insist(ctx, func() error { return d.Native.DestroyStream(h) })
	if errors.Is(err, driver.ErrBusy) { // the device is lost behind another one, or was given up
		return "a stream is still at work"
	}
	if err != nil {
		add(fmt.Errorf("gpu: device %s: a stream: %w", d.Info.Name, err))
	}
	return ""
}

// Outlast waits a moment until nothing of the device is at work any more, whose streams have been destroyed. If
// all must be left to the driver it returns the reason, otherwise "".
func (d *Device) Outlast(ctx context.Context, lost bool) (why string) {
	switch {
	case lost && !d.outlastAdopted(ctx):
		return "an adopted stream is still at work"
	case !d.outlastOthers(ctx):
		return "a stream waits for what others bring"
	}
	return ""
}

// DestroyNative destroys the events and closes the driver's device, after all else, and tells add of errors,
// and of what the driver has not taken back before. It runs on the device's thread.
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

// Settle waits until a stream has done all that it has been given, the context ends or the device is lost. It runs on a bound thread.
func (tl *Timeline) Settle(ctx context.Context) error {
	d := tl.Device
	done, err := d.Drain(ctx, tl.Stream, func() bool { return d.lost.Load() != nil })
	if !done && err == nil {
		err = fmt.Errorf("a stream still has work: %w", sema.ErrClosed)
	}
	return err
}

// Drain waits until a stream has done what it has been given. It reports false if the context ends or stop returns true before. It runs on a
// bound thread. If a query fails, it asks again about the same event: a pending event may not be recorded
// again. For the same reason an event that stays pending does not go back to the pool.
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

// Insist calls a function again while its error is driver.ErrBusy, until the context ends: the device may
// soon finish what keeps it busy. It runs on the device's thread, while the device is being closed.
func (d *Device) Insist(ctx context.Context, f func() error) (err error) {
	wake.Until(ctx, func() bool {
		err = f()
		return !errors.Is(err, driver.ErrBusy)
	})
	return err
}

// outlastAdopted waits a moment for adopted streams to pass the work that this device gave them, and reports
// whether they have. If the driver itself has lost the device, they count as having passed.
func (d *Device) outlastAdopted(ctx context.Context) bool {
	for _, tl := range d.All() {
		if !tl.Adopted {
			continue
		}
		if !tl.hasPassedIn(ctx, tl.issued.Load()) { // there is an event behind all that such a stream has
			return false
		}
	}
	return true
}

// hasPassedIn waits until the stream has passed a number, or the driver's Query fails. It reports false if
// the context ends first.
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

// outlastOthers waits a moment until no stream of a device that was given up waits for what others bring any more, and reports whether that
// is so. The streams have been destroyed, which no driver waits for.
func (d *Device) outlastOthers(ctx context.Context) bool {
	if !errors.Is(d.Failed(), ErrGivenUp) {
		return true
	}
	return wake.Until(ctx, func() bool {
		return !slices.ContainsFunc(d.All(), (*Timeline).stillAwaits)
	})
}

// stillAwaits asks the driver whether the stream waits for what others bring. The event behind such a wait is recorded at once (records).
func (tl *Timeline) stillAwaits() bool {
	seq := tl.awaiting.Load()
	if tl.passed.Load() >= seq {
		return false
	}
	at, done, err := tl.query(seq, math.MaxUint64, 1)
	return at != 0 && !done && err == nil
}

// LeaveBehind gives back nothing. Other devices' work uses what the device has, or a stream is still at
// work, or waits for what others bring. To free memory, or to close the device, the driver would wait for
// that stream, and would take no work of the process meanwhile. What that work holds stays held: Order.Free fails, and
// functions that were to be called when memory is used no more are not.
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

// NotTaken notes, if err is not nil, that the driver has not taken back what it was given, for Close to tell. It is not given that
// again: it may have taken it all the same, and made something else of it since.
func (d *Device) NotTaken(err error) {
	if err != nil {
		d.ending.refusalMu.Lock()
		d.ending.refusals = append(d.ending.refusals, err)
		d.ending.refusalMu.Unlock()
	}
}
