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
	phase      atomic.Int32 // isOpen and so on; only grows
	closer     closer
	closed     chan struct{} // the thread has ended
	overdue    bool          // Close has not waited for all host calls
	left       []error       // of what the thread could not give back
	giveBackBy time.Time     // until when it tries, the thread's
	refusalMu  sync.Mutex    // a leaf
	refusals   []error       // errors of giving something back that no caller was returned; Close returns them
}

func (d *Device) busy() bool {
	for _, q := range d.all() {
		if q.tl.busy() {
			return true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.npassing > 0
}

// pollAll runs on the device's thread, or anywhere if the driver lets it.
func (d *Device) pollAll() (worked bool) {
	for _, q := range d.all() {
		if q.tl.busy() {
			worked = q.tl.poll(q.tl.issued.Load(), 1) || worked
		}
	}
	return worked
}

// Close ends the device: work that is parked fails with [ErrClosed], work in flight and host calls that are running are
// waited for, up to ten seconds, and everything native is given back. Transfers in pieces end with what is in flight and
// fail. Buffers and executables of the device are freed with it. Semaphores live on. If work has not ended by then the device is
// given up, so that what waits for it fails, and the error is a [CloseError]. Close of a device that is known to be lost does not return that
// loss; a loss that closing finds it does return. Closing again returns the same error. As text it is one line, of what is gravest; [errors.Is] and [errors.As] find the rest.
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
			return 2*abortTime + 8*giveBackTime
		}
		return 5 * giveBackTime
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

// closeTime is how long Close may take, and abortTime how long it may take in addition to end the work of a communicator that was aborted.
const (
	closeTime = 10 * time.Second
	abortTime = 5 * time.Second
)

// closeInTime makes a Close of a Shutdown.
func closeInTime(shutdown func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return shutdown(ctx)
}

// A closer closes something once for all who call it.
type closer struct {
	mu     sync.Mutex
	done   chan struct{} // closed when err is set; nil until somebody closes
	giveUp context.CancelCauseFunc
	err    error
}

// A closing is the context of what a closer calls. It ends with the first of the callers' contexts, and has its error.
type closing struct{ context.Context }

func (c closing) Err() error { return context.Cause(c.Context) }

// close calls fn on a goroutine of its own, once, waits for it, and returns its error. After the context has ended it waits for the
// grace period at most, and reports whether fn has returned.
func (c *closer) close(ctx context.Context, fn func(context.Context) error, grace func() time.Duration) (err error, returned bool) {
	if ctx == nil {
		return argument("shutdown", "no context"), true
	}
	c.mu.Lock()
	if c.done == nil {
		c.done = make(chan struct{})
		var all context.Context
		all, c.giveUp = context.WithCancelCause(context.Background())
		go func() {
			defer c.giveUp(nil)
			defer close(c.done)
			c.err = fn(closing{all})
		}()
	}
	c.mu.Unlock()
	select {
	case <-c.done:
		return c.err, true
	case <-ctx.Done():
	}
	c.giveUp(ctx.Err())
	late := time.NewTimer(grace())
	defer late.Stop()
	select {
	case <-c.done:
		return c.err, true
	case <-late.C:
		return nil, false
	}
}

// lasting returns a context that ends with ctx, but not before giveBackTime has passed: work that is done must still be found done, and
// calls that wait for what has just failed must return.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	least := time.Now().Add(giveBackTime)
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(time.Until(least), cancel) })
	return within, func() {
		stop()
		cancel()
	}
}

// A CloseError says what had not ended when [Device.Close] or [Device.Shutdown] gave up waiting. It is [ErrClosed] and the
// context's error; what waits for the submissions fails with it, and with [driver.ErrLost].
type CloseError struct {
	Device      string
	Submissions int           // in flight
	Calls       int           // host calls and other calls that were still using the device, for which its pinned memory is left
	After       time.Duration // how long Close had waited
	Err         error         // the context's error; Close's own context ends after ten seconds
}

func (e *CloseError) Error() string {
	var what []string
	if e.Submissions > 0 {
		what = append(what, fmt.Sprintf("submissions in flight (%d)", e.Submissions))
	}
	if e.Calls > 0 {
		what = append(what, fmt.Sprintf("host calls (%d)", e.Calls))
	}
	return fmt.Sprintf("gpu: device %s: %s did not end within %v of Close: %v", e.Device, strings.Join(what, " and "),
		e.After.Round(time.Millisecond), e.Err)
}

// Unwrap returns ErrClosed and the context's error.
func (e *CloseError) Unwrap() []error { return []error{ErrClosed, e.Err} }

func (d *Device) close(ctx context.Context) error {
	began := time.Now()
	d.phase.Store(isClosing)
	wake.Until(ctx, func() bool { return !d.toIssue() || d.lost.Load() != nil })
	channels := d.closeChannels(ctx)
	within, cancel := lasting(ctx)
	defer cancel()
	d.phase.Store(isStopped)
	for _, q := range d.all() {
		q.tl.letThrough()
	}
	err := d.closedError()
	d.cancelParked(err, false)
	for _, q := range d.all() {
		q.tl.want(q.tl.issued.Load())
	}
	d.wantPassing()
	ended := wake.Until(within, func() bool {
		if d.caps.SubmitAnywhere {
			for d.busy() && d.pollAll() {
			}
		}
		return !d.busy() || d.lost.Load() != nil
	})
	left := CloseError{Device: d.info.Name}
	if ended && d.lost.Load() == nil {
		d.askTimes() // while the clocks can be compared
	}
	if !ended {
		left.Submissions = max(d.Stats().InFlight, 1)
		left.After, left.Err = time.Since(began), ctx.Err()
		why := left // the other may still change
		d.lose(&why)
	}
	d.cancelParked(err, true)
	within, cancel = lasting(ctx) // host calls may have waited for what fails now
	defer cancel()
	wake.Until(within, func() bool { return d.calls.Load() == 0 })
	d.takeBack(within)
	d.phase.Store(isLeft)
	if !wake.Until(within, func() bool { return d.calls.Load() == 0 }) { // those that came before that
		d.overdue = true
		left.Calls = max(int(d.calls.Load()), 1)
		left.After, left.Err = time.Since(began), ctx.Err()
	}
	if d.poller != nil {
		d.poller.Stop()
	}
	for _, q := range d.all() { // whoever asks about an event, or records one, gets through
		untilFree(&q.tl.askMu)
		q.tl.letThrough()
	}
	d.mu.Lock()
	d.phase.Store(isEnded)
	d.mu.Unlock()
	d.signalThread()
	errs := []error{nil, channels}
	if left.Err != nil {
		errs[0] = &left
	}
	select {
	case <-d.closed: // the thread has given everything back
		errs = append(errs, d.left...)
	case <-ctx.Done():
		late := time.NewTimer(2 * giveBackTime)
		defer late.Stop()
		select {
		case <-d.closed:
			errs = append(errs, d.left...)
		case <-late.C: // drivers may wait for work that does not end
			errs = append(errs, fmt.Errorf("gpu: device %s: the driver has not taken everything back %v after the context of Close ended: %w: %w",
				d.info.Name, 2*giveBackTime, driver.ErrBusy, ctx.Err()))
		}
	}
	d.opt.Tracer.flush()
	return summarize(errs)
}

// letThrough waits for who is issuing, but not for a channel's thread that the library has kept.
func (tl *timeline) letThrough() {
	if tl.ch == nil || !tl.ch.kept.Load() {
		untilFree(&tl.mu)
	}
}

// untilFree waits until a mutex is free. Who holds it may be in a call of the driver that sleeps: a goroutine that blocks in Lock keeps
// the time of a bubble of testing/synctest from passing.
func untilFree(mu *sync.Mutex) {
	wake.Until(context.Background(), mu.TryLock)
	mu.Unlock()
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

// takeBack waits until no other device uses anything of this one, or the context ends.
func (d *Device) takeBack(ctx context.Context) {
	for _, m := range d.lent.end() {
		if !wake.Until(ctx, m.tl.mu.TryLock) { // a channel's thread may have it while it waits for other ranks
			return
		}
		seq := min(m.seq, m.tl.issued.Load())
		m.tl.mu.Unlock()
		wake.Until(ctx, func() bool {
			if !m.tl.dev.caps.SubmitAnywhere {
				m.tl.want(seq)
			}
			for m.tl.dev.caps.SubmitAnywhere && m.tl.passed.Load() < seq && m.tl.poll(seq, 1) {
			}
			return m.tl.passed.Load() >= seq || m.tl.dev.lost.Load() != nil // of that nobody will know
		})
	}
}

// destroy gives back what the device holds. It runs on the device's thread.
func (d *Device) destroy() (errs []error) {
	d.giveBackBy = time.Now().Add(giveBackTime)
	defer d.opt.Tracer.ended(d)
	lost := d.lost.Load() != nil
	add := func(err error) {
		if errors.Is(err, driver.ErrLost) { // nothing works on a lost device, and to say so once is enough
			if lost {
				return
			}
			lost = true
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, err := range d.buffers.close(true) {
		add(err)
	}
	streams := []driver.Stream{}
	for _, q := range d.all() {
		if tl := q.tl; !tl.adopted {
			add(tl.settle())
			streams = append(streams, tl.h)
		}
	}
	if d.captures != 0 {
		streams = append(streams, d.captures)
	}
	if h := d.times.clock.stream; h != 0 {
		streams = append(streams, h)
	}
	for _, h := range streams {
		if err := d.insist(func() error { return d.drv.DestroyStream(h) }); err != nil {
			add(fmt.Errorf("gpu: device %s: a stream: %w", d.info.Name, err))
		}
	}
	if !d.outlastOthers() {
		return append(errs, d.leaveBehind())
	}
	for _, q := range d.all() {
		q.tl.abandon()
	}
	for _, err := range d.times.close(d) {
		add(err)
	}
	d.mu.Lock()
	recordings, code, shared, timings := d.recordings, d.code, d.shared, d.timings
	d.recordings, d.code, d.shared, d.timings = nil, nil, nil, nil
	d.mu.Unlock()
	for t := range timings {
		t.closed.Store(true)
		add(t.destroy())
	}
	for c := range recordings {
		c.closed.Store(true)
		add(c.destroy())
	}
	for x := range code {
		x.closed.Store(true)
		add(d.drv.Unload(x.mod))
	}
	for e := range shared {
		e.closed.Store(true)
		add(d.insist(e.giveBack))
		e.over()
	}
	if d.standsIn.Size > 0 {
		add(d.drv.Free(d.standsIn))
	}
	if !d.overdue { // else calls may still use the memory
		add(d.stage.close())
	}
	for _, err := range append(d.pools.close(), d.buffers.close(false)...) { // in this order, for pools may leave buffers
		add(err)
	}
	add(d.events.close())
	d.refusalMu.Lock()
	refusals := d.refusals
	d.refusalMu.Unlock()
	for _, err := range refusals {
		add(err)
	}
	add(d.drv.Close())
	return errs
}

// outlastOthers waits a moment until no stream of a device that was given up waits for what others bring any more, and reports whether that
// is so. The streams have been destroyed, which no driver waits for.
func (d *Device) outlastOthers() bool {
	var gaveUp *CloseError
	if !errors.As(d.failed(), &gaveUp) {
		return true
	}
	ctx, cancel := context.WithDeadline(context.Background(), d.giveBackBy)
	defer cancel()
	return wake.Until(ctx, func() bool {
		return !slices.ContainsFunc(d.all(), func(q *Queue) bool { return q.tl.stillAwaits() })
	})
}

// leaveBehind gives back nothing, since a stream waits for what others bring: to free memory, or to let go of the device, the driver would wait for
// that stream, and take no work for anybody else in the process meanwhile. What the stream's work holds stays held: Order.Free fails, and
// functions that were to be called when memory is used no more are not.
func (d *Device) leaveBehind() error {
	left := fmt.Errorf("gpu: device %s: a stream waits for what others bring: what the device has is left to the driver: %w", d.info.Name, driver.ErrBusy)
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

// stillAwaits asks the driver whether the stream waits for what others bring. There is an event behind such a wait, for it is not brief.
func (tl *timeline) stillAwaits() bool {
	seq := tl.awaiting.Load()
	if tl.passed.Load() >= seq {
		return false
	}
	at, done, err := tl.query(seq, math.MaxUint64, 1)
	return at != 0 && !done && err == nil
}

// notTaken notes, if err is not nil, that the driver has not taken back what it was given, for Close to tell. It is not given that
// again: it may have taken it all the same, and made something else of it since.
func (d *Device) notTaken(err error) {
	if err != nil {
		d.refusalMu.Lock()
		d.refusals = append(d.refusals, err)
		d.refusalMu.Unlock()
	}
}

// settle waits until a stream has done what no event is behind. It runs on the device's thread, when nothing else is left.
func (tl *timeline) settle() (err error) {
	if !tl.loose || tl.dev.lost.Load() != nil {
		return nil
	}
	for range maxFailed { // a stream that has work cannot be destroyed
		if err = tl.settleOnce(); err == nil || errors.Is(err, ErrClosed) || errors.Is(err, driver.ErrLost) {
			break
		}
	}
	return err
}

// settleOnce is settle once. A query that fails is tried again with the same event, which may not be recorded anew while it is pending.
func (tl *timeline) settleOnce() error {
	e, err := tl.dev.events.get()
	if err != nil {
		return err
	}
	defer e.drop()
	if err := tl.dev.drv.Record(e.h, tl.h); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	failed := 0
	ended := wake.Until(ctx, func() bool {
		var done bool
		if done, err = tl.dev.drv.Query(e.h); err != nil {
			failed++
		}
		return done || failed >= maxFailed || errors.Is(err, driver.ErrLost)
	})
	if !ended {
		return fmt.Errorf("a stream still has work: %w", ErrClosed)
	}
	return err
}
