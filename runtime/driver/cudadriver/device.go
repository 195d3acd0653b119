package cudadriver

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// device is an open device. Nothing of it changes but closed.
type device struct {
	lib  *cuda.Library
	id   cuda.Device
	ctx  cuda.Context // the primary one
	info driver.Info
	caps driver.Caps

	hasFuncLoad bool
	closed      atomic.Bool
}

func openDevice(lib *cuda.Library, id cuda.Device, info driver.Info) (*device, error) {
	d := &device{lib: lib, id: id, info: info, hasFuncLoad: lib.HasSymbol("cuFuncLoad")}
	ctx, err := lib.DevicePrimaryCtxRetain(id)
	if err != nil {
		return nil, d.fail("open", err, "retain the primary context")
	}
	d.ctx = ctx
	if err := d.askCaps(); err != nil {
		if release := lib.DevicePrimaryCtxRelease(id); release != nil {
			err = errors.Join(err, d.fail("open", release, "release the primary context"))
		}
		return nil, err
	}
	return d, nil
}

// askCaps finds out what the device can do.
func (d *device) askCaps() error {
	has := func(attr cuda.DeviceAttribute) (bool, error) {
		v, err := d.lib.DeviceGetAttribute(attr, d.id)
		if err != nil {
			return false, d.fail("open", err, "%v", attr)
		}
		return v != 0, nil
	}
	managed, err := has(cuda.DeviceAttributeManagedMemory)
	if err != nil {
		return err
	}
	// Without this, a host that touches any managed memory while any kernel runs is killed by a fault.
	concurrent, err := has(cuda.DeviceAttributeConcurrentManagedAccess)
	if err != nil {
		return err
	}
	register, err := has(cuda.DeviceAttributeHostRegisterSupported)
	if err != nil {
		return err
	}
	d.caps = driver.Caps{
		RerecordEvents: true, // a wait is for the record that it found
		Managed:        managed && concurrent && d.lib.HasSymbol("cuMemAllocManaged"),
		HostRegister:   register && d.lib.HasSymbol("cuMemHostRegister_v2"),
		KernelParams:   d.lib.HasSymbol("cuFuncGetParamInfo"),
	}
	d.caps.SubmitAnywhere, err = d.probe()
	return err
}

func (d *device) Info() driver.Info { return d.info }

func (d *device) Caps() driver.Caps { return d.caps }

func (d *device) Bind() error {
	if err := d.lib.CtxSetCurrent(d.ctx); err != nil {
		return d.fail("bind", err, "make the context current")
	}
	return nil
}

// Close gives back the reference to the primary context. The context goes with the last one, and a thread on which it
// stayed current would run into errors that name a destroyed context: so Close first takes it from the calling thread.
func (d *device) Close() error {
	if d.closed.Swap(true) {
		// A second release would take the reference of somebody else in the process.
		return wrap("close", fmt.Errorf("device %d (%s) was closed before", d.info.Index, d.info.Name))
	}
	var leave error
	if current, err := d.lib.CtxGetCurrent(); err != nil {
		leave = err
	} else if current == d.ctx {
		leave = d.lib.CtxSetCurrent(0)
	}
	var errs []error
	if leave != nil && !ending(leave) {
		errs = append(errs, d.fail("close", leave, "take the context from the thread"))
	}
	if err := d.lib.DevicePrimaryCtxRelease(d.id); err != nil && !ending(err) {
		errs = append(errs, d.fail("close", err, "release the primary context"))
	}
	return errors.Join(errs...)
}

// ending reports whether the driver says only that it is, or was, shut down, as it does while the process ends.
func ending(err error) bool {
	return errors.Is(err, cuda.ErrorDeinitialized) || errors.Is(err, cuda.ErrorNotInitialized)
}
