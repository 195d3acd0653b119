package gpu

import "runtime"

// onBound runs a function on a thread of its own to which the device is bound, and waits for it. It is for what is rare, and
// may be needed while the device's thread waits for something. It blocks no one else.
func (d *nativeDevice) onBound(fn func() error) error {
	if err := d.stay(); err != nil {
		return err
	}
	defer d.leave()
	return d.onThread(fn)
}

// onThread is onBound for a caller that has the device stay.
func (d *nativeDevice) onThread(fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- d.bound(fn) }()
	return <-done
}

// bound runs a function with the device bound to the thread, on a goroutine of its own. The error may be that it could not be bound.
func (d *nativeDevice) bound(fn func() error) error {
	runtime.LockOSThread()
	err := d.drv.Bind()
	if err == nil {
		err = fn()
	}
	if d.phase.Load() < isLeft && d.drv.Unbind() == nil {
		runtime.UnlockOSThread() // else the thread ends with the goroutine: also where the device may be closed meanwhile, for Close has not waited
	}
	return err
}
