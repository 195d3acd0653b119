package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A Device is what the scheduler has of a device: the driver's device, the timelines that it
// gives work, what it takes for that (events, timepoints, threads), and how far the device has been
// lost or closed. It knows no memory, recordings, communicators, traces or options: those are of the
// [Device] around it, its owner.
type Device struct {
	Native  driver.Device
	Driver  driver.Driver // events cross devices of one driver only
	Info    driver.Info
	Caps    driver.Caps
	Adopter driver.Adopter // nil if the driver takes no streams of others
	Owner   Owner

	every      atomic.Pointer[[]*Timeline] // of the program's queues, of lanes, and of adopted streams; replaced under mu
	Events     EventPool
	timepoints sema.TimepointPool
	Waits      wake.Policy
	poller     *wake.Poller
	landings   landings
	reclaimer  reclaimer
	slots      chan struct{}  // of calls that make something, see callsAtOnce
	making     sync.WaitGroup // such calls; none begins when the device isEnded
	calls      wake.Count     // host calls that are running, and calls that use what the device has

	lost   atomic.Pointer[Failure] // why it is lost; nil if it is not
	phase  atomic.Int32            // isOpen and so on; only grows
	ending ending
	lent   loan         // what other devices' work uses of this one
	Short  atomic.Int32 // closed buffers and events that were lent: while there are any, all work that may use them is asked about

	mu      sync.Mutex // a leaf; protects pending, lanes, and of the owner's what says so
	pending PendingQueue
	lanes   []Lane
}

// An Owner is what the scheduler calls of the layers above it: the [Device] that the native device is of.
type Owner interface {
	// Start makes the queues. It runs once, on the device's thread, before anybody else has the
	// device. No lock is held.
	Start() error

	// FreeUnused gives back memory that is not used any more, and waits for that until the context
	// ends. A submitter or a goroutine that issues calls it, because an allocation has found no
	// memory: not the device's thread. No timeline is locked.
	FreeUnused(ctx context.Context)

	// IsLost tells that the device has just been found lost, and why. It runs once, on any
	// goroutine, which may hold the mu of a timeline: it must not block.
	IsLost(err error)

	// Failure makes the error that a submission's signals fail with from the reason. It returns an error
	// of other work as it is. The caller may hold a retireMu.
	Failure(s *Submission, err error) error

	// OfWork reports whether an error is one that failure made: a semaphore that fails with it was failed
	// by work, and not by the program.
	OfWork(err error) bool

	// StreamFailed tells that the semaphore of a Stream is about to fail with the submission.
	StreamFailed(s *Submission, stream *sema.Semaphore, err error)

	// Destroy gives everything native back, streams first, and returns what it could not. It runs
	// once, on the device's thread, in the end. No lock is held, and no other call uses the device.
	Destroy() []error
}

// Init sets up a native device that nothing has been made of yet.
func (d *Device) Init(drv driver.Device, of driver.Driver, by Owner) {
	d.Native, d.Driver, d.Info, d.Caps, d.Owner = drv, of, drv.Info(), drv.Caps(), by
	d.slots, d.ending.over = make(chan struct{}, callsAtOnce), make(chan struct{})
	d.Waits.Parked = d.Wanted
	d.poller = wake.NewPoller()
	d.pending.init()
	d.Events.dev = d
	d.landings.init(d)
}

// Open starts the device's thread, which makes what is needed first, and waits for that.
func (d *Device) Open() error {
	started := make(chan error, 1)
	go d.run(started)
	err := <-started
	if err != nil {
		<-d.ending.over
	}
	return err
}

// BeginPolling starts the poller.
func (d *Device) BeginPolling() { go d.poller.Run(&d.Waits, d.askWanted) }

// All returns all timelines.
func (d *Device) All() []*Timeline {
	if p := d.every.Load(); p != nil {
		return *p
	}
	return nil // of a device that is being opened
}
