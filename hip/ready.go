package hip

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// ready returns nil if HIP starts and has a device. Starting HIP twice is harmless.
func ready(l *dl.Library) error {
	call, err := "hipInit", check(l.Slow(fnInit, 0))
	n := new(int32)
	if err == nil {
		call, err = "hipGetDeviceCount", check(l.Slow(fnGetDeviceCount, uintptr(unsafe.Pointer(n))))
	}
	switch {
	case err == nil && *n > 0:
		return nil
	case err == nil:
		return fmt.Errorf("%w: hipGetDeviceCount returned 0", dl.ErrNoDevice)
	case err == ErrorNoDevice, err == ErrorInvalidDevice: // older releases return ErrorInvalidDevice
		return fmt.Errorf("%w (%s: %w)", dl.ErrNoDevice, call, err)
	}
	return fmt.Errorf("%s: %w", call, err)
}
