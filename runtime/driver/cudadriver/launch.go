package cudadriver

import (
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// Launch passes Args as they are: the driver copies what they point to before it returns.
func (d *device) Launch(s driver.Stream, l *driver.Launch) error {
	if s <= defaultStreams {
		return d.noStream("launch", s)
	}
	err := d.lib.LaunchKernel(cuda.Function(l.Function), l.Grid[0], l.Grid[1], l.Grid[2], l.Block[0], l.Block[1], l.Block[2],
		l.SharedMem, cuda.Stream(s), l.Args, nil)
	if err != nil {
		return d.fail("launch", err, "function %#x, grid %v, block %v, %d bytes of dynamic shared memory, in stream %#x",
			uintptr(l.Function), l.Grid, l.Block, l.SharedMem, uintptr(s))
	}
	return nil
}
