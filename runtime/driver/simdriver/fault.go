package simdriver

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// AnyDevice, in the Device field of a Fault, means all devices.
const AnyDevice = -1

// A Fault makes calls fail.
//
// A call that frees or destroys something does its work even if a fault makes the call fail. The
// launch of a graph is a call. Its nodes are not.
type Fault struct {
	Op     Op  // the calls that fail; "" means all
	Device int // the device of the calls, or AnyDevice, which is the only value that matches OpDevices

	// N selects the only call that fails: 1 is the first matching call after Inject. 0 means that
	// every matching call fails.
	N uint64

	// Err is the error that the call's [driver.Error] wraps. nil means ErrInjected, or
	// [driver.ErrOutOfMemory] if OOM is set.
	Err error

	OOM  bool // the error means out of memory
	Lost bool // the call loses the device

	// AtExecution lets a submitting call succeed, and loses the device when the call's operation
	// executes. N counts the calls, not the operations.
	AtExecution bool
}

// An Injected is a fault that was given to Inject. The zero value is no fault.
type Injected struct {
	d    *Driver
	f    Fault
	seen uint64 // matching calls so far
	hits uint64
}

// faults holds the faults of a driver.
type faults struct {
	mu   sync.Mutex
	list []*Injected
}

// Inject adds a fault. A call that matches several faults fails with the fault that was added
// first. A fault whose N is not 0 is removed after the call that N selects.
func (d *Driver) Inject(f Fault) *Injected {
	i := &Injected{d: d, f: f}
	d.faults.mu.Lock()
	d.faults.list = append(d.faults.list, i)
	d.arm()
	d.faults.mu.Unlock()
	return i
}

// Remove removes the fault. Removing it again does nothing.
func (i *Injected) Remove() {
	if i.d == nil {
		return
	}
	fs := &i.d.faults
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if n := slices.Index(fs.list, i); n >= 0 {
		fs.list = slices.Delete(fs.list, n, n+1)
		i.d.arm()
	}
}

// Hits returns how many calls the fault has made fail. A call whose operation fails at execution
// counts from the call on.
func (i *Injected) Hits() uint64 {
	if i.d == nil {
		return 0
	}
	i.d.faults.mu.Lock()
	defer i.d.faults.mu.Unlock()
	return i.hits
}

// SetLatency gives each operation of a kind a duration. Submitted operations take the time in the
// stream, other operations in the call. A graph node takes the time of its operation. A Collect
// takes its time after the ranks have met. A communicator is ready when the time of the call that
// made it has passed since the last rank's call. 0 removes the latency. An unknown Op has no
// effect. With [Config.Deterministic] latencies have no effect.
func (d *Driver) SetLatency(op Op, t time.Duration) {
	c, ok := codeOf(op)
	if !ok {
		return
	}
	d.faults.mu.Lock()
	d.delays[c].Store(int64(max(t, 0)))
	d.arm()
	d.faults.mu.Unlock()
}

// arm decides whether calls must look for faults and latencies. The caller holds faults.mu.
func (d *Driver) arm() {
	n := len(d.faults.list)
	for c := range codes {
		if !c.begun() && d.delays[c].Load() > 0 {
			n++
		}
	}
	d.armed.Store(int32(n))
}

// meet applies faults and latencies to a call on v. If v is nil, the call is on the driver. later
// is the error with which the operation fails when it executes; err is the error of the call.
func (d *Driver) meet(v *device, c code) (later, err error) {
	if t := d.delays[c].Load(); t > 0 && !c.begun() && !d.manual {
		time.Sleep(time.Duration(t))
	}
	f, ok := d.strike(v, c)
	if !ok {
		return nil, nil
	}
	cause := f.Err
	if cause == nil {
		cause = ErrInjected
		if f.OOM {
			cause = driver.ErrOutOfMemory
		}
	}
	if f.AtExecution && c.submitted() {
		return fmt.Errorf("%v on device %d: %w", c, v.index, cause), nil
	}
	if f.Lost && v != nil {
		v.lose(cause)
	}
	return nil, &driver.Error{Driver: driverName, Op: c.String(), Err: cause, Lost: f.Lost, OOM: f.OOM}
}

// strike counts a call for each fault that the call matches, and returns the fault that makes the
// call fail.
func (d *Driver) strike(v *device, c code) (f Fault, ok bool) {
	fs := &d.faults
	fs.mu.Lock()
	defer fs.mu.Unlock()
	kept := fs.list[:0]
	for _, i := range fs.list {
		if !i.fits(v, c) {
			kept = append(kept, i)
			continue
		}
		i.seen++
		strikes := i.f.N == 0 || i.seen == i.f.N
		if strikes && !ok {
			i.hits++
			f, ok = i.f, true
		}
		if i.f.N == 0 || !strikes {
			kept = append(kept, i)
		}
	}
	clear(fs.list[len(kept):])
	fs.list = kept
	d.arm()
	return f, ok
}

// fits reports whether the fault is for calls of c on v.
func (i *Injected) fits(v *device, c code) bool {
	if i.f.Op != "" && i.f.Op != ops[c] {
		return false
	}
	return i.f.Device == AnyDevice || v != nil && v.index == i.f.Device
}

// LoseDevice loses a device, as by a fatal error. All later calls fail with err, pending operations
// are dropped, and their events never complete. Calls that free or destroy something fail too, but
// do their work. An operation in execution may still change memory. DestroyStream, of any stream of
// the device, waits for such an operation, but for a kernel or OnExecute only a quarter of a
// second. A lost device stays lost with its first error; a nil err is ErrInjected.
func (d *Driver) LoseDevice(device int, err error) error {
	v, bad := d.device(device)
	if bad != nil {
		return bad
	}
	if err == nil {
		err = ErrInjected
	}
	v.lose(err)
	return nil
}

// StallStream stalls a stream: no operation begins before ResumeStream. An operation that is
// executing completes.
func (d *Driver) StallStream(s driver.Stream) error { return d.stall(s, true) }

// ResumeStream undoes StallStream.
func (d *Driver) ResumeStream(s driver.Stream) error { return d.stall(s, false) }

func (d *Driver) stall(h driver.Stream, stalled bool) error {
	s := d.streams.get(uintptr(h))
	if s == nil {
		return fmt.Errorf("simdriver: stream %#x: %w: no such stream, or it was destroyed", uint64(h), ErrInvalidHandle)
	}
	s.stalled.Store(stalled)
	s.poke()
	return nil
}

// StallDevice stalls all streams of a device, including new ones, until ResumeDevice.
func (d *Driver) StallDevice(device int) error {
	v, err := d.device(device)
	if err == nil {
		v.stalled.Store(true)
	}
	return err
}

// ResumeDevice undoes StallDevice. Streams that StallStream has stalled stay stalled.
func (d *Driver) ResumeDevice(device int) error {
	v, err := d.device(device)
	if err == nil {
		v.stalled.Store(false)
		v.poke()
	}
	return err
}

// Streams returns a device's streams, oldest first.
func (d *Driver) Streams(device int) []driver.Stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	var hs []driver.Stream
	for _, s := range d.order {
		if s.dev.index == device {
			hs = append(hs, s.id)
		}
	}
	return hs
}

// Comms returns the ranks on a device, in no particular order. Ranks that are not ready are
// included.
func (d *Driver) Comms(device int) (all []driver.Comm) {
	d.comms.mu.Lock()
	defer d.comms.mu.Unlock()
	d.comms.ranks.all(func(_ uintptr, r *rank) {
		if r.dev.index == device {
			all = append(all, r.id)
		}
	})
	return all
}
