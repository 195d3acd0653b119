package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// closedError returns the error of work for a queue that was closed.
func (tl *Timeline) closedError() error {
	return fmt.Errorf("gpu: native stream %#x of %s: queue: %w", uintptr(tl.Stream), tl.Device.Info.Name, sema.ErrClosed)
}

// FailedBy returns why the timeline takes no more work, or nil.
func (tl *Timeline) FailedBy() error {
	if err := tl.Device.Failed(); err != nil || !tl.closed.Load() {
		return err
	}
	return tl.closedError()
}

// halted returns why no more work may be issued to the stream, or nil. The caller holds mu.
// CloseAdopted sets closed under mu, so it cannot close the queue between a nil result and the
// unlock.
func (tl *Timeline) halted() error {
	if tl.Adopted {
		if err := tl.mayGive(); err != nil {
			return err
		}
	}
	return tl.Device.halted()
}

// mayGive returns why no work may be issued to an adopted stream now, or nil: the queue was closed,
// or other code is capturing the stream. The caller holds mu.
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

// AddTimeline adds a timeline to those that the device polls.
func (d *Device) AddTimeline(tl *Timeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append(slices.Clip(d.All()), tl)
	d.every.Store(&all)
}

// CloseAdopted stops using an adopted stream. Issued work continues. Work that has not been issued
// fails.
func (tl *Timeline) CloseAdopted() {
	// Locking mu waits for a goroutine that is issuing work. Later issuers see closed set.
	wake.Lock(context.Background(), &tl.mu)
	tl.closed.Store(true)
	tl.mu.Unlock()
	tl.Device.cancelThose(tl.closedError(), func(s *Submission) bool { return s.Timeline == tl && s.Mode != published })
	tl.Trim()
	tl.want(tl.issued.Load()) // polls until the work in flight is retired
	tl.Device.removeSpent()
}

// removeSpent removes spent timelines from the device's list.
func (d *Device) removeSpent() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all := d.All(); slices.ContainsFunc(all, (*Timeline).spent) {
		all = slices.DeleteFunc(slices.Clone(all), (*Timeline).spent)
		d.every.Store(&all)
	}
}

// spent reports whether the timeline was closed, its stream has passed all its work, and no
// goroutine is querying its events.
func (tl *Timeline) spent() bool {
	if !tl.closed.Load() || tl.passed.Load() < tl.issued.Load() || !tl.queryMu.TryLock() {
		return false
	}
	tl.queryMu.Unlock()
	return true
}
