package hipdriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

const name = "hip"

// wrap makes a driver's error of err, which says what the operation was on.
func wrap(op string, err error) *driver.Error {
	e := &driver.Error{Driver: name, Op: op, Err: err}
	if r, ok := errors.AsType[hip.Result](err); ok {
		e.Lost, e.OOM = lost(r), r == hip.ErrorOutOfMemory
		if r == hip.ErrorNotSupported {
			e.Err = unsupported{err}
		}
	} else if errors.Is(err, dl.ErrSymbol) {
		e.Err = unsupported{err}
	}
	return e
}

// failed is wrap for what the library returned to this thread, and has the library forget it.
func failed(lib *hip.Library, op string, err error) *driver.Error {
	lib.GetLastError()
	return wrap(op, err)
}

// refuse makes an error of what the library need not be asked about. It is for the way of failure alone: its arguments are
// allocated.
func (d *device) refuse(op string, err error, format string, args ...any) *driver.Error {
	return wrap(op, fmt.Errorf("device %d (%s): %s: %w", d.info.Index, d.info.Name, fmt.Sprintf(format, args...), err))
}

// fail is refuse for what the library returned to this thread, and has the library forget it.
func (d *device) fail(op string, err error, format string, args ...any) *driver.Error {
	d.lib.GetLastError()
	return d.refuse(op, err, format, args...)
}

// unsupported is an error that is driver.ErrUnsupported too, and speaks for itself.
type unsupported struct{ error }

func (e unsupported) Unwrap() []error { return []error{e.error, driver.ErrUnsupported} }

// lost reports whether nothing works on the device any more after a call returned r. Such a code comes from work that was
// submitted earlier, and every later call returns it too; all others concern the one call that returned them. That a context
// is destroyed is not among them: HIP says so of a stream that does not exist.
func lost(r hip.Result) bool {
	switch r {
	case hip.ErrorDeinitialized, // the process is ending
		hip.ErrorECCNotCorrectable,
		hip.ErrorIllegalAddress,
		hip.ErrorLaunchTimeOut,
		hip.ErrorAssert,
		hip.ErrorLaunchFailure: // but see refused
		return true
	}
	return false
}

// refused reports whether a launch was only refused. HIP says "launch failure" of a kernel that crashed, and of a block with
// more threads than the kernel was compiled for; after a crash everything fails, so something else is asked.
func refused(err error, ask func() error) bool {
	if !errors.Is(err, hip.ErrorLaunchFailure) {
		return false
	}
	r, _ := errors.AsType[hip.Result](ask())
	return !lost(r)
}

// ending reports whether the library says only that it is, or was, shut down, as it does while the process ends.
func ending(err error) bool {
	return errors.Is(err, hip.ErrorDeinitialized) || errors.Is(err, hip.ErrorNotInitialized)
}
