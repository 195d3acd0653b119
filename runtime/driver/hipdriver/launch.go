package hipdriver

import (
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// Launch passes Args as they are: the library copies what they point to before it returns.
func (d *device) Launch(s driver.Stream, l *driver.Launch) error {
	if s <= defaultStreams {
		return d.noStream("launch", s)
	}
	err := d.lib.ModuleLaunchKernel(hip.Function(l.Function), l.Grid[0], l.Grid[1], l.Grid[2], l.Block[0], l.Block[1], l.Block[2],
		l.SharedMem, hip.Stream(s), l.Args, nil)
	if err != nil {
		return d.failLaunch("launch", s, err, "function %#x, grid %v, block %v, %d bytes of dynamic shared memory, in stream %#x",
			uintptr(l.Function), l.Grid, l.Block, l.SharedMem, uintptr(s))
	}
	return nil
}

// failLaunch is fail for what may only have been refused.
func (d *device) failLaunch(op string, s driver.Stream, err error, format string, args ...any) error {
	only := refused(err, func() error { return d.lib.StreamQuery(hip.Stream(s)) })
	e := d.fail(op, err, format, args...)
	e.Lost = e.Lost && !only
	return e
}
