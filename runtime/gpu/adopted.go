package gpu

import (
	"context"
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// closedError is that of a queue that was closed.
func (tl *timeline) closedError() error {
	return fmt.Errorf("gpu: native stream %#x of %s: queue: %w", uintptr(tl.h), tl.dev.info.Name, sema.ErrClosed)
}

// failedBy returns why the timeline takes no more work.
func (tl *timeline) failedBy() error {
	if err := tl.dev.failed(); err != nil || !tl.closed.Load() {
		return err
	}
	return tl.closedError()
}

// halted returns why the stream is given nothing any more. The caller holds mu, so that this stays as it is for a queue's closing.
func (tl *timeline) halted() error {
	if tl.adopted {
		if err := tl.mayGive(); err != nil {
			return err
		}
	}
	return tl.dev.halted()
}

// mayGive returns why an adopted stream is to be given nothing.
func (tl *timeline) mayGive() error {
	if tl.closed.Load() {
		return tl.closedError()
	}
	captures, err := tl.dev.adopts.Capturing(tl.h)
	if err == nil && captures {
		err = fmt.Errorf("somebody captures what native stream %#x is given: %w", uintptr(tl.h), driver.ErrBusy)
	}
	return err
}

// addTimeline lists a timeline with the device, which asks it from then on.
func (d *nativeDevice) addTimeline(tl *timeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append(slices.Clip(d.all()), tl)
	d.every.Store(&all)
}

// close lets go of an adopted stream. What it has been given goes on. What has not been issued fails.
func (tl *timeline) close() {
	wake.Lock(context.Background(), &tl.mu) // whoever issues gets through, and nobody comes after
	tl.closed.Store(true)
	tl.mu.Unlock()
	tl.dev.cancelThose(tl.closedError(), func(s *submission) bool { return s.tl == tl && s.mode != passing })
	tl.trim()
	tl.want(tl.issued.Load()) // so that what its work holds is let go of
	tl.dev.removeSpent()
}

// removeSpent takes spent timelines off the device's list.
func (d *nativeDevice) removeSpent() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all := d.all(); slices.ContainsFunc(all, (*timeline).spent) {
		all = slices.DeleteFunc(slices.Clone(all), (*timeline).spent)
		d.every.Store(&all)
	}
}

// spent reports whether nothing will be heard of a timeline any more. Nor is anybody about to ask about an event of it.
func (tl *timeline) spent() bool {
	if !tl.closed.Load() || tl.passed.Load() < tl.issued.Load() || !tl.askMu.TryLock() {
		return false
	}
	tl.askMu.Unlock()
	return true
}
