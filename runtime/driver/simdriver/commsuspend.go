package simdriver

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.CommSuspension = (*device)(nil)

// errShares is the error of suspending a communicator without CommDesc.Plain.
var errShares = fmt.Errorf("it did not join with CommDesc.Plain; only such communicators can be suspended: %w", driver.ErrUnsupported)

// take allocates the memory that r needs on its device. If there is not enough, r leaves the
// communicator. The caller holds comms.mu, as for give and resume.
func (r *rank) take() error {
	n, limit := r.dev.d.comms.needs, r.dev.d.memory
	s := &r.dev.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > limit-min(s.used, limit) {
		err := fmt.Errorf("%d bytes, while %d of device %d's %d are allocated: %w", n, s.used, r.dev.index, limit, driver.ErrOutOfMemory)
		r.leave(err)
		return err
	}
	s.used += n
	r.has = n
	return nil
}

// give frees the memory of r.
func (r *rank) give() {
	s := &r.dev.space
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= r.has
	r.has = 0
}

// resume allocates the memory of r again and waits until all ranks have done the same.
func (r *rank) resume(c code) error {
	if err := r.take(); err != nil {
		return failf(c, "%v: %w", r, err)
	}
	_, err := r.meet(c, &making{code: codeResumeComm})
	r.suspended = false
	return err
}

// CommStats reports Config.CommMemory as suspendable memory, and whether the rank is suspended.
func (v *device) CommStats(h driver.Comm) (s driver.CommStats, err error) {
	if err := v.communicate(codeCommStats, true); err != nil {
		return s, err
	}
	v.d.comms.mu.Lock()
	defer v.d.comms.mu.Unlock()
	r, err := v.rank(codeCommStats, h)
	if err == nil {
		err = r.usable(codeCommStats)
	}
	if err != nil {
		return s, err
	}
	return driver.CommStats{Suspendable: v.d.comms.needs, Suspended: r.suspended}, nil
}

// SuspendComm waits until all ranks have called it, and then frees the rank's memory.
func (v *device) SuspendComm(h driver.Comm) error {
	if err := v.communicate(codeSuspendComm, true); err != nil {
		return err
	}
	v.d.comms.mu.Lock()
	defer v.d.comms.mu.Unlock()
	r, err := v.divide(codeSuspendComm, h)
	if err == nil && !r.plain {
		err = failf(codeSuspendComm, "%v: %w", r, errShares)
	}
	if err != nil {
		return err
	}
	if _, err := r.meet(codeSuspendComm, &making{code: codeSuspendComm}); err != nil {
		return err
	}
	r.suspended = true
	r.give()
	return nil
}

// ResumeComm allocates a rank's memory again, and waits until all ranks have called ResumeComm.
func (v *device) ResumeComm(h driver.Comm) error {
	if err := v.communicate(codeResumeComm, true); err != nil {
		return err
	}
	v.d.comms.mu.Lock()
	defer v.d.comms.mu.Unlock()
	r, err := v.rank(codeResumeComm, h)
	if err == nil {
		err = r.usable(codeResumeComm)
	}
	if err != nil {
		return err
	}
	if !r.suspended {
		return failf(codeResumeComm, "%v: %w: it is not suspended", r, ErrInvalidValue)
	}
	return r.resume(codeResumeComm)
}
