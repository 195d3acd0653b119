package engine

import "runtime"

// OnBound calls fn in a new goroutine, on a thread on which the device is current, and waits until
// fn returns. OnBound is for rare calls that must not wait for the pending-queue thread, which may
// be blocked. If Close no longer waits for calls (see Stay), OnBound returns an error and does not
// call fn.
func (d *Device) OnBound(fn func() error) error {
	if err := d.Stay(); err != nil {
		return err
	}
	defer d.Leave()
	return d.OnThread(fn)
}

// OnThread is like OnBound, for a caller that has already made Close wait, by Stay or Device.enter.
func (d *Device) OnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- d.Bound(fn) }()
	return <-done
}

// Bound locks the calling goroutine to its OS thread, makes the device current on that thread, and
// calls fn. The goroutine must end afterwards, because it may stay locked to its thread. Bound
// returns the error of fn. If the device cannot be made current, Bound returns the driver's error
// and does not call fn.
func (d *Device) Bound(fn func() error) error {
	runtime.LockOSThread()
	err := d.Native.Bind()
	if err == nil {
		err = fn()
	}
	if d.phase.Load() < isLeft && d.Native.Unbind() == nil {
		// If Unbind fails, the goroutine stays locked, and its thread ends with it. If the device's
		// phase is isLeft or later, Unbind is not called: Close may have given up waiting for fn
		// and closed the driver's device.
		runtime.UnlockOSThread()
	}
	return err
}
