package simdriver

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A device is a simulated GPU.
type device struct {
	d     *Driver
	index int
	info  driver.Info
	space deviceSpace

	down    atomic.Pointer[down]          // set while every call fails; nil while the device works
	gone    atomic.Pointer[chan struct{}] // closed when the device is lost
	lossMu  sync.Mutex                    // held while the device becomes lost or works again; no other lock is taken under it
	stalled atomic.Bool
	stuck   atomic.Bool // a stream was destroyed while it waited for a value, another process or a lost device; unset by the last Close
	calls   [codes]atomic.Uint64
	retired atomic.Uint64 // operations that destroyed streams had executed

	goFunctions goFunctions
	nodeTimes   nodeTimes

	virtualMem virtualMemory

	peers []atomic.Bool // by device index: kernels may use the memory of that device

	tight atomic.Int32 // number of pools with a limited release threshold

	mu      sync.Mutex
	opens   int     // calls of Open minus calls of Close
	pools   []*pool // including destroyed pools that still have memory
	basic   *pool   // the default pool; nil until first used
	current *pool   // the current pool; nil means the default pool
}

// A down is the reason for which a device does not work.
type down struct {
	err  error
	lost bool // if false, the device is closed
}

// newDevice makes the device with an index.
func newDevice(d *Driver, index int) *device {
	v := &device{d: d, index: index}
	v.renew()
	v.space.init(index)
	v.info = driver.Info{
		Index:       index,
		Name:        fmt.Sprintf("Simulated GPU %d", index),
		Arch:        "sim",
		Memory:      d.memory,
		Processors:  16,
		WarpSize:    32,
		MaxThreads:  1024,
		MaxBlock:    [3]int{1024, 1024, 64},
		MaxGrid:     [3]int{1<<31 - 1, 65535, 65535},
		SharedMem:   48 << 10,
		SharedOptIn: 96 << 10,
		NUMANode:    -1,
		Clock:       1_000_000,
		MemoryClock: 1_000_000,
		MemoryBus:   256,
		L2:          4 << 20,
		CopyEngines: 2,

		Registers:          64 << 10,
		ProcessorThreads:   2048,
		ProcessorBlocks:    32,
		ProcessorRegisters: 64 << 10,
		ProcessorSharedMem: 100 << 10,

		Clusters: true,
	}
	copy(v.info.UUID[:], "simulated")
	v.info.UUID[14], v.info.UUID[15] = byte(index>>8), byte(index)
	return v
}

// Info describes the device.
func (v *device) Info() driver.Info { return v.info }

// Caps returns the device's features.
func (v *device) Caps() driver.Caps { return v.d.caps }

// Bind makes the device current on the calling thread.
func (v *device) Bind() error {
	err := v.enter(codeBind, false)
	p := v.down.Load()
	if err == nil || p != nil && p.lost {
		v.d.threads.bind(v.index) // a lost device can be bound too, because its objects must be freed
	}
	if err != nil && p != nil && p.lost && !v.d.stays {
		v.mu.Lock()
		if v.opens > 1 {
			p = &down{fmt.Errorf("%w: close every gpu.Device of it, then open it again", p.err), true}
			err = p.error(codeBind)
		}
		v.mu.Unlock()
	}
	return err
}

// Unbind makes the device no longer current on the calling thread. Unbind never fails. Counters do
// not count it.
func (v *device) Unbind() error {
	v.d.threads.unbind(v.index)
	return nil
}

// Close undoes one Open, and makes the device no longer current on the calling thread. The last
// Close destroys the objects that are left. If nothing else is wrong, its error names them.
func (v *device) Close() error {
	err, ok := v.end(codeClose)
	if !ok {
		return err
	}
	v.mu.Lock()
	if v.opens == 0 {
		v.mu.Unlock()
		return fail(codeClose, fmt.Errorf("device %d: %w", v.index, ErrClosed))
	}
	v.opens--
	v.d.threads.unbind(v.index)
	last := v.opens == 0
	v.mu.Unlock()
	if !last {
		return err
	}
	v.down.CompareAndSwap(nil, &down{err: ErrClosed})
	v.forgetPeers()
	v.d.machine.leave(v)
	left := v.destroyAll()
	v.recover()
	if err == nil && len(left) > 0 {
		err = failf(codeClose, "device %d: %w: %s; destroy them first", v.index, ErrBusy, strings.Join(left, ", "))
	}
	return err
}

// destroyAll destroys the objects that are left and returns their names.
func (v *device) destroyAll() []string {
	left := v.objects()
	d := v.d
	d.streams.all(func(h uintptr, s *stream) {
		if s.dev == v && d.streams.remove(h) != nil {
			d.dropStream(s)
		}
	})
	d.events.all(func(h uintptr, e *event) {
		if e.dev == v {
			d.events.remove(h)
		}
	})
	d.modules.all(func(h uintptr, m *module) {
		if m.dev == v && d.modules.remove(h) != nil {
			m.unload()
		}
	})
	d.graphs.all(func(h uintptr, g *graph) {
		if g.dev == v {
			d.graphs.remove(h)
		}
	})
	d.execs.all(func(h uintptr, x *exec) {
		if x.dev == v {
			d.execs.remove(h)
		}
	})
	v.clearComms()
	v.clearPools()
	v.clearVirtual()
	v.space.clear(v)
	d.host.clear(v)
	d.mu.Lock()
	d.leaked = append(d.leaked, left...)
	d.mu.Unlock()
	v.stuck.Store(false) // last, so that Leaks names no object that is being destroyed here
	return left
}

// enter begins a call that is not submitted. It returns an error if the device does not work. If
// bound is true and Config.Strict is set, it also returns an error if the device is not current on
// the thread.
func (v *device) enter(c code, bound bool) error {
	v.calls[c].Add(1)
	if bound && v.d.strict {
		if err := v.checkThread(c); err != nil {
			return err
		}
	}
	if v.d.armed.Load() != 0 {
		if _, err := v.d.meet(v, c); err != nil {
			return err
		}
	}
	if p := v.down.Load(); p != nil {
		return p.error(c)
	}
	return nil
}

// end begins a call that frees or destroys something. With Config.Strict the call needs a bound
// thread. If ok is false, the call must only return err. If ok is true, the call must do its work
// even if err is not nil, because the caller cannot try again, as with GPU APIs. In that case err
// says that the device is lost, or is an injected fault.
func (v *device) end(c code) (err error, ok bool) {
	v.calls[c].Add(1)
	if v.d.strict {
		if err := v.checkThread(c); err != nil {
			return err, false
		}
	}
	if v.d.armed.Load() != 0 {
		_, err = v.d.meet(v, c)
	}
	p := v.down.Load()
	if err == nil && p != nil {
		err = p.error(c)
	}
	return err, p == nil || p.lost
}

// release begins a call that frees something in stream order. The result later means the same as in
// v.submit. The results err and ok mean the same as in v.end.
func (v *device) release(c code) (later, err error, ok bool) {
	v.calls[c].Add(1)
	if v.d.armed.Load() != 0 {
		later, err = v.d.meet(v, c)
	}
	p := v.down.Load()
	if err == nil && p != nil {
		err = p.error(c)
	}
	return later, err, p == nil || p.lost
}

// cannot makes the error of a call that the device's Caps do not include.
func (v *device) cannot(c code) error {
	return failf(c, "device %d: %w", v.index, driver.ErrUnsupported)
}

// enterIf does what enter does, for a feature that only some devices have.
func (v *device) enterIf(c code, bound, has bool) error {
	err := v.enter(c, bound)
	if err == nil && !has {
		err = v.cannot(c)
	}
	return err
}

// submit begins a call that any thread may make. If later is not nil, the call's operation must
// fail with it when the operation executes.
func (v *device) submit(c code) (later, err error) {
	v.calls[c].Add(1)
	if v.d.armed.Load() != 0 {
		if later, err = v.d.meet(v, c); err != nil {
			return nil, err
		}
	}
	if p := v.down.Load(); p != nil {
		return nil, p.error(c)
	}
	return later, nil
}

// checkThread returns an error if another device, or none, is current on the calling thread. It
// returns nil if threads cannot be distinguished.
func (v *device) checkThread(c code) error {
	if v.d.threads.id == nil {
		return nil
	}
	current, ok := v.d.threads.bound()
	if ok && current == v.index {
		return nil
	}
	if ok {
		return failf(c, "device %d, but device %d is current: %w", v.index, current, ErrInvalidContext)
	}
	return failf(c, "device %d, but no device is current: %w", v.index, ErrInvalidContext)
}

// error makes the error of a call on a device that is down.
func (p *down) error(c code) error {
	return &driver.Error{Driver: driverName, Op: c.String(), Err: p.err, Lost: p.lost}
}

// lose makes the device lost, unless it is lost already.
func (v *device) lose(err error) {
	v.lossMu.Lock()
	p := v.down.Load()
	first := p == nil || !p.lost
	if first {
		v.down.Store(&down{err: err, lost: true})
		close(*v.gone.Load())
	}
	v.lossMu.Unlock()
	if first {
		v.poke()
	}
}

// renew sets v.gone to a new channel, because the device is not lost.
func (v *device) renew() {
	gone := make(chan struct{})
	v.gone.Store(&gone)
}

// recover is called after the last Close. A lost device then becomes a closed one, so that it works
// when it is next opened. With Config.StaysLost it stays lost.
func (v *device) recover() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lossMu.Lock()
	defer v.lossMu.Unlock()
	p := v.down.Load()
	if !v.d.stays && p != nil && p.lost && v.opens == 0 { // if v.opens is not 0, the device was opened again meanwhile
		v.renew()
		v.down.Store(&down{err: ErrClosed})
	}
}

// poke wakes the device's streams, so that they check again whether they may continue.
func (v *device) poke() {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	for _, s := range v.d.order {
		if s.dev == v {
			s.poke()
		}
	}
}
