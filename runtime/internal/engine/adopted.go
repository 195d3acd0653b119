package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// closedError returns the error for work that is refused because its queue is closed.
func (tl *Timeline) closedError() error {
	return fmt.Errorf("gpu: native stream %#x of %s: queue: %w", uintptr(tl.Stream), tl.Device.Info.Name, sema.ErrClosed)
}

// FailedBy returns nil if the timeline accepts new work. Otherwise it returns why not: the device
// is lost or closed, or the queue is closed.
func (tl *Timeline) FailedBy() error {
	if err := tl.Device.Failed(); err != nil || !tl.closed.Load() {
		return err
	}
	return tl.closedError()
}

// halted returns nil if work may be issued to the stream, otherwise the reason why not. The caller
// holds tl.mu. CloseAdopted sets tl.closed under tl.mu, so an open queue stays open until the
// caller unlocks tl.mu.
func (tl *Timeline) halted() error {
	if tl.Adopted {
		if err := tl.mayGive(); err != nil {
			return err
		}
	}
	return tl.Device.halted()
}

// mayGive returns nil if work may be issued to this adopted stream now. It returns an error if the
// queue was closed, if other code is capturing the stream into a graph, or if the driver cannot
// tell. The caller holds tl.mu.
func (tl *Timeline) mayGive() error {
	if tl.closed.Load() {
		return tl.closedError()
	}
	captures, err := tl.Device.Adopter.Capturing(tl.Stream)
	if err == nil && captures {
		err = fmt.Errorf("other code captures the work of native stream %#x into a graph: %w", uintptr(tl.Stream), driver.ErrBusy)
	}
	return err
}

// AddTimeline adds a timeline to the device's list, so that the device polls the timeline when
// somebody waits for its work.
func (d *Device) AddTimeline(tl *Timeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append(slices.Clip(d.All()), tl)
	d.timelines.Store(&all)
}

// CloseAdopted stops using an adopted stream. Issued work and published barriers continue. Parked
// work fails.
func (tl *Timeline) CloseAdopted() {
	// Locking mu waits until no goroutine is issuing work. Goroutines that lock mu later see that
	// tl.closed is true.
	wake.Lock(context.Background(), &tl.mu)
	tl.closed.Store(true)
	tl.mu.Unlock()
	tl.Device.cancelMatching(tl.closedError(), func(s *Submission) bool { return s.Timeline == tl && s.Mode != published })
	tl.Trim()
	tl.want(tl.issued.Load()) // request polling until all work in flight is retired
	tl.Device.removeSpent()
}

// removeSpent removes closed timelines that have no work left (see Timeline.spent) from the
// device's list.
func (d *Device) removeSpent() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all := d.All(); slices.ContainsFunc(all, (*Timeline).spent) {
		all = slices.DeleteFunc(slices.Clone(all), (*Timeline).spent)
		d.timelines.Store(&all)
	}
}

// spent reports whether the timeline can be forgotten: it was closed, its stream has passed all its
// work, and no goroutine is querying its events.
func (tl *Timeline) spent() bool {
	if !tl.closed.Load() || tl.passed.Load() < tl.issued.Load() || !tl.queryMu.TryLock() {
		return false
	}
	tl.queryMu.Unlock()
	return true
}
