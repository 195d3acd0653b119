package hipdriver

import (
	"fmt"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// Launch passes Args as they are. The library copies the arguments before the call returns.
func (d *device) Launch(s driver.Stream, l *driver.Launch) error {
	if s <= defaultStreams {
		return d.noStream("launch", s)
	}
	if l.Begun != 0 {
		return d.refuse("launch", errBegun, "%s", l.String())
	}
	return d.submit("launch", func() error {
		var err error
		grid, block := l.Dims()
		if l.Attrs != (driver.LaunchAttrs{}) && relies(&l.Attrs) {
			if err := d.lacksAttrs(&l.Attrs); err != nil {
				return d.refuse("launch", err, "%s", l.String())
			}
			err = d.lib.ModuleLaunchCooperativeKernel(hip.Function(l.Function), grid[0], grid[1], grid[2], block[0], block[1], block[2],
				l.SharedMem, hip.Stream(s), l.Args)
		} else {
			err = d.lib.ModuleLaunchKernel(hip.Function(l.Function), grid[0], grid[1], grid[2], block[0], block[1], block[2],
				l.SharedMem, hip.Stream(s), l.Args, nil)
		}
		if err != nil {
			return d.failLaunch("launch", s, err, "%s, in stream %#x", l.String(), uintptr(s))
		}
		return nil
	})
}

// errBegun is the error of a launch with an event for the kernel's beginning.
var errBegun = fmt.Errorf("HIP has no events for the beginning of a kernel: %w", driver.ErrUnsupported)

// relies reports whether a kernel relies on attributes of its launch. The other attributes are
// hints, and the library does not get them. HIP accepts a priority since 6.5
// (hipDrvLaunchKernelEx), but no device was available for a test, and a hint must not make a launch
// fail.
func relies(a *driver.LaunchAttrs) bool {
	return a.Cooperative || a.Dependent || a.Cluster != [3]uint32{}
}

// lacksAttrs returns an error if a kernel relies on a feature that the device lacks. Of these
// features HIP has only cooperative launches.
func (d *device) lacksAttrs(a *driver.LaunchAttrs) error {
	switch {
	case a.Cluster != [3]uint32{}:
		return fmt.Errorf("HIP has no clusters of blocks: %w", driver.ErrUnsupported)
	case a.Dependent:
		return fmt.Errorf("HIP has no dependent launches: %w", driver.ErrUnsupported)
	case a.Cooperative && !d.caps.Cooperative:
		return fmt.Errorf("a cooperative launch, on %s, with the HIP runtime, version %s: %w", d.arch(), version(d.lib), driver.ErrUnsupported)
	}
	return nil
}

// failLaunch is fail for a launch. The device is not lost if HIP has only refused the launch.
func (d *device) failLaunch(op string, s driver.Stream, err error, format string, args ...any) error {
	only := refused(err, func() error { return d.lib.StreamQuery(hip.Stream(s)) })
	e := d.fail(op, err, format, args...)
	e.Lost = e.Lost && !only
	return e
}
