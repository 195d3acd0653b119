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
	"github.com/puregpu/puregpu/runtime/internal/engine"
)

// Closing a device takes these steps. The native device takes steps 1 to 4 (nativeclose.go), and its owner
// gives everything back (destroy). Steps 3 and 4 wait until the context of Shutdown ends, and at least half
// a second each. Close waits for step 5 one second beyond the context.
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
	if d == nil || d.native.Native == nil {
		return nil
	}
	err, returned := d.closer.close(ctx, d.close, func() time.Duration {
		if d.native.HasLanes() {
			return 2*abortTime + 9*engine.GiveBackTime
		}
		return 6 * engine.GiveBackTime
	})
	if !returned {
		what := "a call of the driver"
		select {
		case <-d.native.IsOver(): // the driver has taken everything back
			what = "Flush of its tracer, which writes a trace,"
		default:
		}
		err = fmt.Errorf("gpu: device %s: close: %s does not return: %w: %w", d.native.Info.Name, what, driver.ErrBusy, ctx.Err())
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
func (e *CloseError) Unwrap() []error { return []error{ErrClosed, engine.ErrGivenUp, e.Err} }

// closeError makes an error of what has not ended so far.
func (d *Device) closeError(u *engine.Unended) *CloseError {
	return &CloseError{d.native.Info.Name, u.Submissions, u.Calls, u.After, u.Err, u.Others}
}

// close takes the device through its steps. It is called once.
func (d *Device) close(ctx context.Context) error {
	unended := engine.Unended{Began: time.Now()}
	lanes := d.native.Stop(ctx, &unended, func() error { return d.closeError(&unended) })
	if d.native.Loss() == nil {
		d.askTimes() // while the clocks can be compared
	}
	d.native.LetGoOf(ctx, &unended)
	errs := []error{nil, lanes}
	if unended.Err != nil {
		errs[0] = d.closeError(&unended)
	}
	errs = append(errs, d.native.GivenBack(ctx)...)
	lossTold := slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, driver.ErrLost) })
	errs = append(errs, d.failedStreams.err(d, lossTold || unended.Err != nil))
	d.opt.Tracer.flush()
	return summarize(errs)
}

// A giving gives back what a device holds, on the device's thread, and gathers the errors.
type giving struct {
	*Device
	ctx  context.Context // of what is asked again and again
	lost bool            // the device is, and that has been said
	errs []error
}

// Destroy gives back what the device holds. It runs on the device's thread.
func (o *deviceOwner) Destroy() []error {
	d := (*Device)(o)
	ctx, cancel := context.WithTimeout(context.Background(), engine.GiveBackTime)
	defer cancel()
	defer d.opt.Tracer.ended(d)
	g := giving{Device: d, ctx: ctx}
	if lost, tell := d.native.LossToTell(); lost != nil {
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
		return append(g.errs, d.native.LeaveBehind(why))
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
	if g.lost && g.buffers.haveNative() {
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
	var streams []driver.Stream // of the layers above the scheduler
	if g.captures != 0 {
		streams = append(streams, g.captures)
	}
	g.pools.mu.Lock()
	streams = append(streams, g.pools.streams...)
	g.pools.mu.Unlock()
	if h := g.times.clock.stream; h != 0 {
		streams = append(streams, h)
	}
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

// freePooled frees the memory of pools' buffers. Memory of a driver's pool is freed in the stream h, or in
// the stream that allocated it if h is 0.
func (g *giving) freePooled(h driver.Stream) {
	for _, err := range g.buffers.close(true, h) {
		g.add(err)
	}
}

// giveBack gives back all but the streams, which are gone.
func (g *giving) giveBack() {
	for _, tl := range g.native.All() {
		tl.Abandon()
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
		g.add(g.native.Native.Unload(x.mod))
	}
	for e := range shared {
		e.closed.Store(true)
		g.add(g.native.Insist(g.ctx, e.giveBack))
		e.over()
	}
	if g.standsIn.Size > 0 {
		g.add(g.native.Native.Free(g.standsIn))
	}
	if !g.native.Overdue() { // else calls may still use the memory
		g.add(g.stage.close())
	}
	for _, err := range append(g.pools.close(), g.buffers.close(false, 0)...) { // in this order, for pools may leave buffers
		g.add(err)
	}
	g.native.DestroyNative(g.ctx, g.add)
}
