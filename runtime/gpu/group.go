package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/closer"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A Group is a set of devices that are used together, of one driver or of several. [OpenGroup]
// opens the devices together, and the methods of Group close them together and load code on all of
// them. [Group.Devices] returns the single devices, for example to use their queues. Semaphores
// order work across devices with or without a group. The methods may be called concurrently.
type Group struct{ devs []*Device }

// OpenGroup opens devices of a driver at the same time, and makes a group of them as [NewGroup]
// does. It opens the devices with the given indices, or all devices if no index is given. It blocks
// until the driver has opened them. If there is an error, OpenGroup closes the devices that it has
// opened.
func OpenGroup(d driver.Driver, o Options, indices ...int) (*Group, error) {
	if isNone(d) {
		return nil, errs.Argument("open group", "no driver")
	}
	if len(indices) == 0 {
		infos, err := d.Devices()
		if err != nil {
			return nil, fmt.Errorf("gpu: open group: %w", err)
		}
		if len(infos) == 0 {
			return nil, errs.Argument("open group", "driver %s has no devices", d.Name())
		}
		for i := range infos {
			indices = append(indices, i)
		}
	}
	for i, a := range indices {
		for _, b := range indices[:i] {
			if a == b {
				return nil, errs.Argument("open group", "device %d twice", a)
			}
		}
	}
	devs := make([]*Device, len(indices))
	var of wake.Processors
	err := each(len(indices), func(i int) (err error) {
		devs[i], err = open(d, indices[i], o, &of)
		return err
	})
	if err == nil {
		var g *Group
		if g, err = NewGroup(devs...); err == nil {
			for _, d := range devs {
				d.watch()
			}
			return g, nil
		}
	}
	return nil, errors.Join(err, each(len(devs), func(i int) error {
		if devs[i] == nil {
			return nil
		}
		return devs[i].Close()
	}))
}

// NewGroup makes a group of open devices, which may be of several drivers. It gives each device
// access to the memory of the group's other devices of the same driver, if the hardware supports
// it. Without access, a device can only copy the memory of another device. For access to memory of
// pools, use [Group.NewPools] or [Pool.Access]. If there is an error, the devices stay open.
func NewGroup(devices ...*Device) (*Group, error) {
	if len(devices) == 0 {
		return nil, errs.Argument("group", "no devices")
	}
	g := &Group{}
	for i, d := range devices {
		if d.isZero() {
			return nil, errs.Argument("group", "device %d is nil or zero", i)
		}
		for _, other := range g.devs {
			if other == d {
				return nil, errs.Argument("group", "device %s twice", d.native.Info.Name)
			}
		}
		if err := d.failed(); err != nil {
			return nil, err
		}
		g.devs = append(g.devs, d)
	}
	memories := make([]*memory.Device, len(g.devs))
	for i, d := range g.devs {
		memories[i] = &d.memory
	}
	if err := each(len(g.devs), func(i int) error { return g.devs[i].memory.EnablePeers(memories, false) }); err != nil {
		return nil, err
	}
	return g, nil
}

// each calls fn for the numbers from 0 to n-1 concurrently, waits, and joins the errors.
func each(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Devices returns the devices, in the order of the arguments of [NewGroup] or of the indices of
// [OpenGroup]. If OpenGroup got no indices, the order is that of the driver.
func (g *Group) Devices() []*Device { return append([]*Device(nil), g.members()...) }

// members returns the devices. A nil or zero Group has none.
func (g *Group) members() []*Device {
	if g == nil {
		return nil
	}
	return g.devs
}

// Load loads code on all devices at the same time. Module i is for device i of the group. If a
// device cannot load the code, Load closes all modules that it has loaded.
func (g *Group) Load(image []byte) ([]*Module, error) {
	all := make([]*Module, len(g.members()))
	err := each(len(all), func(i int) (err error) {
		all[i], err = g.devs[i].Load(image)
		return err
	})
	if err != nil {
		for _, x := range all {
			x.Close()
		}
		return nil, err
	}
	return all, nil
}

// NewPools makes a pool on each device. The group's other devices of the same driver get access to
// the pool, if the hardware supports it. Pool i is on device i of the group. If a pool cannot be
// made, or the driver fails to give access, NewPools closes all pools that it has made.
func (g *Group) NewPools(o PoolOptions) ([]*Pool, error) {
	all := make([]*Pool, len(g.members()))
	err := each(len(all), func(i int) (err error) {
		if all[i], err = g.devs[i].newPool(o); err != nil {
			return err
		}
		for _, d := range g.devs {
			if d == g.devs[i] || d.native.Driver != g.devs[i].native.Driver || all[i].in().IsPortable() {
				continue
			}
			if err := all[i].Access(d, true); err != nil && !errors.Is(err, driver.ErrUnsupported) {
				return fmt.Errorf("gpu: access of %s to a pool of %s: %w", d.native.Info.Name, g.devs[i].native.Info.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		for _, p := range all {
			if p != nil {
				p.Close()
			}
		}
		return nil, err
	}
	for _, p := range all {
		p.handle().Watch()
	}
	return all, nil
}

// Close closes all devices at the same time, as [Device.Close] does.
func (g *Group) Close() error { return closer.InTime(g.Shutdown) }

// Shutdown closes all devices at the same time, as [Device.Shutdown] does.
func (g *Group) Shutdown(ctx context.Context) error {
	return each(len(g.members()), func(i int) error { return g.devs[i].Shutdown(ctx) })
}
