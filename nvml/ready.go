package nvml

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// ready returns nil if NVML starts and sees a device. Afterwards it shuts NVML down. NVML counts
// its starts, so earlier starts by the program stay in effect.
func ready(l *dl.Library) error {
	switch err := check(l.Slow(fnInit)); err {
	case nil:
	case ErrorDriverNotLoaded, ErrorGPUNotFound:
		return fmt.Errorf("%w (nvmlInit: %w)", dl.ErrNoDevice, err)
	default:
		return fmt.Errorf("nvmlInit: %w", err)
	}
	defer l.Slow(fnShutdown)
	n := new(uint32)
	switch err := check(l.Slow(fnDeviceGetCount, uintptr(unsafe.Pointer(n)))); {
	case err != nil:
		return fmt.Errorf("nvmlDeviceGetCount: %w", err)
	case *n == 0:
		return fmt.Errorf("%w: nvmlDeviceGetCount returned 0", dl.ErrNoDevice)
	}
	return nil
}
