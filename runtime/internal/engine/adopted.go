package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// closedError is that of a queue that was closed.
func (tl *Timeline) closedError() error {
	return fmt.Errorf("gpu: native stream %#x of %s: queue: %w", uintptr(tl.Stream), tl.Device.Info.Name, sema.ErrClosed)
}

// FailedBy returns why the timeline takes no more work.
func (tl *Timeline) FailedBy() error {
	if err := tl.Device.Failed(); err != nil || !tl.closed.Load() {
		return err
	}
	return tl.closedError()
}

// halted returns why the stream is given nothing any more. The caller holds mu, so that this stays as it is for a queue's closing.
func (tl *Timeline) halted() error {
	if tl.Adopted {
		if err := tl.mayGive(); err != nil {
			return err
		}
	}
	return tl.Device.halted()
}

// mayGive returns why an adopted stream is to be given nothing.
func (tl *Timeline) mayGive() error {
	if tl.closed.Load() {
		return tl.closedError()
	}
	captures, err := tl.Device.Adopter.Capturing(tl.Stream)
	if err == nil && captures {
		err = fmt.Errorf("somebody captures what native stream %#x is given: %w", uintptr(tl.Stream), driver.ErrBusy)
	}
	return err
}

// AddTimeline lists a timeline with the device, which asks it from then on.
func (d *Device) AddTimeline(tl *Timeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append(slices.Clip(d.All()), tl)
	d.every.Store(&all)
}

// Close lets go of an adopted stream. What it has been given goes on. What has not been issued fails.
func (tl *Timeline) Close() {
	wake.Lock(context.Background(), &tl.mu) // whoever issues gets through, and nobody comes after
	tl.closed.Store(true)
	tl.mu.Unlock()
	tl.Device.cancelThose(tl.closedError(), func(s *Submission) bool { return s.Timeline == tl && s.Mode != passing })
	tl.Trim()
	tl.want(tl.issued.Load()) // so that what its work holds is let go of
	tl.Device.removeSpent()
}

// removeSpent takes spent timelines off the device's list.
func (d *Device) removeSpent() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all := d.All(); slices.ContainsFunc(all, (*Timeline).spent) {
		all = slices.DeleteFunc(slices.Clone(all), (*Timeline).spent)
		d.every.Store(&all)
	}
}

// spent reports whether nothing will be heard of a timeline any more. Nor is anybody about to ask about an event of it.
func (tl *Timeline) spent() bool {
	if !tl.closed.Load() || tl.passed.Load() < tl.issued.Load() || !tl.askMu.TryLock() {
		return false
	}
	tl.askMu.Unlock()
	return true
}
