package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// Closing a device takes these steps, in the order of this file. Steps 3 and 4 wait until the context of
// Shutdown ends, and at least half a second each. Close waits for step 5 one second beyond the context.
//
//  1. The device takes nothing new, and issues what is ready. Its lanes are closed.
//  2. It issues nothing any more. What is parked fails.
//  3. It waits for what is in flight, and for barriers that pass behind that. If these do not end in
//     time the device is lost, by a CloseError, and what is in flight fails.
//  4. It waits for calls that use what it has, and for work of other devices that does.
//  5. Nobody asks its streams about anything any more. The device's thread gives everything back:
//     streams first, for what their work holds is let go of only when they are gone.
//
// If a stream cannot be destroyed, or other devices' work still uses something, all that the device has
// is left to the driver, and whoever waits to be told that memory is free gets an error (leaveBehind).

// The phases of a device, in order.
const (
	isOpen    int32 = iota
	isClosing       // takes nothing new
	isStopped       // issues nothing any more
	isLeft          // no call may begin to use what it has
	isEnded         // the thread gives everything back; set under mu, for who hands something over to it
)

// An ending is what has become of a native device that is being closed.
type ending struct {
	over       chan struct{} // closed when the thread has ended
	overdue    bool          // Close has not waited for all host calls
	inUse      bool          // Close has not waited for all work of other devices that uses what this one has
	leftBehind atomic.Bool   // all that it has is left to the driver
	left       []error       // of what the thread could not give back
	known      *failure      // a loss that Close does not return, for it was known before, or comes of its own CloseError
	refusalMu  sync.Mutex    // protects refusals; a leaf
	refusals   []error       // errors of giving something back that no caller was returned; Close returns them
}

// deviceClosing is what closing a device takes besides.
type deviceClosing struct {
	closer        closer
	failedStreams failedStreams
	lossReceived  atomic.Bool // the program has received the error of an operation that failed because the device was lost
}

// Close ends the device: work that is parked fails with [ErrClosed], work in flight and host calls that are running are
// waited for, up to ten seconds, and everything native is given back. Transfers in pieces end with what is in flight and
// fail. Buffers and executables of the device are freed with it. Semaphores live on. If work has not ended by then the device is
// given up, so that what waits for it fails, and the error is a [CloseError]. Close of a device that is known to be lost does not return that
// loss; a loss that closing finds it does return. It also returns the first error of streams that the program has not received: nobody has waited
// for the stream, or for work behind it, and no call has returned the error. Closing again returns the same error. As text it is one line, of what is gravest; [errors.Is] and [errors.As] find the rest.
func (d *Device) Close() error { return closeInTime(d.Shutdown) }

// Shutdown is Close with a context in place of the ten seconds: shorter, or longer. The device takes nothing new and what is parked
// fails at once; work in flight and host calls are waited for until the context ends. Then the device is given up, what can be is
// given back, and Shutdown returns within three seconds, or fifteen if communicators of channels have to be aborted, with a [CloseError] that
// wraps the context's error. What is in flight gets half a second in any case.
//
// Close and Shutdown may be called concurrently and again: the first of their contexts to end bounds all of them, and they return the
// same error. One that cannot wait for a call of the driver to return, or of [TracerOptions].Flush, has an error that is [driver.ErrBusy] instead. Closing
// goes on when that call returns, and another Close waits for it.
func (d *Device) Shutdown(ctx context.Context) error {
	if d == nil || d.drv == nil {
		return nil
	}
	err, returned := d.closer.close(ctx, d.close, func() time.Duration {
		if len(d.listLanes()) > 0 {
			return 2*abortTime + 9*giveBackTime
		}
		return 6 * giveBackTime
	})
	if !returned {
		what := "a call of the driver"
		select {
		case <-d.ending.over: // the driver has taken everything back
			what = "Flush of its tracer, which writes a trace,"
		default:
		}
		err = fmt.Errorf("gpu: device %s: close: %s does not return: %w: %w", d.info.Name, what, driver.ErrBusy, ctx.Err())
	}
	return err
}

// A CloseError says what had not ended when [Device.Close] or [Device.Shutdown] gave up waiting. It is [ErrClosed] and the
// context's error; what waits for the submissions fails with it, and with [driver.ErrLost]. It may also be that other devices' work still
// used memory or events of this one, which are left to the driver then.
type CloseError struct {
	Device      string
	Submissions int           // in flight
	Calls       int           // host calls and other calls that were still using the device, for which its pinned memory is left
	After       time.Duration // how long Close had waited
	Err         error         // the context's error; Close's own context ends after ten seconds

	others bool // other devices' work still uses what the device has
}

func (e *CloseError) Error() string {
	var what []string
	if e.Submissions > 0 {
		what = append(what, fmt.Sprintf("submissions in flight (%d)", e.Submissions))
	}
	if e.Calls > 0 {
		what = append(what, fmt.Sprintf("host calls (%d)", e.Calls))
	}
	if e.others {
		what = append(what, "other devices' work that uses what it has")
	}
	return fmt.Sprintf("gpu: device %s: %s did not end within %v of Close: %v", e.Device, strings.Join(what, " and "),
		e.After.Round(time.Millisecond), e.Err)
}

// Unwrap returns ErrClosed and the context's error.
func (e *CloseError) Unwrap() []error { return []error{ErrClosed, e.Err} }

// close takes the device through its steps. It is called once.
func (d *Device) close(ctx context.Context) error {
	began := time.Now()
	unended := CloseError{Device: d.info.Name}
	giveUp := func() { unended.After, unended.Err = time.Since(began), ctx.Err() }
	d.ending.known = d.lost.Load()

	d.phase.Store(isClosing)
	wake.Until(ctx, func() bool { return !d.toIssue() || d.lost.Load() != nil })
	lanes := d.closeLanes(ctx)

	d.phase.Store(isStopped)
	last := d.lastIssued()
	d.cancelParked(d.closedError(), false)
	d.wantPassing()
	within, cancel := lasting(ctx)
	defer cancel()
	switch ended := last.await(within) && d.pending.npassing.Wait(within); {
	case !ended:
		unended.Submissions = max(d.Stats().InFlight, 1)
		giveUp()
		why := unended // which may still change
		d.lose(&why)
		if f := d.lost.Load(); errors.Is(f.err, &why) { // else somebody else has found a loss
			d.ending.known = f
		}
	case d.lost.Load() == nil:
		d.askTimes() // while the clocks can be compared
	}
	if d.lost.Load() != nil { // the goroutine that found the loss may not have done this yet
		d.failInFlight()
	}
	d.cancelParked(d.closedError(), true)

	d.phase.Store(isLeft)
	within, cancel = lasting(ctx) // host calls may have waited for what has failed now
	defer cancel()
	if !d.calls.Wait(within) {
		d.ending.overdue = true
		unended.Calls = max(d.calls.Load(), 1)
		giveUp()
	}
	within, cancel = lasting(ctx)
	defer cancel()
	if !d.takeBack(within) {
		d.ending.inUse, unended.others = true, true
		giveUp()
	}

	d.poller.Stop()
	for _, q := range d.all() {
		q.tl.end()
	}
	d.mu.Lock()
	d.phase.Store(isEnded)
	d.mu.Unlock()
	d.signalThread()
	errs := []error{nil, lanes}
	if unended.Err != nil {
		errs[0] = &unended
	}
	errs = append(errs, d.givenBack(ctx)...)
	lossTold := slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, driver.ErrLost) })
	errs = append(errs, d.failedStreams.err(d, lossTold || unended.Err != nil))
	d.opt.Tracer.flush()
	return summarize(errs)
}

// lastIssued returns the last number of each timeline. Nothing comes behind it: the device has stopped, and
// whoever issues checks that under the timeline's mu.
func (d *nativeDevice) lastIssued() (last frontier) {
	for _, q := range d.all() {
		locked := q.tl.lockToEnd()
		last = append(last, mark{q.tl, q.tl.issued.Load()})
		if locked {
			q.tl.mu.Unlock()
		}
	}
	return last
}

// lockToEnd locks mu when the device has stopped. It reports false if the thread of a lane may hold mu
// for ever.
func (tl *timeline) lockToEnd() bool {
	return !(tl.lane != nil && tl.lane.threadState() == laneLost) && wake.Lock(context.Background(), &tl.mu)
}

// stay keeps the device from giving back what it has, until leave. Its error says that it is too late.
func (d *nativeDevice) stay() error {
	d.calls.Add(1)
	if d.phase.Load() >= isLeft {
		d.calls.Add(-1)
		return d.closedError()
	}
	return nil
}

func (d *nativeDevice) leave() { d.calls.Add(-1) }

// takeBack waits until no other device uses anything of this one, and reports false if the context ends before.
func (d *nativeDevice) takeBack(ctx context.Context) bool {
	for _, m := range d.lent.end() {
		if !wake.Lock(ctx, &m.tl.mu) { // the thread of a lane may have it for long
			return false
		}
		m.seq = min(m.seq, m.tl.issued.Load()) // it may have been refused
		m.tl.mu.Unlock()
		if !m.await(ctx) || !m.outlasted() {
			return false
		}
	}
	return true
}

// outlasted reports whether another device's work can no longer use anything. A device that is lost behind
// a third one may still run work. So it waits a moment for the stream to pass the mark, or the last work
// in front of a wait for lost work: what comes behind that has not begun.
func (m mark) outlasted() bool {
	d := m.tl.dev
	if m.tl.passed.Load() >= m.seq {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTime)
	defer cancel()
	if d.stay() != nil { // its streams are gone, or about to be, unless they are left
		select {
		case <-d.ending.over:
			return !d.ending.leftBehind.Load()
		case <-ctx.Done():
			return false
		}
	}
	defer d.leave()
	if m.tl.hasPassedIn(ctx, m.seq) {
		return true
	}
	stuck := m.tl.firstBehindLost(m.seq)
	return stuck > 0 && m.tl.hasPassed(stuck-1) // there is an event in front of each wait
}

// end has nobody ask about events of the stream any more, or record one, for it is about to be destroyed.
func (tl *timeline) end() {
	wake.Lock(context.Background(), &tl.askMu)
	defer tl.askMu.Unlock()
	if tl.lockToEnd() {
		defer tl.mu.Unlock()
	}
	tl.ended.Store(true)
}

// givenBack waits until the thread has given everything back, and returns what it could not. Drivers may wait for work that does not end.
func (d *nativeDevice) givenBack(ctx context.Context) []error {
	select {
	case <-d.ending.over:
		return d.ending.left
	case <-ctx.Done():
	}
	late := time.NewTimer(2 * giveBackTime)
	defer late.Stop()
	select {
	case <-d.ending.over:
		return d.ending.left
	case <-late.C:
		return []error{fmt.Errorf("gpu: device %s: the driver has not taken everything back %v after the context of Close ended: %w: %w",
			d.info.Name, 2*giveBackTime, driver.ErrBusy, ctx.Err())}
	}
}

// A giving gives back what a device holds, on the device's thread, and gathers the errors.
type giving struct {
	*Device
	ctx  context.Context // of what is asked again and again
	lost bool            // the device is, and that has been said
	errs []error
}

// destroy gives back what the device holds. It runs on the device's thread.
func (d *Device) destroy() []error {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTime)
	defer cancel()
	defer d.opt.Tracer.ended(d)
	g := giving{Device: d, ctx: ctx}
	if found := d.lost.Load(); found != nil {
		g.lost = true
		if found != d.ending.known {
			g.errs = append(g.errs, found.err)
		}
	}
	why := "other devices' work still uses what it has"
	if !d.ending.inUse {
		why = g.endStreams()
	}
	if why != "" {
		return append(g.errs, d.leaveBehind(why))
	}
	g.giveBack()
	return g.errs
}

// add notes an error. Nothing works on a lost device, and to say so once is enough.
func (g *giving) add(err error) {
	if errors.Is(err, driver.ErrLost) {
		if g.lost {
			return
		}
		g.lost = true
	}
	if err != nil {
		g.errs = append(g.errs, err)
	}
}

// endStreams frees the memory of pools' buffers, which takes streams, and destroys the streams. If all
// must be left to the driver it returns the reason, otherwise "".
//
// The streams of a device that is lost behind another one, or was given up, may still run work. When they
// are gone, nothing uses the memory any more, and a new stream frees it. The driver makes none if it has
// lost the device itself, which then runs nothing.
func (g *giving) endStreams() (why string) {
	var after driver.Stream
	if g.lost {
		after, _ = g.drv.NewStream()
	}
	if after == 0 {
		g.freePooled(0)
	} else {
		defer func() {
			if why == "" {
				g.freePooled(after)
			}
			g.add(g.insist(g.ctx, func() error { return g.drv.DestroyStream(after) }))
		}()
	}
	streams := []driver.Stream{}
	for _, q := range g.all() {
		if tl := q.tl; !tl.adopted {
			streams = append(streams, tl.h)
		}
	}
	if g.captures != 0 {
		streams = append(streams, g.captures)
	}
	g.pools.mu.Lock()
	busy := g.pools.streams
	g.pools.mu.Unlock()
	streams = append(streams, busy...)
	if h := g.times.clock.stream; h != 0 {
		streams = append(streams, h)
	}
	for _, h := range streams { // they may have work without a number still, such as frees and timing events
		err := g.insist(g.ctx, func() error { return g.drv.DestroyStream(h) })
		if errors.Is(err, driver.ErrBusy) { // the device is lost behind another one, or was given up
			return "a stream is still at work"
		}
		if err != nil {
			g.add(fmt.Errorf("gpu: device %s: a stream: %w", g.info.Name, err))
		}
	}
	switch {
	case g.lost && !g.outlastAdopted(g.ctx):
		return "an adopted stream is still at work"
	case !g.outlastOthers(g.ctx):
		return "a stream waits for what others bring"
	}
	return ""
}

// freePooled frees the memory of pools' buffers, that of drivers' pools in a stream, or in those which
// allocated it if that is 0.
func (g *giving) freePooled(h driver.Stream) {
	for _, err := range g.buffers.close(true, h) {
		g.add(err)
	}
}

// giveBack gives back all but the streams, which are gone.
func (g *giving) giveBack() {
	for _, q := range g.all() {
		q.tl.abandon()
	}
	for _, err := range g.times.close(g.ctx, g.Device) {
		g.add(err)
	}
	g.mu.Lock()
	recordings, code, shared, timings := g.recordings, g.code, g.shared, g.timings
	g.recordings, g.code, g.shared, g.timings = nil, nil, nil, nil
	g.mu.Unlock()
	for t := range timings {
		t.closed.Store(true)
		g.add(t.destroy())
	}
	for c := range recordings {
		c.closed.Store(true)
		g.add(c.destroy())
	}
	for x := range code {
		x.closed.Store(true)
		g.add(g.drv.Unload(x.mod))
	}
	for e := range shared {
		e.closed.Store(true)
		g.add(g.insist(g.ctx, e.giveBack))
		e.over()
	}
	if g.standsIn.Size > 0 {
		g.add(g.drv.Free(g.standsIn))
	}
	if !g.ending.overdue { // else calls may still use the memory
		g.add(g.stage.close())
	}
	for _, err := range append(g.pools.close(), g.buffers.close(false, 0)...) { // in this order, for pools may leave buffers
		g.add(err)
	}
	g.add(g.events.close(g.ctx))
	g.ending.refusalMu.Lock()
	refusals := g.ending.refusals
	g.ending.refusalMu.Unlock()
	for _, err := range refusals {
		g.add(err)
	}
	g.add(g.drv.Close())
}

// settle waits until a stream has done all that it has been given, the context ends or the device is lost. It runs on a bound thread.
func (tl *timeline) settle(ctx context.Context) error {
	d := tl.dev
	done, err := d.drain(ctx, tl.h, func() bool { return d.lost.Load() != nil })
	if !done && err == nil {
		err = fmt.Errorf("a stream still has work: %w", ErrClosed)
	}
	return err
}

// drain waits until a stream has done what it has been given. It reports false if the context ends or stop returns true before. It runs on a
// bound thread. If a query fails, it asks again about the same event: a pending event may not be recorded
// again. For the same reason an event that stays pending does not go back to the pool.
func (d *nativeDevice) drain(ctx context.Context, h driver.Stream, stop func() bool) (done bool, err error) {
	e, err := d.events.get()
	if err != nil {
		return false, err
	}
	if err := d.drv.Record(e.h, h); err != nil {
		e.drop()
		return false, err
	}
	failed := 0
	ended := wake.Until(ctx, func() bool {
		if done, err = d.drv.Query(e.h); err != nil {
			failed++
		}
		return done || failed >= maxFailed || errors.Is(err, driver.ErrLost) || stop()
	})
	switch {
	case done:
		e.drop()
		return true, nil
	case !ended:
		return false, nil
	}
	return false, err
}

// insist calls a function again while its error is driver.ErrBusy, until the context ends: the device may
// soon finish what keeps it busy. It runs on the device's thread, while the device is being closed.
func (d *nativeDevice) insist(ctx context.Context, f func() error) (err error) {
	wake.Until(ctx, func() bool {
		err = f()
		return !errors.Is(err, driver.ErrBusy)
	})
	return err
}

// outlastAdopted waits a moment for adopted streams to pass the work that this device gave them, and reports
// whether they have. If the driver itself has lost the device, they count as having passed.
func (d *nativeDevice) outlastAdopted(ctx context.Context) bool {
	for _, q := range d.all() {
		if !q.tl.adopted {
			continue
		}
		if !q.tl.hasPassedIn(ctx, q.tl.issued.Load()) { // there is an event behind all that such a stream has
			return false
		}
	}
	return true
}

// hasPassedIn waits until the stream has passed a number, or the driver's Query fails. It reports false if
// the context ends first.
func (tl *timeline) hasPassedIn(ctx context.Context, seq uint64) bool {
	e, _ := tl.eventBehind(seq)
	if e == nil {
		return true
	}
	defer e.drop()
	return wake.Until(ctx, func() bool {
		done, err := tl.dev.drv.Query(e.h)
		return done || err != nil
	})
}

// outlastOthers waits a moment until no stream of a device that was given up waits for what others bring any more, and reports whether that
// is so. The streams have been destroyed, which no driver waits for.
func (d *nativeDevice) outlastOthers(ctx context.Context) bool {
	var gaveUp *CloseError
	if !errors.As(d.failed(), &gaveUp) {
		return true
	}
	return wake.Until(ctx, func() bool {
		return !slices.ContainsFunc(d.all(), func(q *Queue) bool { return q.tl.stillAwaits() })
	})
}

// stillAwaits asks the driver whether the stream waits for what others bring. The event behind such a wait is recorded at once (records).
func (tl *timeline) stillAwaits() bool {
	seq := tl.awaiting.Load()
	if tl.passed.Load() >= seq {
		return false
	}
	at, done, err := tl.query(seq, math.MaxUint64, 1)
	return at != 0 && !done && err == nil
}

// leaveBehind gives back nothing. Other devices' work uses what the device has, or a stream is still at
// work, or waits for what others bring. To free memory, or to close the device, the driver would wait for
// that stream, and would take no work of the process meanwhile. What that work holds stays held: Order.Free fails, and
// functions that were to be called when memory is used no more are not.
func (d *nativeDevice) leaveBehind(why string) error {
	d.ending.leftBehind.Store(true)
	left := fmt.Errorf("gpu: device %s: %s: what the device has is left to the driver: %w", d.info.Name, why, driver.ErrBusy)
	for _, q := range d.all() {
		q.tl.retireMu.Lock()
		q.tl.ring.mu.Lock()
		for seq := q.tl.ring.head; seq <= q.tl.issued.Load(); seq++ {
			if l := q.tl.ring.at(seq).lent; l != nil {
				l.tell(left)
			}
		}
		q.tl.ring.mu.Unlock()
		q.tl.retireMu.Unlock()
	}
	return left
}

// notTaken notes, if err is not nil, that the driver has not taken back what it was given, for Close to tell. It is not given that
// again: it may have taken it all the same, and made something else of it since.
func (d *nativeDevice) notTaken(err error) {
	if err != nil {
		d.ending.refusalMu.Lock()
		d.ending.refusals = append(d.ending.refusals, err)
		d.ending.refusalMu.Unlock()
	}
}
