package simdriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Errors that the driver's errors wrap, in addition to those of package driver.
var (
	ErrInvalidContext = errors.New("invalid context: the device is not current on this thread; lock the goroutine to its thread and call Bind")
	ErrInvalidHandle  = errors.New("invalid handle")
	ErrInvalidValue   = errors.New("invalid value")
	ErrNotFound       = errors.New("not found")
	ErrBusy           = driver.ErrBusy
	ErrNotReady       = errors.New("not ready")
	ErrClosed         = errors.New("the device is closed")
	ErrAborted        = errors.New("the communicator was aborted")
	ErrMismatch       = errors.New("the ranks of the communicator disagree")
	ErrSuspended      = errors.New("the communicator is suspended")
	ErrRankGone       = errors.New("a rank of the communicator is gone")
	ErrKilled         = errors.New("the process was killed")
	ErrInjected       = errors.New("injected fault")
)

// An AccessError says that an operation accessed memory that it must not access. The device that
// executed the operation is lost.
type AccessError struct {
	Op     Op            // the operation
	Kernel string        // the kernel's name, if Op is OpLaunch
	Node   driver.Node   // the node, if the operation was in a graph; else 0
	Device int           // the device that executed it
	Stream driver.Stream // the stream that executed it
	Addr   driver.Ptr    // the first byte of the access
	Size   uint64        // number of bytes accessed
	Align  uint64        // the alignment that Addr lacks, or 0
	Base   driver.Ptr    // address of the nearest allocation; 0 if there is none
	Length uint64        // size of that allocation in bytes
	Freed  bool          // that allocation was freed
	Early  bool          // that allocation is of a pool, and the stream of AllocAsync has not executed the allocation yet
	Barred bool          // that allocation is shareable or in another device's pool, and this device has no access
	Apart  bool          // that allocation is another device's, and kernels of this device have no access

	Opened   bool // that allocation is another process's; with Freed, that process has freed it, or this process has closed it
	Unmapped bool // that allocation is a reservation, and no pages are mapped at the address; with Barred, this device has no access to the pages
	ReadOnly bool // that allocation is memory of the program that was registered as read-only
}

// Error names the operation, its access and the nearest allocation.
func (e *AccessError) Error() string {
	who := string(e.Op)
	if e.Kernel != "" {
		who = fmt.Sprintf("kernel %s", e.Kernel)
	}
	if e.Node != 0 {
		who += fmt.Sprintf(" in graph node %#x", uint64(e.Node))
	}
	s := fmt.Sprintf("%s on stream %#x of device %d: illegal access to %d bytes at %#x: ", who, uint64(e.Stream), e.Device, e.Size, uint64(e.Addr))
	there := fmt.Sprintf("the allocation of %d bytes at %#x", e.Length, uint64(e.Base))
	offset := uint64(e.Addr - e.Base) // wraps around if Addr is below Base
	switch {
	case e.Align != 0:
		s += fmt.Sprintf("the address is not a multiple of %d", e.Align)
	case e.Base == 0:
		s += "no allocation is near"
	case e.Freed && e.Opened:
		s += fmt.Sprintf("the %d bytes of another process at %#x were freed there or closed here", e.Length, uint64(e.Base))
	case e.Freed:
		s += there + " was freed"
	case e.Early:
		s += there + " is not made yet: nothing orders the access after the allocation"
	case e.Barred && e.Unmapped:
		s += fmt.Sprintf("at %d bytes from %#x on addresses are reserved, and this device has no access to the pages there", e.Length, uint64(e.Base))
	case e.Barred:
		s += there + " is in another device's pool or shareable, and this device has no access"
	case e.Apart:
		s += there + " is on another device, and EnablePeer was not called for this device"
	case e.Unmapped:
		s += fmt.Sprintf("at %d bytes from %#x on addresses are reserved, and no pages are mapped at all of the %d bytes", e.Length, uint64(e.Base), e.Size)
	case e.ReadOnly:
		s += there + " is registered as read-only"
	case e.Addr < e.Base:
		s += fmt.Sprintf("it begins %d bytes before %s", uint64(e.Base-e.Addr), there)
	case offset >= e.Length:
		s += fmt.Sprintf("it begins %d bytes after the end of %s", offset-e.Length, there)
	default:
		s += fmt.Sprintf("only %d bytes remain there in %s", e.Length-offset, there)
	}
	return s
}

// fail makes the error of a call from err.
func fail(c code, err error) error {
	e := &driver.Error{Driver: driverName, Op: c.String(), Err: err}
	e.OOM = errors.Is(err, driver.ErrOutOfMemory)
	return e
}

// failf makes the error of a call from text.
func failf(c code, format string, args ...any) error {
	return fail(c, fmt.Errorf(format, args...))
}
