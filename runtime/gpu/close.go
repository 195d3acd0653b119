package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu/internal/wake"
)

// The phases of a device, in order.
const (
	isOpen    int32 = iota
	isClosing       // takes nothing new
	isStopped       // issues nothing any more
	isLeft          // no call may begin to use what it has
	isEnded         // the thread gives everything back; set under mu, for who hands something over to it
)

// deviceClosing is how far a device has been closed.
type deviceClosing struct {
	phase     atomic.Int32 // isOpen and so on; only grows
	closer    closer
	closed    chan struct{} // the thread has ended
	overdue   bool          // Close has not waited for all host calls
	inUse     bool          // nor for all work of other devices that uses what this one has
	left      []error       // of what the thread could not give back
	known     *failure      // a loss that Close does not return, for it was known before, or comes of its own CloseError
	refusalMu sync.Mutex    // a leaf
	refusals  []error       // errors of giving something back that no caller was returned; Close returns them

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
		if len(d.listChannels()) > 0 {
			return 2*abortTime + 9*giveBackTime
		}
		return 6 * giveBackTime
	})
	if !returned {
		what := "a call of the driver"
		select {
		case <-d.closed: // the driver has taken everything back
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

// close takes the device through its phases. It is called once.
func (d *Device) close(ctx context.Context) error {
	began := time.Now()
	unended := CloseError{Device: d.info.Name}
	giveUp := func() { unended.After, unended.Err = time.Since(began), ctx.Err() }
	d.known = d.lost.Load()

	d.phase.Store(isClosing)
	wake.Until(ctx, func() bool { return !d.toIssue() || d.lost.Load() != nil })
	channels := d.closeChannels(ctx)

	d.phase.Store(isStopped)
	within, cancel := lasting(ctx)
	defer cancel()
	var last frontier
	for _, q := range d.all() {
		last = append(last, q.tl.lastIssued())
	}
	d.cancelParked(d.closedError(), false)
	d.wantPassing()
	switch ended := last.await(within) && d.npassing.Wait(within); {
	case !ended:
		unended.Submissions = max(d.Stats().InFlight, 1)
		giveUp()
		why := unended // which may still change
		d.lose(&why)
		if f := d.lost.Load(); errors.Is(f.err, &why) { // else somebody else has found a loss
			d.known = f
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
		d.overdue = true
		unended.Calls = max(d.calls.Load(), 1)
		giveUp()
	}
	within, cancel = lasting(ctx)
	defer cancel()
	if !d.takeBack(within) {
		d.inUse, unended.others = true, true
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
	errs := []error{nil, channels}
	if unended.Err != nil {
		errs[0] = &unended
	}
	errs = append(errs, d.givenBack(ctx)...)
	lossTold := slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, driver.ErrLost) })
	errs = append(errs, d.failedStreams.err(d, lossTold || unended.Err != nil))
	d.opt.Tracer.flush()
	return summarize(errs)
}

// givenBack waits until the thread has given everything back, and returns what it could not. Drivers may wait for work that does not end.
func (d *Device) givenBack(ctx context.Context) []error {
	select {
	case <-d.closed:
		return d.left
	case <-ctx.Done():
	}
	late := time.NewTimer(2 * giveBackTime)
	defer late.Stop()
	select {
	case <-d.closed:
		return d.left
	case <-late.C:
		return []error{fmt.Errorf("gpu: device %s: the driver has not taken everything back %v after the context of Close ended: %w: %w",
			d.info.Name, 2*giveBackTime, driver.ErrBusy, ctx.Err())}
	}
}

// lastIssued returns behind which work the stream gets nothing: the device has stopped, which who issues looks at under mu.
func (tl *timeline) lastIssued() mark {
	if tl.lockToEnd() {
		defer tl.mu.Unlock()
	}
	return mark{tl, tl.issued.Load()}
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

// lockToEnd locks mu when the device has stopped, but not that of a channel whose thread the library has kept: it reports false.
func (tl *timeline) lockToEnd() bool {
	return !(tl.ch != nil && tl.ch.phase() == channelAbandoned) && wake.Lock(context.Background(), &tl.mu)
}

// stay keeps the device from giving back what it has, until leave. Its error says that it is too late.
func (d *Device) stay() error {
	d.calls.Add(1)
	if d.phase.Load() >= isLeft {
		d.calls.Add(-1)
		return d.closedError()
	}
	return nil
}

func (d *Device) leave() { d.calls.Add(-1) }

// takeBack waits until no other device uses anything of this one, and reports false if the context ends before.
func (d *Device) takeBack(ctx context.Context) bool {
	for _, m := range d.lent.end() {
		if !wake.Lock(ctx, &m.tl.mu) { // a channel's thread may have it while it waits for other ranks
			return false
		}
		m.seq = min(m.seq, m.tl.issued.Load()) // it may have been refused
		m.tl.mu.Unlock()
		if !m.await(ctx) {
			return false
		}
	}
	return true
}
