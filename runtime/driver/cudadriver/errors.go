package cudadriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

const name = "cuda"

// wrap makes a driver's error of err, which says what the operation was on.
func wrap(op string, err error) *driver.Error {
	e := &driver.Error{Driver: name, Op: op, Err: err}
	if r, ok := errors.AsType[cuda.Result](err); ok {
		e.Lost, e.OOM = lost(r), r == cuda.ErrorOutOfMemory
		if r == cuda.ErrorNotSupported {
			e.Err = unsupported{err}
		}
	} else if errors.Is(err, dl.ErrSymbol) {
		e.Err = unsupported{err}
	}
	return e
}

// fail is wrap for what went wrong on the device. It is for the way of failure alone: its arguments are allocated.
func (d *device) fail(op string, err error, format string, args ...any) error {
	e := wrap(op, fmt.Errorf("device %d (%s): %s: %w", d.info.Index, d.info.Name, fmt.Sprintf(format, args...), err))
	if e.Lost {
		e.Err = d.watch.of(e.Err)
	}
	return e
}

// unsupported is an error that is driver.ErrUnsupported too, and speaks for itself.
type unsupported struct{ error }

func (e unsupported) Unwrap() []error { return []error{e.error, driver.ErrUnsupported} }

// lost reports whether nothing works in the context any more after a call returned r. Such a code comes from work that
// was submitted earlier, and every later call returns it too; all others concern the one call that returned them.
func lost(r cuda.Result) bool {
	switch r {
	case cuda.ErrorDeinitialized, // the process is ending
		cuda.ErrorECCUncorrectable,
		cuda.ErrorNVLINKUncorrectable,
		cuda.ErrorContained,
		cuda.ErrorIllegalAddress,
		cuda.ErrorLaunchTimeout,
		cuda.ErrorContextIsDestroyed,
		cuda.ErrorAssert,
		cuda.ErrorHardwareStackError,
		cuda.ErrorIllegalInstruction,
		cuda.ErrorMisalignedAddress,
		cuda.ErrorInvalidAddressSpace,
		cuda.ErrorInvalidPC,
		cuda.ErrorLaunchFailed,
		cuda.ErrorTensorMemoryLeak,
		cuda.ErrorMPSClientTerminated,
		cuda.ErrorExternalDevice:
		return true
	}
	return false
}
