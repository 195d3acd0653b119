package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// MemInfo returns how many bytes of the device's memory are free now, and how many bytes the device
// has in total. Memory that any program on the machine has allocated is not free, and neither is
// memory that pools keep reserved. [Pool.Trim] gives reserved memory back. An allocation of exactly
// the free size may still fail. MemInfo blocks while the driver answers (cuMemGetInfo,
// hipMemGetInfo). If the driver does not report free memory, the error is [ErrUnsupported].
func (d *Device) MemInfo() (free, total uint64, err error) {
	if err := d.ready("memory info"); err != nil {
		return 0, 0, err
	}
	m, ok := d.native.Native.(driver.MemInfo)
	if !ok || !d.native.Caps.MemInfo {
		return 0, 0, d.untold("memory info", "how much memory is free")
	}
	err = d.ask("memory info", func() (err error) {
		free, total, err = m.MemInfo()
		return err
	})
	return free, total, err
}

// Link describes the path from the device to another device's memory, as the driver reports it
// (cuDeviceGetP2PAttribute; for AMD hipDeviceGetP2PAttribute and hipExtGetLinkTypeAndHopCount). The
// CUDA driver does not distinguish NVLink from PCI Express. If NVML is installed, Link gets from
// NVML which of the two connects the devices, and the path on PCI Express. If the devices are of
// different drivers, the kind is [driver.LinkNone]. Link blocks while the driver answers. If the
// driver does not report links, the error is [ErrUnsupported].
func (d *Device) Link(other *Device) (l driver.Link, err error) {
	if err := d.ready("link"); err != nil {
		return l, err
	}
	if other == nil {
		return l, errs.Argument("link", "no device to go to from %s", d.native.Info.Name)
	}
	if err := other.ready("link"); err != nil {
		return l, err
	}
	if d.native.Driver != other.native.Driver {
		return driver.Link{Kind: driver.LinkNone, Rank: -1}, nil
	}
	links, ok := d.native.Native.(driver.Links)
	if !ok || !d.native.Caps.Links {
		return l, d.untold("link", "how it is linked to others")
	}
	err = d.ask("link", func() (err error) {
		// WhileThere keeps the other device open until the driver has answered.
		return other.native.WhileThere(func() (err error) {
			l, err = links.Link(other.native.Native)
			return err
		})
	})
	return l, err
}

// PriorityRange returns the least and the greatest priority of the device's streams. A smaller
// number is more urgent. If streams have no priorities, least and greatest are equal. The range
// applies to queues ([Options]), launches ([LaunchAttrs]), and streams that a program makes itself.
// The runtime queries the range when it opens the device (cuCtxGetStreamPriorityRange,
// hipDeviceGetStreamPriorityRange), so PriorityRange does not block.
func (d *Device) PriorityRange() (least, greatest int) {
	if d == nil {
		return 0, 0
	}
	return d.native.Caps.PriorityRange[0], d.native.Caps.PriorityRange[1]
}

// Occupancy returns how many blocks of the kernel a multiprocessor can run at a time. The parameter
// threads is the number of threads in a block. The parameter shared is the dynamic shared memory of
// a block in bytes. The result is 0 if no such block can be launched. Clusters are not considered.
// Occupancy blocks while the driver answers (cuOccupancyMaxActiveBlocksPerMultiprocessor,
// hipModuleOccupancyMaxActiveBlocksPerMultiprocessor). If threads is not positive or shared is
// negative, the error is [ErrArgument]. If the driver does not report the occupancy, the error is
// [ErrUnsupported].
func (k *Kernel) Occupancy(threads, shared int) (blocks int, err error) {
	if k.isZero() {
		return 0, errs.Zero("occupancy", "Kernel")
	}
	if threads <= 0 || shared < 0 {
		return 0, errs.Argument("occupancy", "a block of %d threads with %d bytes of shared memory", threads, shared)
	}
	err = k.ask(func(o driver.Occupancy) (err error) {
		blocks, err = k.held(o, threads, shared)
		return err
	})
	return blocks, err
}

// BlockSize returns the number of threads in a block with which a multiprocessor runs the most
// threads of the kernel at a time. If several numbers are equally good, BlockSize returns the
// largest. The parameter shared is the dynamic shared memory of a block in bytes. The parameter
// most is the highest number of threads to consider; 0 means the kernel's limit. The result blocks
// is the number of blocks of that size that fill all multiprocessors. Both results are 0 if no
// block can be launched. Like cuOccupancyMaxPotentialBlockSize, BlockSize queries the occupancy for
// the highest number and for multiples of the warp size below the highest number. BlockSize blocks
// until the driver has answered up to some tens of queries. If a parameter is negative, the error
// is [ErrArgument]. The other errors are those of [Kernel.Occupancy]. If a kernel's shared memory
// depends on its block size, call Occupancy for each size instead.
func (k *Kernel) BlockSize(shared, most int) (threads, blocks int, err error) {
	if k.isZero() {
		return 0, 0, errs.Zero("block size", "Kernel")
	}
	if shared < 0 || most < 0 {
		return 0, 0, errs.Argument("block size", "%d bytes of shared memory, and at most %d threads", shared, most)
	}
	err = k.ask(func(o driver.Occupancy) error {
		info, most := &k.exe.dev.native.Info, most
		if n := k.maxThreads(); most == 0 || n > 0 && n < most {
			most = n
		}
		warp, best := max(info.WarpSize, 1), 0
		for n := (most + warp - 1) / warp * warp; n > 0; n -= warp {
			size := min(n, most)
			held, err := k.held(o, size, shared)
			if err != nil {
				return err
			}
			if held*size > best {
				best, threads, blocks = held*size, size, held*info.Processors
			}
			if best == info.ProcessorThreads && best > 0 {
				break // the maximum is reached
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return threads, blocks, nil
}

// ask calls fn to query the driver about the kernel's occupancy, and holds the kernel during the
// call.
func (k *Kernel) ask(fn func(driver.Occupancy) error) error {
	d := k.exe.dev
	if err := d.failed(); err != nil {
		return err
	}
	o, ok := d.native.Native.(driver.Occupancy)
	if !ok || !d.native.Caps.Occupancy {
		return d.untold("occupancy", "how many blocks a multiprocessor holds")
	}
	if err := k.exe.hold(); err != nil {
		return fmt.Errorf("gpu: occupancy of kernel %s: %w", k.name, err)
	}
	defer k.exe.release()
	return d.ask("occupancy of kernel "+k.name, func() error { return fn(o) })
}

// held returns how many blocks of the kernel a multiprocessor can run at a time. It returns 0 for
// blocks with more threads or shared memory than the kernel can have.
func (k *Kernel) held(o driver.Occupancy, threads, shared int) (int, error) {
	if n := k.maxThreads(); n > 0 && threads > n {
		return 0, nil
	}
	if uint64(k.info.SharedMem)+uint64(shared) > k.maxShared() {
		return 0, nil
	}
	return o.Occupancy(k.fn, threads, uint32(shared))
}

// ask calls fn on a bound thread, where fn queries the driver. ask adds the query and the device to
// an error of fn.
func (d *Device) ask(what string, fn func() error) error {
	if err := d.native.Do(fn); err != nil {
		d.native.Check(err)
		return fmt.Errorf("gpu: %s on %s: %w", what, d.native.Info.Name, err)
	}
	return nil
}

// untold returns the error of a query that the device's driver does not support. The parameter op
// names the query. The parameter what names the fact that the driver does not report.
func (d *Device) untold(op, what string) error {
	return fmt.Errorf("gpu: %s: %s does not tell %s: %w", op, d.native.Info.Name, what, driver.ErrUnsupported)
}
