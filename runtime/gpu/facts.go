package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// MemInfo asks how many bytes of the device's memory are free now, and how many there are in all. What any program on the machine has
// allocated is not free, nor what pools keep reserved: [Device.Trim] and [Pool.Trim] give that back. Of an allocation that is as large as
// what is free nobody promises that it succeeds. It blocks while the driver answers (cuMemGetInfo, hipMemGetInfo). Where the
// driver does not tell, the error is [driver.ErrUnsupported].
func (d *Device) MemInfo() (free, total uint64, err error) {
	if err := d.failed(); err != nil {
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

// Link describes the way from the device to another one's memory, as the driver tells it (cuDeviceGetP2PAttribute; on AMD's devices
// hipDeviceGetP2PAttribute and hipExtGetLinkTypeAndHopCount). CUDA does not tell its kind: NVML does, where it is there, NVLink or what there is of PCI
// Express on the way. Between devices of different drivers there is none. It blocks while the driver answers. Where the driver does not tell, the error is
// [driver.ErrUnsupported].
func (d *Device) Link(other *Device) (l driver.Link, err error) {
	if err := d.failed(); err != nil {
		return l, err
	}
	if other == nil {
		return l, argument("link", "no device to go to from %s", d.native.Info.Name)
	}
	if err := other.failed(); err != nil {
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
		return other.native.WhileThere(func() (err error) { // until the driver has answered
			l, err = links.Link(other.native.Native)
			return err
		})
	})
	return l, err
}

// PriorityRange returns the least and the greatest priority that the API's streams can have, of which the smaller number goes first. They
// are equal where streams have no priorities. It is for queues ([Options]), launches ([LaunchAttrs]), and streams that a program makes
// itself. The answer is of when the device was opened (cuCtxGetStreamPriorityRange, hipDeviceGetStreamPriorityRange).
func (d *Device) PriorityRange() (least, greatest int) {
	return d.native.Caps.PriorityRange[0], d.native.Caps.PriorityRange[1]
}

// Occupancy asks how many blocks of the kernel a multiprocessor holds at once, if each has so many threads and so many bytes of dynamic
// shared memory: 0 if no such block can be launched. Clusters are left out of account. It blocks while the driver answers
// (cuOccupancyMaxActiveBlocksPerMultiprocessor, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor). No threads, or negative numbers,
// are [ErrArgument]. Where the driver does not tell, the error is [driver.ErrUnsupported].
func (k *Kernel) Occupancy(threads, shared int) (blocks int, err error) {
	if threads <= 0 || shared < 0 {
		return 0, argument("occupancy", "a block of %d threads with %d bytes of shared memory", threads, shared)
	}
	err = k.ask(func(o driver.Occupancy) (err error) {
		blocks, err = k.held(o, threads, shared)
		return err
	})
	return blocks, err
}

// BlockSize asks with how many threads in a block a multiprocessor holds the most threads of the kernel at once, if each block has so
// many bytes of dynamic shared memory; of several such sizes it is the largest. The last argument is the most that it may be, or 0 for
// as many as the kernel can have. It also returns the smallest grid, in blocks, that fills all multiprocessors so. Both are 0 if no block
// can be launched. It asks the driver for the occupancy with every multiple of the warp size, in some tens of calls, as
// cuOccupancyMaxPotentialBlockSize does, and fails as [Kernel.Occupancy] does. A kernel whose shared memory depends on the size of
// its block is asked for the occupancy of each.
func (k *Kernel) BlockSize(shared, most int) (threads, blocks int, err error) {
	if shared < 0 || most < 0 {
		return 0, 0, argument("block size", "%d bytes of shared memory, and at most %d threads", shared, most)
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
				break // no more can be
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return threads, blocks, nil
}

// ask has the driver asked about the kernel's occupancy, while the kernel is held.
func (k *Kernel) ask(fn func(driver.Occupancy) error) error {
	if k == nil || k.exe == nil {
		return errZero
	}
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

// held returns how many blocks a multiprocessor holds, 0 where [Grid.check] refuses the block.
func (k *Kernel) held(o driver.Occupancy, threads, shared int) (int, error) {
	if n := k.maxThreads(); n > 0 && threads > n {
		return 0, nil
	}
	if uint64(k.info.SharedMem)+uint64(shared) > k.maxShared() {
		return 0, nil
	}
	return o.Occupancy(k.fn, threads, uint32(shared))
}

// ask has the driver asked something.
func (d *Device) ask(what string, fn func() error) error {
	if err := d.native.Do(fn); err != nil {
		d.native.Check(err)
		return fmt.Errorf("gpu: %s on %s: %w", what, d.native.Info.Name, err)
	}
	return nil
}

// untold is the error of what a driver does not tell.
func (d *Device) untold(op, what string) error {
	return fmt.Errorf("gpu: %s: %s does not tell %s: %w", op, d.native.Info.Name, what, driver.ErrUnsupported)
}
