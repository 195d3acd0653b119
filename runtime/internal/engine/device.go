package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A Device is the engine's part of a device: the driver's device, the timelines, the pools of
// events and timepoints, the threads, and the state of loss and of closing. Memory, recordings,
// communicators, traces and options belong to its [Owner].
type Device struct {
	Native  driver.Device
	Driver  driver.Driver // a stream can wait only for events of its own driver
	Info    driver.Info
	Caps    driver.Caps
	Adopter driver.Adopter // nil if the driver cannot use streams made by other code
	Owner   Owner

	// timelines lists the timelines of the program's queues, of lanes and of adopted streams. The
	// slice is never changed: a new one is stored, under mu.
	timelines  atomic.Pointer[[]*Timeline]
	Events     EventPool
	timepoints sema.TimepointPool
	Waits      wake.Policy
	poller     *wake.Poller
	polled     wake.Polled
	downloads  downloadPoller
	reclaimer  reclaimer
	slots      chan struct{}  // has one element for each running call of Do; the capacity is callsAtOnce
	making     sync.WaitGroup // counts calls between enter and making.Done; Destroy runs after them
	calls      wake.Count     // counts running host calls, and calls of Stay not undone by Leave

	lost   atomic.Pointer[Failure] // nil unless the device is lost
	phase  atomic.Int32            // isOpen to isEnded; only grows; set to isEnded under mu
	ending ending
	lent   loan // other devices' work that uses memory or events of this device

	// Short counts closed buffers and closed shared events that other code owns and that work may
	// still use. While Short is above 0, all work that may use them is polled, so that the other
	// code is notified soon. LetGo adds one to Short too, for ever.
	Short atomic.Int32
	// letsGo says that LetGo was called. It is set before Open.
	letsGo bool

	// mu protects pending and lanes. It is also held while timelines is replaced, and while phase
	// is set to isEnded. While it is held, no other lock is taken, except that Timeline.spent tries
	// to lock Timeline.queryMu.
	mu      sync.Mutex
	pending pendingQueue
	lanes   []Lane
}

// An Owner is the device object of the layers above the engine. The engine calls its methods.
type Owner interface {
	// Start creates the queues. It runs once, on the pending-queue thread, before any other
	// goroutine can use the device. No lock is held.
	Start() error

	// FreeUnused first waits for parked Frees, and for trims of growing memory, that are about to
	// go on. Then it frees memory that nothing uses any more, and waits until this is done. It
	// skips this second step if the device is closed, or if a stream may be waiting for other code.
	// It returns early if the context ends. Collect calls FreeUnused when the device has no memory
	// left for an allocation. The caller has locked no timeline. FreeUnused may block, so the
	// pending-queue thread never calls it.
	FreeUnused(ctx context.Context)

	// IsLost is called once, with the reason, when the device is lost. The caller may be any
	// goroutine and may hold the mu of a timeline, so IsLost must not block.
	IsLost(err error)

	// Failure returns the error with which the signals of s fail because of err. It adds the name
	// of the operation to err. If err is the failure of other work, Failure returns it unchanged.
	// The caller may hold a Timeline.retireMu.
	Failure(s *Submission, err error) error

	// OfWork reports whether err was made by Failure. If work has failed a semaphore, the
	// semaphore's error was made by Failure. If the program has failed it, the error was not.
	OfWork(err error) bool

	// StreamFailed is called when a Stream has failed with err because its submission s has failed.
	// It is called at most once for a Stream, before the submissions that wait for the Stream are
	// notified of the failure.
	StreamFailed(s *Submission, err error)

	// Destroy destroys the native objects, or leaves them to the driver, and returns the errors. It
	// runs once, on the pending-queue thread, as the last step of that thread. No lock is held. No
	// other call uses the device, unless Close gave up waiting for calls (Device.Overdue).
	Destroy() []error
}

// Init sets the fields of a new device. It creates no native objects.
func (d *Device) Init(drv driver.Device, of driver.Driver, by Owner) {
	d.Native, d.Driver, d.Info, d.Caps, d.Owner = drv, of, drv.Info(), drv.Caps(), by
	d.slots, d.ending.over = make(chan struct{}, callsAtOnce), make(chan struct{})
	d.Waits.Parked = d.Wanted
	d.pending.init()
	d.Events.dev = d
	d.downloads.init(d)
}

// LetGo lets the garbage collector find a device that the program has dropped: while the device is
// idle, its threads do not refer to it. While work is in flight, the device must not be collected.
// So LetGo makes the poller poll all work, including work that nobody waits for, and the poller
// refers to the device until the work is done. Call LetGo before Open.
func (d *Device) LetGo() {
	d.letsGo = true
	d.Short.Add(1)
}

// Open starts the pending-queue thread, and waits until that thread has created the queues and the
// first events.
func (d *Device) Open() error {
	d.poller, d.polled = wake.NewPoller(d.letsGo), wake.Polled{Policy: &d.Waits, Ask: d.pollWanted}
	started := make(chan error, 1)
	go d.run(started)
	err := <-started
	if err != nil {
		<-d.ending.over
	}
	return err
}

// BeginPolling starts the poller.
func (d *Device) BeginPolling() { go d.poller.Run() }

func (d *Device) signalPoller() { d.poller.Signal(&d.polled) }

// All returns the timelines of the device. The caller must not change the slice.
func (d *Device) All() []*Timeline {
	if p := d.timelines.Load(); p != nil {
		return *p
	}
	return nil // Open has not created the queues yet
}
