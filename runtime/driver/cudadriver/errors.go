package cudadriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

const name = "cuda"

// wrap makes a driver.Error from err.
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

// fail is like wrap, but adds the device and a description of the object. Passing the arguments
// allocates, so fail is only for error paths.
func (d *device) fail(op string, err error, format string, args ...any) error {
	e := wrap(op, fmt.Errorf("device %d (%s): %s: %w", d.info.Index, d.info.Name, fmt.Sprintf(format, args...), err))
	if e.Lost {
		e.Err = d.watch.of(e.Err)
	}
	return e
}

// unsupported makes an error match driver.ErrUnsupported without changing its text.
type unsupported struct{ error }

func (e unsupported) Unwrap() []error { return []error{e.error, driver.ErrUnsupported} }

// lost reports whether a result r means that the context is unusable. If so, every later call fails
// too. All other errors concern only the call that returned them.
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
