package engine

import "runtime"

// OnBound runs a function on a thread of its own to which the device is bound, and waits for it. It is for what is rare, and
// may be needed while the device's thread waits for something. It blocks no one else.
func (d *Device) OnBound(fn func() error) error {
	if err := d.Stay(); err != nil {
		return err
	}
	defer d.Leave()
	return d.OnThread(fn)
}

// OnThread is onBound for a caller that has the device stay.
func (d *Device) OnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- d.Bound(fn) }()
	return <-done
}

// Bound runs a function with the device bound to the thread, on a goroutine of its own. The error may be that it could not be bound.
func (d *Device) Bound(fn func() error) error {
	runtime.LockOSThread()
	err := d.Native.Bind()
	if err == nil {
		err = fn()
	}
	if d.phase.Load() < isLeft && d.Native.Unbind() == nil {
		runtime.UnlockOSThread() // else the thread ends with the goroutine: also where the device may be closed meanwhile, for Close has not waited
	}
	return err
}
