package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu/internal/wake"
)

// destroy gives back what the device holds. It runs on the device's thread.
func (d *Device) destroy() (errs []error) {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTime) // of what is asked again and again
	defer cancel()
	defer d.opt.Tracer.ended(d)
	found := d.lost.Load()
	lost := found != nil
	if lost && found != d.known {
		errs = append(errs, found.err)
	}
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
	if d.inUse {
		return append(errs, d.leaveBehind("other devices' work still uses what it has"))
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
	d.pools.mu.Lock()
	busy := d.pools.streams
	d.pools.mu.Unlock()
	for _, h := range busy {
		d.drain(ctx, h, func() bool { return d.lost.Load() != nil }) // what it returns, destroying the stream says as well
		streams = append(streams, h)
	}
	if h := d.times.clock.stream; h != 0 {
		d.times.clock.settle(ctx, d)
		streams = append(streams, h)
	}
	for _, h := range streams {
		err := d.insist(ctx, func() error { return d.drv.DestroyStream(h) })
		if lost && errors.Is(err, driver.ErrBusy) { // it is lost behind another device, and goes on itself
			return append(errs, d.leaveBehind("a stream is still at work"))
		}
		if err != nil {
			add(fmt.Errorf("gpu: device %s: a stream: %w", d.info.Name, err))
		}
	}
	if lost && !d.outlastAdopted(ctx) {
		return append(errs, d.leaveBehind("an adopted stream is still at work"))
	}
	if !d.outlastOthers(ctx) {
		return append(errs, d.leaveBehind("a stream waits for what others bring"))
	}
	for _, q := range d.all() {
		q.tl.abandon()
	}
	for _, err := range d.times.close(ctx, d) {
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
		add(d.insist(ctx, e.giveBack))
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
	add(d.events.close(ctx))
	d.refusalMu.Lock()
	refusals := d.refusals
	d.refusalMu.Unlock()
	for _, err := range refusals {
		add(err)
	}
	add(d.drv.Close())
	return errs
}

// insist calls a function until its error is no driver.ErrBusy, or the context ends. A device may still be at something that it
// ends. It runs on the device's thread, in the end.
func (d *Device) insist(ctx context.Context, f func() error) (err error) {
	wake.Until(ctx, func() bool {
		err = f()
		return !errors.Is(err, driver.ErrBusy)
	})
	return err
}

// outlastAdopted waits a moment until streams that are others' have passed what they have of the device's, and reports whether they have. Of a
// device that its driver has lost they have ended.
func (d *Device) outlastAdopted(ctx context.Context) bool {
	for _, q := range d.all() {
		if !q.tl.adopted {
			continue
		}
		e, _ := q.tl.eventBehind(q.tl.issued.Load()) // there is one behind all that such a stream has
		if e == nil {
			continue
		}
		over := wake.Until(ctx, func() bool {
			done, err := d.drv.Query(e.h)
			return done || err != nil
		})
		e.drop()
		if !over {
			return false
		}
	}
	return true
}

// outlastOthers waits a moment until no stream of a device that was given up waits for what others bring any more, and reports whether that
// is so. The streams have been destroyed, which no driver waits for.
func (d *Device) outlastOthers(ctx context.Context) bool {
	var gaveUp *CloseError
	if !errors.As(d.failed(), &gaveUp) {
		return true
	}
	return wake.Until(ctx, func() bool {
		return !slices.ContainsFunc(d.all(), func(q *Queue) bool { return q.tl.stillAwaits() })
	})
}

// leaveBehind gives back nothing, since other devices' work uses what the device has, or a stream waits for what others bring: to free memory, or
// to let go of the device, the driver would wait for that stream, and take no work for anybody else in the process meanwhile. What the stream's work holds stays held: Order.Free fails, and
// functions that were to be called when memory is used no more are not.
func (d *Device) leaveBehind(why string) error {
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for range maxFailed { // a stream that has work cannot be destroyed
		if err = tl.settleOnce(ctx); err == nil || errors.Is(err, ErrClosed) || errors.Is(err, driver.ErrLost) {
			break
		}
	}
	return err
}

// settleOnce is settle once, until the context ends or the device is lost.
func (tl *timeline) settleOnce(ctx context.Context) error {
	d := tl.dev
	done, err := d.drain(ctx, tl.h, func() bool { return d.lost.Load() != nil })
	if !done && err == nil {
		err = fmt.Errorf("a stream still has work: %w", ErrClosed)
	}
	return err
}

// drain waits until a stream has done what it has been given. It reports false if the context ends or stop returns true before. It runs on a
// bound thread. A query that fails is tried again with the same event, which may not be recorded anew while it is pending: nor is it for
// others then, and stays with the stream.
func (d *Device) drain(ctx context.Context, h driver.Stream, stop func() bool) (done bool, err error) {
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
