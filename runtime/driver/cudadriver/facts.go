package cudadriver

import (
	"sync"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/nvtopology"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/driver"
)

// openNVML returns a function that opens and starts NVML at its first call.
func openNVML(opt nvml.Options) func() (*nvml.Library, error) {
	return sync.OnceValues(func() (*nvml.Library, error) { return nvtopology.Open(opt) })
}

func (d *device) MemInfo() (free, total uint64, err error) {
	if free, total, err = d.lib.MemGetInfo(); err != nil {
		return 0, 0, d.fail("memory info", err, "size of memory")
	}
	return free, total, nil
}

// Link gets the kind of link from NVML, because the CUDA driver does not distinguish NVLink from
// PCI Express. The kind is unknown if NVML is missing or does not know the devices.
func (d *device) Link(other driver.Device) (driver.Link, error) {
	o, err := d.peer("link", other)
	if err != nil {
		return driver.Link{}, err
	}
	if o.id == d.id { // the CUDA driver would return an error
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
	l := driver.Link{Rank: int(rank), Atomics: atomics != 0, Arrays: arrays != 0}
	if access == 0 {
		l = driver.Link{Kind: driver.LinkNone, Rank: -1}
	}
	if lib, err := d.nvml(); err == nil {
		if p, err := nvtopology.Between(lib, d.info.PCI, o.info.PCI); err == nil {
			l.PCIe, l.NVLinks = nvtopology.Abbreviation(p.PCIe), p.NVLinks
			switch {
			case access == 0:
			case p.NVLinks > 0:
				l.Kind = driver.LinkNVLink
			default:
				l.Kind = driver.LinkPCIe
			}
		}
	}
	return l, nil
}

func (d *device) Occupancy(f driver.Function, threads int, shared uint32) (int, error) {
	blocks, err := d.lib.OccupancyMaxActiveBlocksPerMultiprocessor(cuda.Function(f), int32(threads), uint64(shared))
	if err != nil {
		return 0, d.fail("occupancy", err, "function %#x in blocks of %d threads with %d bytes of shared memory", uintptr(f), threads, shared)
	}
	return int(blocks), nil
}

// priorities returns the range of stream priorities, or zeros if the driver does not report it.
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
