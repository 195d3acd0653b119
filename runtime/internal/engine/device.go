package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A Device is the engine's part of a device: the driver's device, the timelines, the events,
// timepoints and threads that issuing needs, and the state of loss and of closing. Memory,
// recordings, communicators, traces and options belong to its [Owner].
type Device struct {
	Native  driver.Device
	Driver  driver.Driver // streams can wait only for events of the same driver
	Info    driver.Info
	Caps    driver.Caps
	Adopter driver.Adopter // nil if the driver cannot use streams made by other code
	Owner   Owner

	// every lists the timelines of the program's queues, of lanes and of adopted streams. It is
	// replaced under mu.
	every      atomic.Pointer[[]*Timeline]
	Events     EventPool
	timepoints sema.TimepointPool
	Waits      wake.Policy
	poller     *wake.Poller
	downloads  downloadPoller
	reclaimer  reclaimer
	slots      chan struct{}  // limits the calls of Do that run at once to callsAtOnce
	making     sync.WaitGroup // running calls that have called enter; none begins in phase isEnded
	calls      wake.Count     // running host calls, and calls between Stay and Leave

	lost   atomic.Pointer[Failure] // why the device is lost, or nil
	phase  atomic.Int32            // isOpen to isEnded; only grows; becomes isEnded under mu
	ending ending
	lent   loan // work of other devices that uses memory or events of this one

	// Short counts closed buffers and shared events that work may still use. While it is not 0, all
	// work that may use them is polled, so that they are freed soon.
	Short atomic.Int32

	// mu protects pending and lanes. It is also held to replace every and to set phase to isEnded.
	// It is a leaf.
	mu      sync.Mutex
	pending pendingQueue
	lanes   []Lane
}

// An Owner is the device object of the layers above the engine. The engine calls it.
type Owner interface {
	// Start makes the queues. It runs once, on the device's thread, before any other goroutine can
	// use the device. No lock is held.
	Start() error

	// FreeUnused frees memory that nothing uses any more. It returns when the memory is free or the
	// context ends. A goroutine that issues an allocation calls it when the device has no memory
	// left. FreeUnused may block, so the device's thread never calls it. No timeline is locked.
	FreeUnused(ctx context.Context)

	// IsLost is called once, with the reason, when the device is lost. The caller may be any
	// goroutine and may hold the mu of a timeline, so IsLost must not block.
	IsLost(err error)

	// Failure returns the error that a submission's signals fail with if err is the reason. If err
	// comes from other work, Failure returns it unchanged. The caller may hold a retireMu.
	Failure(s *Submission, err error) error

	// OfWork reports whether err was made by Failure. If so, the semaphore that has this error was
	// failed by work and not by the program.
	OfWork(err error) bool

	// StreamFailed is called before the semaphore of a Stream fails. s is the submission that fails
	// it.
	StreamFailed(s *Submission, stream *sema.Semaphore, err error)

	// Destroy destroys all native objects, streams first, and returns the errors. It runs once, as
	// the last step of the device's thread. No lock is held, and no other call uses the device.
	Destroy() []error
}

// Init sets up a new device. It makes no native objects.
func (d *Device) Init(drv driver.Device, of driver.Driver, by Owner) {
	d.Native, d.Driver, d.Info, d.Caps, d.Owner = drv, of, drv.Info(), drv.Caps(), by
	d.slots, d.ending.over = make(chan struct{}, callsAtOnce), make(chan struct{})
	d.Waits.Parked = d.Wanted
	d.poller = wake.NewPoller()
	d.pending.init()
	d.Events.dev = d
	d.downloads.init(d)
}

// Open starts the device's thread, and waits until the thread has made the queues and the first
// events.
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
func (d *Device) BeginPolling() { go d.poller.Run(&d.Waits, d.pollWanted) }

// All returns the timelines that are listed with the device.
func (d *Device) All() []*Timeline {
	if p := d.every.Load(); p != nil {
		return *p
	}
	return nil // the device is being opened
}
