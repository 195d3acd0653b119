package simdriver

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Counters counts calls and objects. All fields describe nearly the same moment, even while the
// driver is in use.
type Counters struct {
	Calls   map[Op]uint64 // calls of all devices and of the driver; an Op without calls is missing
	Total   uint64        // the sum of Calls
	Devices []DeviceCounters
}

// DeviceCounters counts the calls and objects of one device.
type DeviceCounters struct {
	Calls    map[Op]uint64
	Total    uint64
	Executed uint64 // operations that streams have executed; a record or a wait does not count if it was complete at the call
	Pending  uint64 // operations in streams that have not executed yet; 0 on a device that is lost or closed

	// Live objects.
	Streams      int
	Events       int
	Timers       int
	Modules      int
	Graphs       int
	Execs        int
	Comms        int    // ranks of communicators
	CommMemory   int    // registrations of memory, and windows
	Allocations  int    // allocations of all kinds, except variables of modules and memory of pools
	Bytes        uint64 // bytes of device memory, with variables of modules, without pools
	HostBytes    uint64 // bytes of host and managed memory, without pools
	Registered   uint64 // bytes of the program's memory that are registered
	Reservations int    // reservations of addresses
	Pages        int    // pages, which are handles of physical memory
	PageBytes    uint64 // bytes of the physical memory in Pages
	Opened       int    // allocations of other processes that are open

	Pools           int    // pools, except the default pool
	PoolAllocations int    // allocations of pools without a FreeAsync
	Reserved        uint64 // bytes reserved by all pools, including destroyed pools that wait for their last frees
	Used            uint64 // bytes allocated in pools; a free counts when it has executed
}

// Counters returns the counters. It may be called at any time.
func (d *Driver) Counters() Counters {
	c := Counters{Calls: make(map[Op]uint64), Devices: make([]DeviceCounters, len(d.devices))}
	for op := range codes {
		count(c.Calls, &c.Total, op, d.calls[op].Load())
	}
	for i, v := range d.devices {
		dc := &c.Devices[i]
		dc.Calls = make(map[Op]uint64)
		for op := range codes {
			n := v.calls[op].Load()
			count(dc.Calls, &dc.Total, op, n)
			count(c.Calls, &c.Total, op, n)
		}
		dc.Executed = v.retired.Load()
		add := func(a *allocation) {
			switch {
			case a.registered:
				dc.Registered += a.size
				return
			case a.origin != nil:
				dc.Opened++
				return
			case a.virtual != nil:
				dc.Reservations++
				return
			case a.kind.OfDevice():
				dc.Bytes += a.size
			default:
				dc.HostBytes += a.size
			}
			dc.Allocations++
		}
		v.space.each(v, add)
		d.host.each(v, add)
		v.eachPool(func(p *pool) {
			if !p.dying.Load() && p != v.basic {
				dc.Pools++
			}
			dc.PoolAllocations += p.count
			dc.Reserved += p.reserved.now
			dc.Used += min(p.used.now, p.reserved.now)
		})
	}
	d.streams.all(func(_ uintptr, s *stream) {
		dc := &c.Devices[s.dev.index]
		dc.Streams++
		dc.Executed += s.done.Load()
		if s.dev.down.Load() == nil {
			dc.Pending += s.pending()
		}
	})
	d.events.all(func(_ uintptr, e *event) {
		if e.timer != nil {
			c.Devices[e.dev.index].Timers++
		} else {
			c.Devices[e.dev.index].Events++
		}
	})
	d.virtualPages.all(func(_ uintptr, p *pages) {
		c.Devices[p.dev.index].Pages++
		c.Devices[p.dev.index].PageBytes += p.size
	})
	d.graphs.all(func(_ uintptr, g *graph) { c.Devices[g.dev.index].Graphs++ })
	d.execs.all(func(_ uintptr, x *exec) { c.Devices[x.dev.index].Execs++ })
	d.comms.ranks.all(func(_ uintptr, r *rank) { c.Devices[r.dev.index].Comms++ })
	d.comms.memory.all(func(_ uintptr, cm *commMemory) { c.Devices[cm.rank.dev.index].CommMemory++ })
	d.modules.all(func(_ uintptr, m *module) {
		dc := &c.Devices[m.dev.index]
		dc.Modules++
		dc.Allocations -= len(m.vars)
	})
	return c
}

// count adds n calls of op.
func count(calls map[Op]uint64, total *uint64, op code, n uint64) {
	if n > 0 {
		calls[ops[op]] += n
		*total += n
	}
}

// Calls returns the number of calls: Counters.Total.
func (d *Driver) Calls() uint64 {
	var n uint64
	for c := range codes {
		n += d.calls[c].Load()
		for _, v := range d.devices {
			n += v.calls[c].Load()
		}
	}
	return n
}

// Leaks names leaks: open devices, live objects, and objects that were left when a device was
// closed. It returns nil if there are none. It does not look for live objects of a device if one of
// the device's streams, even a destroyed one, waits for a value in memory, another process's event,
// or work of a lost device. A real driver would keep the objects of such a stream until the wait
// ends.
func (d *Driver) Leaks() []string {
	d.mu.Lock()
	leaks := append([]string(nil), d.leaked...)
	d.mu.Unlock()
	for _, v := range d.devices {
		if v.awaitsOthers() {
			continue
		}
		v.mu.Lock()
		n := v.opens
		v.mu.Unlock()
		if n > 0 {
			leaks = append(leaks, fmt.Sprintf("device %d is open", v.index))
		}
		leaks = append(leaks, v.objects()...)
	}
	return leaks
}

// awaitsOthers reports whether a stream of the device, even a destroyed one, waits for something
// outside the driver's working devices.
func (v *device) awaitsOthers() bool {
	awaits := v.stuck.Load()
	v.d.streams.all(func(_ uintptr, s *stream) { awaits = awaits || s.dev == v && s.awaitsOthers() })
	return awaits
}

// objects returns texts that name the device's objects.
func (v *device) objects() []string {
	var names []string
	add := func(format string, args ...any) {
		names = append(names, fmt.Sprintf(format+" of device %d", append(args, v.index)...))
	}
	vars := make(map[driver.Ptr]bool)
	v.d.streams.all(func(h uintptr, s *stream) {
		if s.dev == v {
			add("stream %#x", h)
		}
	})
	v.d.events.all(func(h uintptr, e *event) {
		switch {
		case e.dev != v:
		case e.timer != nil:
			add("timer %#x", h)
		case e.opened:
			add("event %#x of another process, opened,", h)
		default:
			add("event %#x", h)
		}
	})
	v.d.virtualPages.all(func(h uintptr, p *pages) {
		if p.dev == v {
			add("pages %#x, %d bytes,", h, p.size)
		}
	})
	v.d.graphs.all(func(h uintptr, g *graph) {
		if g.dev == v {
			add("graph %#x", h)
		}
	})
	v.d.execs.all(func(h uintptr, x *exec) {
		if x.dev == v {
			add("exec %#x", h)
		}
	})
	v.d.comms.ranks.all(func(h uintptr, r *rank) {
		if r.dev == v {
			add("communicator %#x", h)
		}
	})
	v.d.comms.memory.all(func(h uintptr, cm *commMemory) {
		if cm.rank.dev == v {
			add("registration %#x with a communicator, of %d bytes at %#x,", h, cm.size, uint64(cm.base))
		}
	})
	v.d.modules.all(func(h uintptr, m *module) {
		if m.dev == v {
			add("module %#x", h)
			for _, a := range m.vars {
				vars[a.base] = true
			}
		}
	})
	memory := func(a *allocation) {
		switch {
		case vars[a.base]:
		case a.origin != nil:
			add("%d bytes of another process, opened at %#x,", a.size, uint64(a.base))
		case a.registered:
			add("registration of %d bytes at %#x", a.size, uint64(a.base))
		case a.kind == driver.CommMem:
			add("%d bytes of memory for communicators at %#x", a.size, uint64(a.base))
		case a.kind == driver.ShareableMem:
			add("%d bytes of shareable device memory at %#x", a.size, uint64(a.base))
		case a.virtual != nil:
			add("%d bytes of reserved addresses at %#x", a.size, uint64(a.base))
		case a.kind == driver.DeviceMem:
			add("%d bytes of device memory at %#x", a.size, uint64(a.base))
		case a.kind == driver.ManagedMem:
			add("%d bytes of managed memory at %#x", a.size, uint64(a.base))
		default:
			add("%d bytes of host memory at %#x", a.size, uint64(a.base))
		}
	}
	v.space.each(v, memory)
	v.d.host.each(v, memory)
	v.eachPool(func(p *pool) {
		if !p.dying.Load() && p != v.basic {
			add("pool %#x", uint64(p.id))
		}
		for _, g := range p.segments {
			for r := g.first; r != nil; r = r.next {
				if r.block != nil {
					add("%d bytes of pool memory at %#x", r.block.size, uint64(r.base))
				}
			}
		}
	})
	return names
}
