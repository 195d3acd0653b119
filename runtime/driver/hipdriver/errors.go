package hipdriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

const name = "hip"

// wrap makes a driver.Error from err.
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

// failed calls wrap for an error that the library returned on this thread, and clears the thread's
// last error.
func failed(lib *hip.Library, op string, err error) *driver.Error {
	lib.GetLastError()
	return wrap(op, err)
}

// refuse makes an error, and calls no function of the library. Passing the arguments allocates, so
// refuse is only for error paths.
func (d *device) refuse(op string, err error, format string, args ...any) *driver.Error {
	return wrap(op, fmt.Errorf("device %d (%s): %s: %w", d.info.Index, d.info.Name, fmt.Sprintf(format, args...), err))
}

// fail calls refuse for an error that the library returned on this thread, and clears the thread's
// last error.
func (d *device) fail(op string, err error, format string, args ...any) *driver.Error {
	d.lib.GetLastError()
	return d.refuse(op, err, format, args...)
}

// unsupported makes an error match driver.ErrUnsupported without changing its text.
type unsupported struct{ error }

func (e unsupported) Unwrap() []error { return []error{e.error, driver.ErrUnsupported} }

// lost reports whether the result r means that the device is unusable, so that every later call
// fails too. Any other error concerns only the call that returned it. "Context is destroyed" does
// not mean a lost device: HIP returns that error for a stream that does not exist.
func lost(r hip.Result) bool {
	switch r {
	case hip.ErrorDeinitialized, // the process is ending
		hip.ErrorECCNotCorrectable,
		hip.ErrorIllegalAddress,
		hip.ErrorLaunchTimeOut,
		hip.ErrorAssert,
		hip.ErrorLaunchFailure: // see refused for an exception
		return true
	}
	return false
}

// refused reports whether err is "launch failure" although HIP has only refused a launch. HIP
// returns this error for a kernel that crashed, and also for a block with too many threads. After a
// crash every call fails. So refused calls the function ask, which makes another call of HIP.
func refused(err error, ask func() error) bool {
	if !errors.Is(err, hip.ErrorLaunchFailure) {
		return false
	}
	r, _ := errors.AsType[hip.Result](ask())
	return !lost(r)
}

// ending reports whether err means that the library is shutting down, as at the end of the process.
func ending(err error) bool {
	return errors.Is(err, hip.ErrorDeinitialized) || errors.Is(err, hip.ErrorNotInitialized)
}
