package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/closer"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// Closing a device takes five steps. The scheduler takes steps 1 to 4 (Stop and AwaitUsers in
// engine/close.go). In step 5 the device's owner destroys all native objects (deviceOwner.Destroy).
// Steps 3 and 4 stop waiting when the context of Shutdown ends, but each of their waits may take
// half a second even then. Shutdown waits for step 5 until the context ends, and then for at most
// one second.
//
//  1. The device accepts no new work, and issues the work that is ready. The device's lanes are
//     closed.
//  2. The device issues no more work. Parked submissions fail.
//  3. Shutdown waits for work in flight, and for published barriers. If the work or a barrier does
//     not end in time, the device is marked as lost, with a CloseError, and work in flight fails.
//  4. Shutdown waits for calls that use the device, and for other devices' work that uses the
//     device's memory or events.
//  5. No goroutine queries the device's streams any more. The pending-queue thread frees the memory
//     of pools and destroys the streams (endStreams). Then it destroys all other native objects
//     (giveBack). The streams come first, because unfinished work keeps its objects until its
//     stream is destroyed.
//
// If a stream is still at work or waits for other code, or if other devices' work still uses memory
// or events of the device, all native objects are left to the driver, and the points of Order.Free
// fail (engine.Device.LeaveToDriver).

// deviceClosing has the fields of Device that closing uses.
type deviceClosing struct {
	closer        closer.Closer
	failedStreams failedStreams
	// lossReceived is true if the program has received the error of an operation that failed
	// because the device was lost.
	lossReceived atomic.Bool
	flushing     atomic.Bool // the method Closed of the device's observer is running
}

// Close closes the device. Parked work fails with [ErrClosed]. Close waits up to ten seconds for
// work in flight and for running host calls, and then destroys all native objects. A transfer in
// pieces stops after the pieces in flight, and fails. Buffers and modules of the device are freed.
// Semaphores can still be used.
//
// If work has not ended in time, Close gives the device up: waits for that work fail, and Close
// returns a [CloseError]. If the device was lost before Close, Close does not return the loss.
// Close returns a loss that happens while Close runs. If streams have failed and the program has
// not received their errors, Close returns the first of these errors. Failures that the program
// caused, for example by [Semaphore.Fail], do not count. The program has received an error if a
// call returned the error: for example, a wait for the stream or for work behind the failed
// operation.
//
// Closing again returns the same error. If there are several errors, the text is one line about the
// most severe error, and [errors.Is] and [errors.As] find the others.
func (d *Device) Close() error { return closer.InTime(d.Shutdown) }

// Shutdown is like Close, with a context instead of the ten seconds. The device accepts no new
// work, and parked work fails immediately. Shutdown waits for work in flight and host calls until
// the context ends, but at least half a second if they need it. If they have not ended by then, the
// device is given up, and the error is a [CloseError] that wraps the context's error. In any case
// the runtime destroys the native objects, except those that must be left to the driver (see
// [CloseError]). Shutdown returns at most three seconds after the context has ended, or fifteen if
// the device has communicators.
//
// Close and Shutdown may be called concurrently and again. The first of the calls' contexts to end
// bounds all the calls, and the calls return the same error. If a call of the driver, a function of
// [Native] or the tracer's function Flush (trace.TracerOptions) does not return in time, the error
// is [driver.ErrBusy] instead. When that call returns, closing goes on. Another Close waits for
// closing to end.
func (d *Device) Shutdown(ctx context.Context) error {
	if d == nil || d.native.Native == nil {
		return nil
	}
	err, returned := d.closer.Close(ctx, d.close, func() time.Duration {
		if d.native.HasLanes() {
			return 2*comm.AbortTime + 9*engine.GiveBackTime
		}
		return 6 * engine.GiveBackTime
	})
	if !returned {
		what := "a call of the driver or a function of Native"
		if d.flushing.Load() {
			what = "Flush of its tracer, which writes a trace,"
		}
		err = fmt.Errorf("gpu: device %s: close: %s does not return: %w: %w", d.native.Info.Name, what, driver.ErrBusy, ctx.Err())
	}
	return err
}

// A CloseError counts the work that had not ended when [Device.Close] or [Device.Shutdown] gave up
// waiting. [errors.Is] finds [ErrClosed] and the context's error in a CloseError. The submissions
// in flight fail with an error that wraps the CloseError and [ErrLost]. A CloseError may also mean
// that other devices' work still used memory or events of this device. Then all native objects of
// this device are left to the driver.
type CloseError struct {
	Device      string
	Submissions int // in flight
	// Calls counts host calls and other calls that were still using the device. If there are such
	// calls, the pinned memory for transfers ([Stats].Staging) is left to the driver.
	Calls int
	After time.Duration // how long Close had waited
	Err   error         // the context's error; Close's own context ends after ten seconds

	others bool // other devices' work still uses memory or events of this device
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

// Unwrap returns ErrClosed, the error that marks the device as given up, and the context's error.
func (e *CloseError) Unwrap() []error { return []error{ErrClosed, engine.ErrGivenUp, e.Err} }

func (d *Device) closeError(u *engine.Unended) *CloseError {
	return &CloseError{d.native.Info.Name, u.Submissions, u.Calls, u.After, u.Err, u.Others}
}

// close closes the device in the five steps above. The method close is called once.
func (d *Device) close(ctx context.Context) error {
	d.dropped.Stop()
	unended := engine.Unended{Began: time.Now()}
	lanes := d.native.Stop(ctx, &unended, func() error { return d.closeError(&unended) })
	d.native.AwaitUsers(ctx, &unended)
	all := []error{nil, lanes}
	if unended.Err != nil {
		all[0] = d.closeError(&unended)
	}
	all = append(all, d.native.GivenBack(ctx)...)
	lossTold := slices.ContainsFunc(all, func(err error) bool { return errors.Is(err, driver.ErrLost) })
	all = append(all, d.failedStreams.err(d, lossTold || unended.Err != nil))
	if d.memory.Observer != nil {
		d.flushing.Store(true)
		d.memory.Observer.Closed()
		d.flushing.Store(false)
	}
	return errs.Summarize(all)
}

// A giving is step 5 of closing: it destroys the native objects of a device, on the pending-queue
// thread, and gathers the errors.
type giving struct {
	*Device
	ctx  context.Context // limits how long step 5 waits for streams and repeats calls that return ErrBusy
	lost bool            // the device is lost; the method add drops further errors about the loss
	errs []error
}

// Destroy destroys the native objects of the device. It runs on the pending-queue thread.
func (o *deviceOwner) Destroy() []error {
	d := (*Device)(o)
	ctx, cancel := context.WithTimeout(context.Background(), engine.GiveBackTime)
	defer cancel()
	if d.memory.Observer != nil {
		d.memory.Observer.Stopped(ctx)
	}
	g := giving{Device: d, ctx: ctx}
	if lost, tell := d.native.LossToReturn(); lost != nil {
		g.lost = true
		if tell {
			g.errs = append(g.errs, lost)
		}
	}
	why := "other devices' work still uses what it has"
	if !d.native.InUse() {
		why = g.endStreams()
	}
	if why != "" {
		d.memory.LeaveToDriver()
		return append(g.errs, d.native.LeaveToDriver(why))
	}
	g.giveBack()
	return g.errs
}

// add adds an error. Nothing works on a lost device, so only the first error about the loss counts.
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

// endStreams frees the pool memory of buffers and destroys the streams. If all native objects must
// be left to the driver, it returns the reason, otherwise "". A driver's pool frees memory in a
// stream, so usually endStreams frees the memory before it destroys the streams.
//
// If the device is lost and buffers have memory of a driver's pool, the streams may still run work
// that uses this memory, for example because Close gave the device up. Then endStreams makes a new
// stream, destroys the other streams, and frees the memory in the new stream. If the driver itself
// has lost the device, no stream can be made. Then the device runs nothing, and endStreams frees
// the memory first.
func (g *giving) endStreams() (why string) {
	var after driver.Stream
	if g.lost && g.memory.HasNativeMemory() {
		var err error
		after, err = g.native.Native.NewStream()
		if err != nil && !errors.Is(err, driver.ErrLost) {
			g.add(fmt.Errorf("gpu: device %s: a stream: %w", g.native.Info.Name, err))
			return "no stream can be made in which memory of pools is freed"
		}
	}
	if after == 0 {
		g.freePooled(0)
	}
	var streams []driver.Stream // streams that the scheduler does not know
	streams = append(streams, g.recordings.Streams()...)
	streams = append(streams, g.memory.Streams()...)
	if why = g.native.DestroyStreams(g.ctx, streams, g.add); why == "" {
		why = g.native.Outlast(g.ctx, g.lost)
	}
	if after != 0 {
		if why == "" {
			g.freePooled(after)
		}
		why = cmp.Or(why, g.native.DestroyStream(g.ctx, after, g.add))
	}
	return why
}

// freePooled frees the pool memory of buffers. Memory of a driver's pool is freed in the stream h,
// or, if h is 0, in the stream that allocated the memory.
func (g *giving) freePooled(h driver.Stream) {
	for _, err := range g.memory.FreePooled(h) {
		g.add(err)
	}
}

// giveBack destroys all native objects except the streams, which have been destroyed before.
func (g *giving) giveBack() {
	for _, tl := range g.native.All() {
		tl.Abandon()
	}
	g.mu.Lock()
	code, timings := g.code, g.timings
	g.code, g.timings = nil, nil
	g.mu.Unlock()
	for t := range timings {
		t.closed.Store(true)
		g.add(t.destroy())
	}
	for _, err := range g.recordings.Close() {
		g.add(err)
	}
	for x := range code {
		x.closed.Store(true)
		g.add(g.native.Native.Unload(x.mod))
	}
	for _, err := range g.events.Close(g.ctx) {
		g.add(err)
	}
	if !g.native.Overdue() { // calls that have not ended may still use the pinned memory
		g.add(g.memory.Stage.Close())
	}
	for _, err := range g.memory.Close() {
		g.add(err)
	}
	g.native.DestroyNative(g.ctx, g.add)
}
