package cudadriver

import (
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Priorities = (*device)(nil)

func (d *device) NewPriorityStream(priority int) (driver.Stream, error) {
	priority = d.caps.ClampPriority(priority)
	s, err := d.lib.StreamCreateWithPriority(cuda.StreamNonBlocking, int32(priority))
	if err != nil {
		return 0, d.fail("new stream", err, "create a stream of priority %d", priority)
	}
	return d.newStream(s), nil
}
