package gpu

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/events"
	"github.com/puregpu/puregpu/runtime/internal/faces"
	"github.com/puregpu/puregpu/runtime/internal/inside"
	"github.com/puregpu/puregpu/runtime/internal/leaks"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A Device is an open device. All methods may be called concurrently.
type Device struct {
	native     engine.Device
	faces      faces.Faces
	opt        Options
	queues     []*Queue // the device's own queues; Options.Queues of them
	memory     memory.Device
	recordings recording.Device
	comm       comm.Device
	events     events.Device
	inside     inside.Device
	warned     sync.Once       // for compiler.Once
	dropped    runtime.Cleanup // reports the device if the program drops it without Close; see watch

	deviceClosing // declared in close.go

	mu      sync.Mutex           // protects the following fields; no other lock is taken while it is held
	code    map[*Module]struct{} // the loaded modules
	timings map[*Timing]struct{}
}

// Open opens a device of a driver, and waits until the driver has opened it. index is the device's
// index in the result of d.Devices. The program closes the device ([Device.Close]).
func Open(d driver.Driver, index int, opt Options) (*Device, error) {
	dev, err := open(d, index, opt, new(wake.Processors))
	if err == nil {
		dev.watch()
	}
	return dev, err
}

// isNone reports whether x is nil, or a nil pointer. A driver may be a nil pointer if the driver
// could not be opened.
func isNone(x any) bool {
	v := reflect.ValueOf(x)
	return x == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// open is like Open. Devices that are opened with the same wake.Processors share a limit on the
// number of processors that waiting goroutines keep busy.
func open(d driver.Driver, index int, opt Options, of *wake.Processors) (*Device, error) {
	if isNone(d) {
		return nil, errs.Argument("open", "no driver")
	}
	if by, ok := d.(interface{ Tracer() Tracer }); ok && isNone(opt.Tracer) {
		opt.Tracer = by.Tracer()
	}
	if isNone(opt.Tracer) {
		opt.Tracer = nil
	}
	opt, err := opt.check()
	if err != nil {
		return nil, err
	}
	drv, err := d.Open(index)
	if err != nil {
		return nil, fmt.Errorf("gpu: open device %d of %s: %w", index, d.Name(), err)
	}
	caps := drv.Caps()
	dev := &Device{opt: opt, faces: faces.Of(drv, &caps),
		code: map[*Module]struct{}{}, timings: map[*Timing]struct{}{}}
	dev.native.Init(drv, d, (*deviceOwner)(dev))
	dev.native.Adopter = dev.faces.Adopter
	if opt.Leaks != nil {
		dev.native.LetGo()
		dev.memory.Leaks = &leaks.Reporter{Log: opt.Leaks, Device: dev.native.Info.Name}
	}
	dev.memory.Init(&dev.native, &dev.faces, opt.StageSize)
	dev.recordings.Init(&dev.native, &dev.memory, &dev.faces, (*recordingHost)(dev))
	dev.comm = comm.Device{Engine: &dev.native, Memory: &dev.memory, Owner: (*commOwner)(dev)}
	dev.events.Engine, dev.events.Faces = &dev.native, &dev.faces
	dev.inside = newInside(dev)
	dev.native.Waits.Spin, dev.native.Waits.Poll, dev.native.Waits.Processors = opt.Spin, opt.Poll, of
	dev.native.Events.Configure(opt.Events)
	if err := dev.native.Open(); err != nil {
		if dev.memory.Observer != nil {
			dev.memory.Observer.Closed()
		}
		return nil, fmt.Errorf("gpu: open device %d of %s: %w", index, d.Name(), err)
	}
	dev.native.BeginPolling()
	return dev, nil
}

// watch arranges that a device that the program drops without Close is reported. If the device does
// not report leaks, watch does nothing. The report names the place in the program from which watch
// was called. So watch must be called on the goroutine of the program that opens the device.
func (d *Device) watch() {
	if r := d.memory.Leaks; r != nil {
		d.dropped = runtime.AddCleanup(d, func(made *leaks.Site) { r.Dropped("Device", made) }, leaks.Here())
	}
}

// A deviceOwner is a Device that implements engine.Owner.
type deviceOwner Device

// Start makes the device's queues and its observer.
func (o *deviceOwner) Start() error {
	d := (*Device)(o)
	for i := range d.opt.Queues {
		h, priority, err := d.newStream(i)
		if err != nil {
			return err
		}
		q := newQueue(d, i)
		q.tl.Stream, q.priority = h, priority
		d.queues = append(d.queues, q)
		d.native.AddTimeline(q.tl)
	}
	return d.observe()
}

// IsLost tells the tracer that the device is lost.
func (o *deviceOwner) IsLost(err error) {
	observe.Tell(o.memory.Observer, observe.Lost, time.Now(), "", 0, err)
}

// failed returns why the device accepts no more work, or nil.
func (d *Device) failed() error { return d.native.Failed() }

// isZero reports whether the device is nil, or a zero value that was not opened.
func (d *Device) isZero() bool { return d == nil || d.native.Native == nil }

// ready returns why the device does not take the operation op, or nil.
func (d *Device) ready(op string) error {
	if d.isZero() {
		return errs.Zero(op, "Device")
	}
	return d.native.Failed()
}

// mem returns the device's memory, or nil for a nil or zero Device.
func (d *Device) mem() *memory.Device {
	if d.isZero() {
		return nil
	}
	return &d.memory
}

// deviceOf returns the Device of an engine.Device.
func deviceOf(e *engine.Device) *Device { return (*Device)(e.Owner.(*deviceOwner)) }

// queueOf returns the queue of a timeline.
func queueOf(tl *engine.Timeline) *Queue { return tl.Queue.(*Queue) }

// FreeUnused frees closed buffers that are no longer used, and unused memory of pools.
func (o *deviceOwner) FreeUnused(ctx context.Context) { (*Device)(o).memory.FreeUnused(ctx) }

// Info returns the description of the device that was read when the device was opened.
func (d *Device) Info() driver.Info {
	if d == nil {
		return driver.Info{}
	}
	return d.native.Info
}

// Queue returns queue i modulo the number of queues, which [Options].Queues sets. A nil or zero
// Device has no queues: then Queue returns a zero Queue, which takes no work.
func (d *Device) Queue(i int) *Queue {
	n := len(d.all())
	if n == 0 {
		return new(Queue)
	}
	return d.queues[(i%n+n)%n]
}

// all returns the device's own queues. A nil or zero Device has none.
func (d *Device) all() []*Queue {
	if d == nil {
		return nil
	}
	return d.queues
}

// Pick returns the queue with the least work in flight among the queues that affinity allows. Bit i
// of affinity allows queue i; 0 allows all queues. Bits without a queue have no meaning. If
// affinity has only such bits, the error is [ErrArgument].
func (d *Device) Pick(affinity uint64) (*Queue, error) {
	if d.isZero() {
		return nil, errs.Zero("pick", "Device")
	}
	var best *Queue
	least := uint64(math.MaxUint64)
	for i, q := range d.queues {
		if !allows(affinity, i) {
			continue
		}
		if n := q.load(); n < least {
			best, least = q, n
		}
	}
	if best == nil {
		return nil, errs.Argument("pick", "affinity %#x names none of the %d queues", affinity, len(d.queues))
	}
	return best, nil
}

// PickAfter is like [Device.Pick], for work that waits for points. It prefers the queues with
// unfinished work that will reach one of the points, because behind that work no wait between
// streams is needed. Among these queues it picks the queue with the least work in flight. If
// affinity allows no such queue, PickAfter picks as Pick does. A point is ignored if it has been
// reached or has failed, or if no queue of this device has issued work for it. PickAfter does not
// block or allocate. If a point has no semaphore, or a value above [MaxValue], the error is
// [ErrArgument].
func (d *Device) PickAfter(affinity uint64, waits ...Point) (*Queue, error) {
	if d.isZero() {
		return nil, errs.Zero("pick", "Device")
	}
	var best *Queue
	for i, w := range waits {
		if w.Semaphore == nil || w.Value > MaxValue {
			return nil, errs.Argument("pick", "point %d has no semaphore, or a value above %d", i, uint64(MaxValue))
		}
		how, p := w.inner().Semaphore.Next(w.Value, nil)
		if how != sema.Ordered {
			continue
		}
		at := slices.IndexFunc(d.queues, func(q *Queue) bool { return q.tl == p.Producer })
		if at >= 0 && allows(affinity, at) && (best == nil || d.queues[at].load() < best.load()) {
			best = d.queues[at]
		}
	}
	if best != nil {
		return best, nil
	}
	return d.Pick(affinity)
}

// allows reports whether an affinity allows a queue.
func allows(affinity uint64, queue int) bool { return affinity == 0 || affinity>>queue&1 != 0 }

// load returns how many submissions the queue has in flight.
func (q *Queue) load() uint64 {
	return q.tl.Load()
}

// Queues returns the number of queues.
func (d *Device) Queues() int { return len(d.all()) }

// Stats counts the things that a device holds.
type Stats struct {
	Events     ObjectStats
	Timepoints ObjectStats
	Records    ObjectStats // records of submissions
	// Parked counts submissions that are not issued yet, for example because they wait for a point
	// whose work has not been issued. Host calls that wait until a point is reached count too, and
	// so do Frees that wait for uses of their memory.
	Parked    int
	InFlight  int    // submissions issued and neither done nor failed, as far as the host knows
	Buffers   int    // buffers whose memory has not been freed, including closed buffers that work still uses
	PeakBytes uint64 // the largest sum of Device.Live and Host.Live so far
	Device    ByteStats
	Host      ByteStats
	Staging   StagingStats
	Lost      bool // the device is lost ([ErrLost]) and accepts no more work
}

// StagingStats count the bytes of the pinned memory that holds data on its way between the device
// and ordinary memory of the program. Buffers do not count.
type StagingStats struct {
	Held uint64 // pinned; Device.Trim frees the unused part, and Close frees all
	Used uint64 // in use by transfers in flight and by recordings with uploads, in whole blocks
	Peak uint64 // the largest Used so far
}

// ByteStats count the bytes that buffers have allocated, either on the host or on the device.
// Managed memory counts as the device's. Imported memory does not count. Memory that a pool over a
// buffer hands out does not count either.
type ByteStats struct {
	Live      uint64
	Peak      uint64 // the largest Live so far
	Allocated uint64 // in total since the device was opened; Allocated - Live bytes have been freed
}

// Stats returns the device's current counts. For a nil or zero Device, all are 0.
func (d *Device) Stats() Stats {
	if d.isZero() {
		return Stats{}
	}
	n := d.native.Statistics()
	s := Stats{Events: ObjectStats(n.Events), Timepoints: ObjectStats(n.Timepoints), Records: ObjectStats(n.Records),
		Parked: n.Parked, InFlight: n.InFlight, Lost: d.native.Loss() != nil}
	m := d.memory.Statistics()
	s.Buffers, s.PeakBytes = m.Buffers, m.PeakBytes
	s.Device, s.Host = ByteStats(m.Device), ByteStats(m.Host)
	s.Staging = StagingStats(d.memory.Stage.Statistics())
	return s
}
