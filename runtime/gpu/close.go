package gpu

import (
	"errors"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

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
// fail. Buffers and executables of the device are freed with it. Semaphores live on. Closing again returns the same error.
func (d *Device) Close() error {
	if d == nil || d.drv == nil {
		return nil
	}
	d.closeMu.Lock()
	defer d.closeMu.Unlock()
	if d.once {
		return d.closeErr
	}
	d.once = true
	d.closing.Store(true)
	deadline := time.Now().Add(10 * time.Second)
	for d.toIssue() && d.lost.Load() == nil && time.Now().Before(deadline) {
		time.Sleep(20 * time.Microsecond)
	}
	channels := d.closeChannels(deadline)
	if more := time.Now().Add(2 * time.Second); more.After(deadline) {
		deadline = more
	}
	d.stopped.Store(true)
	for _, q := range d.all() {
		q.tl.letThrough()
	}
	err := d.closedError()
	d.cancelParked(err, false)
	for _, q := range d.all() {
		q.tl.want(q.tl.issued.Load())
	}
	d.wantPassing()
	for d.busy() && d.lost.Load() == nil && time.Now().Before(deadline) {
		if !d.caps.SubmitAnywhere || !d.pollAll() {
			time.Sleep(20 * time.Microsecond)
		}
	}
	var unended error
	if d.busy() && d.lost.Load() == nil {
		unended = fmt.Errorf("gpu: device %s: work did not end within 10 s of Close: %w", d.info.Name, ErrClosed)
		d.lose(unended)
	}
	d.cancelParked(err, true)
	for d.calls.Load() > 0 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Microsecond)
	}
	d.takeBack(deadline)
	d.gone.Store(true)
	for d.calls.Load() > 0 { // who has come before that
		if !time.Now().Before(deadline) {
			d.overdue = d.calls.Load()
			break
		}
		time.Sleep(20 * time.Microsecond)
	}
	if d.asker != nil {
		d.asker.stop()
	}
	for _, q := range d.all() { // whoever asks about an event, or records one, gets through
		q.tl.askMu.Lock()
		q.tl.askMu.Unlock()
		q.tl.letThrough()
	}
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.signalThread()
	var late <-chan time.Time
	if unended != nil { // and drivers may wait for it
		late = time.After(2 * giveBackTime)
	}
	var left error
	select {
	case <-d.closed:
		left = d.left
	case <-late:
		left = fmt.Errorf("gpu: device %s: the driver takes nothing back: %w", d.info.Name, driver.ErrBusy)
	}
	d.closeErr = errors.Join(unended, channels, left)
	return d.closeErr
}

// letThrough waits for who is issuing, but not for a channel's thread that the library has kept.
func (tl *timeline) letThrough() {
	if tl.ch == nil || !tl.ch.kept.Load() {
		tl.mu.Lock()
		tl.mu.Unlock()
	}
}

// stay keeps the device from giving back what it has, until leave. Its error says that it is too late.
func (d *Device) stay() error {
	d.calls.Add(1)
	if d.gone.Load() {
		d.calls.Add(-1)
		return d.closedError()
	}
	return nil
}

func (d *Device) leave() { d.calls.Add(-1) }

// lend notes that work of another device is about to wait for an event of this one, or to use a buffer. It reports false if
// it is too late.
func (d *Device) lend(to mark) bool {
	d.lentMu.Lock()
	defer d.lentMu.Unlock()
	if d.kept {
		return false
	}
	for i := range d.lent {
		if d.lent[i].tl == to.tl {
			d.lent[i].seq = max(d.lent[i].seq, to.seq)
			return true
		}
	}
	d.lent = append(d.lent, to)
	return true
}

// takeBack waits until no other device uses anything of this one.
func (d *Device) takeBack(deadline time.Time) {
	d.lentMu.Lock()
	d.kept = true
	lent := d.lent
	d.lentMu.Unlock()
	for _, m := range lent {
		for !m.tl.mu.TryLock() { // whoever is issuing gets through, unless a channel's thread waits for other ranks
			if !time.Now().Before(deadline) {
				return
			}
			time.Sleep(20 * time.Microsecond)
		}
		seq := min(m.seq, m.tl.issued.Load())
		m.tl.mu.Unlock()
		for m.tl.done.Load() < seq && time.Now().Before(deadline) {
			if !m.tl.dev.caps.SubmitAnywhere {
				m.tl.want(seq)
			} else if m.tl.poll(seq, 1) {
				continue
			}
			time.Sleep(20 * time.Microsecond)
		}
		if m.given(true) != nil {
			m.tl.dev.clearOff(deadline)
		}
	}
}

// destroy gives back what the device holds. It runs on the device's thread.
func (d *Device) destroy() error {
	var errs []error
	d.giveBackBy = time.Now().Add(giveBackTime)
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
	add(d.insist(d.dropOld))
	for _, err := range d.buffers.close(true) {
		add(err)
	}
	for _, q := range d.all() {
		add(q.tl.settle())
	}
	for _, q := range d.all() {
		if err := d.insist(func() error { return d.drv.DestroyStream(q.tl.h) }); err != nil {
			add(fmt.Errorf("gpu: device %s: a stream: %w", d.info.Name, err))
		}
	}
	for _, q := range d.all() { // with events of which nobody knows whether they are done
		for _, s := range q.tl.limbo {
			d.recycle(s)
		}
		q.tl.limbo = nil
	}
	d.mu.Lock()
	recordings, code := d.recordings, d.code
	d.recordings, d.code = nil, nil
	d.mu.Unlock()
	for c := range recordings {
		c.closed.Store(true)
		add(c.destroy())
	}
	for x := range code {
		x.closed.Store(true)
		add(d.drv.Unload(x.mod))
	}
	if d.scratched.Size > 0 {
		add(d.drv.Free(d.scratched))
	}
	if n := d.overdue; n == 0 {
		add(d.stage.close())
	} else { // which may use the memory
		errs = append(errs, fmt.Errorf("gpu: device %s: %d host calls did not end within 10 s of Close", d.info.Name, n))
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
	return errors.Join(errs...)
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

func (tl *timeline) settleOnce() error {
	e, err := tl.dev.events.get(true)
	if err != nil {
		return err
	}
	defer e.drop()
	if err := tl.dev.drv.Record(e.h, tl.h); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Second); ; {
		done, err := tl.dev.drv.Query(e.h)
		if done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a stream still has work: %w", ErrClosed)
		}
		time.Sleep(20 * time.Microsecond)
	}
}
