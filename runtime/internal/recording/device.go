package recording

import (
	"errors"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/faces"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// A Device is the part of a device for recordings.
type Device struct {
	Engine *engine.Device
	Memory *memory.Device
	Faces  *faces.Faces
	Host   Host

	mu  sync.Mutex              // protects the field all; no other lock is taken while it is held
	all map[*Recording]struct{} // nil after Close

	captureMu sync.Mutex    // protects captures
	captures  driver.Stream // the stream for capture, made lazily
	condMu    sync.Mutex    // protects condReady; Engine.Do is called under it
	condReady bool          // the driver has prepared the device for conditional nodes
	standInMu sync.Mutex    // protects standsIn
	standsIn  driver.Mem    // graphs use it in place of addresses that are not known yet: see standInSize
}

// A Host does for recordings what only the layer above can do.
type Host interface {
	// EnterNative calls a function of the program with the device current on the thread.
	EnterNative(fn func() error) error
	// Elapsed returns the time between two events. It runs on a bound thread.
	Elapsed(from, to driver.Event) (time.Duration, error)
}

// Init sets up the recordings of a device.
func (d *Device) Init(e *engine.Device, m *memory.Device, f *faces.Faces, h Host) {
	d.Engine, d.Memory, d.Faces, d.Host, d.all = e, m, f, h, map[*Recording]struct{}{}
}

// Streams returns the stream for capture, or nil if it has not been made. The stream is destroyed
// with the device.
func (d *Device) Streams() []driver.Stream {
	if d.captures == 0 {
		return nil
	}
	return []driver.Stream{d.captures}
}

// Close destroys all recordings, and frees the memory Device.standsIn. It runs on the pending-queue
// thread, when no stream is left.
func (d *Device) Close() (all []error) {
	d.mu.Lock()
	left := d.all
	d.all = nil
	d.mu.Unlock()
	for c := range left {
		c.closed.Store(true)
		all = append(all, c.destroy())
	}
	if d.standsIn.Size > 0 {
		all = append(all, d.Engine.Native.Free(d.standsIn))
	}
	return all
}

// add lists a recording. It returns an error after Close.
func (d *Device) add(c *Recording) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		return d.Engine.ClosedError()
	}
	d.all[c] = struct{}{}
	return nil
}

// remove takes a recording off the list, and reports whether it was there.
func (d *Device) remove(c *Recording) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.all[c]
	delete(d.all, c)
	return ok
}

// graph calls make, a function that makes a graph, on a bound thread.
func (d *Device) graph(make func() error) error {
	began := time.Now()
	err := d.Engine.OnBound(make)
	observe.Tell(d.Memory.Observer, observe.Graph, began, "", 0, err)
	return err
}

// timesCommands reports whether the tracer times commands that run as calls.
func (d *Device) timesCommands() bool {
	o := d.Memory.Observer
	return o != nil && o.TimesCommands()
}

// timesCalls reports whether the tracer times commands only if they run as calls. Then recordings
// of AutoMode make no graphs.
func (d *Device) timesCalls() bool { return d.timesCommands() && !d.Memory.Observer.TimesNodes() }

// describes reports whether the tracer wants descriptions of recordings.
func (d *Device) describes() bool {
	o := d.Memory.Observer
	return o != nil && o.Describes()
}

// standIn returns the address of standInSize bytes of device memory, which graphs use in place of
// addresses that are not known yet. The first call allocates the memory, which stays allocated
// until the device is closed. standIn runs on a bound thread.
func (d *Device) standIn() (driver.Ptr, error) {
	d.standInMu.Lock()
	defer d.standInMu.Unlock()
	if d.standsIn.Size == 0 {
		m, err := d.Engine.Native.Alloc(driver.DeviceMem, standInSize)
		if err != nil {
			d.Engine.Check(err)
			return 0, err
		}
		d.standsIn = m
	}
	return d.standsIn.Ptr, nil
}

// capture calls a function with a stream, captures the work that the function gives to the stream,
// and returns that work as a graph. capture runs with the device current on the thread.
func (d *Device) capture(call func(driver.Stream) error) (g driver.Graph, err error) {
	d.captureMu.Lock()
	defer d.captureMu.Unlock()
	if d.captures == 0 {
		if d.captures, err = d.Engine.Native.NewStream(); err != nil {
			return 0, err
		}
	}
	if err := d.Faces.Capturer.BeginCapture(d.captures); err != nil {
		return 0, err
	}
	err = call(d.captures)
	g, end := d.Faces.Capturer.EndCapture(d.captures)
	if err != nil && end == nil {
		end = d.Faces.Graphs.DestroyGraph(g)
	}
	return g, errors.Join(err, end)
}
