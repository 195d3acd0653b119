package engine

import "runtime"

// OnBound calls fn on a bound thread of its own and waits for it. It is for rare calls that may be
// needed while the device's thread waits for something. It returns an error if the device is
// closed.
func (d *Device) OnBound(fn func() error) error {
	if err := d.Stay(); err != nil {
		return err
	}
	defer d.Leave()
	return d.OnThread(fn)
}

// OnThread is OnBound for a caller that has called Stay.
func (d *Device) OnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- d.Bound(fn) }()
	return <-done
}

// Bound locks the calling goroutine to its OS thread, binds the device to that thread, and calls
// fn. The goroutine should end afterwards, because it may stay locked. Bound returns the error of
// fn. If the device cannot be bound, it returns that error and does not call fn.
func (d *Device) Bound(fn func() error) error {
	runtime.LockOSThread()
	err := d.Native.Bind()
	if err == nil {
		err = fn()
	}
	if d.phase.Load() < isLeft && d.Native.Unbind() == nil {
		// Otherwise the goroutine stays locked, and the thread ends with it. From isLeft on nothing
		// is unbound: Close may have given up waiting for fn and closed the driver's device.
		runtime.UnlockOSThread()
	}
	return err
}
