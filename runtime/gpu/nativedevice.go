package gpu

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A nativeDevice is what the scheduler has of a device: the driver's device, the timelines that it
// gives work, what it takes for that (events, timepoints, threads), and how far the device has been
// lost or closed. It knows no memory, recordings, communicators, traces or options: those are of the
// [Device] around it, its owner.
type nativeDevice struct {
	drv    driver.Device
	of     driver.Driver // events cross devices of one driver only
	info   driver.Info
	caps   driver.Caps
	adopts driver.Adopter // nil if the driver takes no streams of others
	owner  owner

	every      atomic.Pointer[[]*timeline] // of the program's queues, of lanes, and of adopted streams; replaced under mu
	events     eventPool
	timepoints sema.TimepointPool
	waits      wake.Policy
	poller     *wake.Poller
	landings   landings
	reclaimer  reclaimer
	slots      chan struct{}  // of calls that make something, see callsAtOnce
	making     sync.WaitGroup // such calls; none begins when the device isEnded
	calls      wake.Count     // host calls that are running, and calls that use what the device has

	lost   atomic.Pointer[failure] // why it is lost; nil if it is not
	phase  atomic.Int32            // isOpen and so on; only grows
	ending ending
	lent   loan         // what other devices' work uses of this one
	short  atomic.Int32 // closed buffers and events that were lent: while there are any, all work that may use them is asked about

	mu      sync.Mutex // a leaf; protects pending, lanes, and of the owner's what says so
	pending pendingQueue
	lanes   []lane
}

// An owner is what the scheduler calls of the layers above it: the [Device] that the native device is of.
type owner interface {
	// start makes the queues. It runs once, on the device's thread, before anybody else has the
	// device. No lock is held.
	start() error

	// freeUnused gives back memory that is not used any more, and waits for that until the context
	// ends. A submitter or a goroutine that issues calls it, because an allocation has found no
	// memory: not the device's thread. No timeline is locked.
	freeUnused(ctx context.Context)

	// isLost tells that the device has just been found lost, and why. It runs once, on any
	// goroutine, which may hold the mu of a timeline: it must not block.
	isLost(err error)

	// failure makes the error that a submission's signals fail with from the reason. It returns an error
	// of other work as it is. The caller may hold a retireMu.
	failure(s *submission, err error) error

	// ofWork reports whether an error is one that failure made: a semaphore that fails with it was failed
	// by work, and not by the program.
	ofWork(err error) bool

	// streamFailed tells that the semaphore of a Stream is about to fail with the submission.
	streamFailed(s *submission, stream *sema.Semaphore, err error)

	// destroy gives everything native back, streams first, and returns what it could not. It runs
	// once, on the device's thread, in the end. No lock is held, and no other call uses the device.
	destroy() []error
}

// init sets up a native device that nothing has been made of yet.
func (d *nativeDevice) init(drv driver.Device, of driver.Driver, by owner) {
	d.drv, d.of, d.info, d.caps, d.owner = drv, of, drv.Info(), drv.Caps(), by
	d.slots, d.ending.over = make(chan struct{}, callsAtOnce), make(chan struct{})
	d.waits.Parked = d.wanted
	d.poller = wake.NewPoller()
	d.pending.init()
	d.events.dev = d
	d.landings.init(d)
}

// open starts the device's thread, which makes what is needed first, and waits for that.
func (d *nativeDevice) open() error {
	started := make(chan error, 1)
	go d.run(started)
	err := <-started
	if err != nil {
		<-d.ending.over
	}
	return err
}

// beginPolling starts the poller.
func (d *nativeDevice) beginPolling() { go d.poller.Run(&d.waits, d.askWanted) }

// all returns all timelines.
func (d *nativeDevice) all() []*timeline {
	if p := d.every.Load(); p != nil {
		return *p
	}
	return nil // of a device that is being opened
}
