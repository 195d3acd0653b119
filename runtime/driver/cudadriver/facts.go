package cudadriver

import (
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// MemInfo asks the context, which needs to be current.
func (d *device) MemInfo() (free, total uint64, err error) {
	if free, total, err = d.lib.MemGetInfo(); err != nil {
		return 0, 0, d.fail("memory info", err, "size of memory")
	}
	return free, total, nil
}

// Link leaves open what kind of way there is: the driver's interface does not tell NVLink from PCI Express.
func (d *device) Link(other driver.Device) (driver.Link, error) {
	o, err := d.peer("link", other)
	if err != nil {
		return driver.Link{}, err
	}
	if o.id == d.id { // the driver takes it for an error to be asked
		return driver.Link{Kind: driver.LinkSelf, Atomics: true, Arrays: true}, nil
	}
	var access, rank, atomics, arrays int32
	for _, a := range []struct {
		attr cuda.DeviceP2PAttribute
		to   *int32
	}{
		{cuda.DeviceP2PAttributeAccessSupported, &access},
		{cuda.DeviceP2PAttributePerformanceRank, &rank},
		{cuda.DeviceP2PAttributeNativeAtomicSupported, &atomics},
		{cuda.DeviceP2PAttributeCUDAArrayAccessSupported, &arrays},
	} {
		if *a.to, err = d.lib.DeviceGetP2PAttribute(a.attr, d.id, o.id); err != nil {
			return driver.Link{}, d.fail("link", err, "%v to device %d", a.attr, o.info.Index)
		}
	}
	if access == 0 {
		return driver.Link{Kind: driver.LinkNone, Rank: -1}, nil
	}
	return driver.Link{Rank: int(rank), Atomics: atomics != 0, Arrays: arrays != 0}, nil
}

func (d *device) Occupancy(f driver.Function, threads int, shared uint32) (int, error) {
	blocks, err := d.lib.OccupancyMaxActiveBlocksPerMultiprocessor(cuda.Function(f), int32(threads), uint64(shared))
	if err != nil {
		return 0, d.fail("occupancy", err, "function %#x in blocks of %d threads with %d bytes of shared memory", uintptr(f), threads, shared)
	}
	return int(blocks), nil
}

// priorities asks for the range of streams' priorities, which the driver tells of the current context.
func (d *device) priorities() (r [2]int, err error) {
	if !d.lib.HasSymbol("cuCtxGetStreamPriorityRange") {
		return r, nil
	}
	err = d.withContext("open", func() error {
		least, greatest, err := d.lib.CtxGetStreamPriorityRange()
		if err != nil {
			return d.fail("open", err, "range of priorities")
		}
		r = [2]int{int(least), int(greatest)}
		return nil
	})
	return r, err
}
