// Package observe has the interfaces through which package gpu and the packages below it inform a
// tracer. Packages trace and nvtxtrace implement them. A gpu.Device without a tracer has a nil
// [Device], so each hook costs one comparison with nil. The scheduler calls a [Submission] as an
// [engine.Observer], and knows nothing else about tracers.
//
// No method changes the order of work or its results. A method does not block, and may be called
// concurrently, unless the method's comment says otherwise. The caller may hold locks, except locks
// under which no other lock may be taken.
package observe

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Device observes a device.
type Device interface {
	// TimesCommands reports whether the commands of recordings are timed one by one, if the
	// recordings are replayed as calls. It always returns the same value.
	TimesCommands() bool

	// TimesNodes reports whether the commands of graphs are timed too. If it returns false and
	// TimesCommands returns true, recordings of AutoMode make no graphs. It always returns the same
	// value.
	TimesNodes() bool

	// Describes reports whether the observer needs the Recording of a Description. It always
	// returns the same value, and true if TimesNodes returns true.
	Describes() bool

	// NewRecordingID returns a number for a recording. It is called only if Describes returns true.
	NewRecordingID() uint64

	// Node tells the observer which command of a recording a graph node belongs to. Node is called
	// before the graph is instantiated, on a thread bound to the device, and only if TimesNodes
	// returns true.
	Node(n driver.Node, r *Recording, command int)

	// Submitted returns the observer of a submission that is complete and is about to be submitted,
	// or nil if nothing observes the submission. The goroutine that submits calls Submitted, and
	// holds no lock except the mutex of a Stream.
	Submitted(s *engine.Submission, d Description) Submission

	// Happened is called when an event that is no submission ends. The parameter began is the time
	// when the event began.
	Happened(what Event, began time.Time, label string, bytes uint64, err error)

	// Stopped is called on the device's thread when the device has no more work, or is lost, and
	// before the device's objects are destroyed. In this call the observer may make its last native
	// calls, and destroys the objects that it has made. Submissions may still end afterwards.
	Stopped(ctx context.Context)

	// Closed is called at the end of gpu.Device.Close, or of a gpu.Open that fails, without locks.
	// It may block, and may call functions of the program.
	Closed()
}

// Tell informs an observer of an event that began at the given time and ends now. If d is nil, Tell
// does nothing.
func Tell(d Device, what Event, began time.Time, label string, bytes uint64, err error) {
	if d != nil {
		d.Happened(what, began, label, bytes, err)
	}
}

// A Description describes a submission.
type Description struct {
	Queue    any // the *gpu.Queue
	Label    string
	Kernel   string
	Bytes    uint64
	Grid     [3]uint32
	Block    [3]uint32
	Part     int  // the part of the recording, from 0
	First    int  // the number of the part's first command
	Commands int  // how many commands the part has
	Graph    bool // the part is executed as a graph

	Recording *Recording // the executed recording; nil unless the observer's Describes returns true
}

// A Recording describes a recording that has ended. It does not change.
type Recording struct {
	ID       uint64 // the number that the observer gave the recording
	Commands []Command
}

// A Profiler gives the devices of a driver their [driver.NodeTimer]. Package cuptitrace has one.
type Profiler struct {
	Driver string // the name of the driver

	// Start starts the profiler, if it has not been started. It should be called before the devices
	// are opened. It returns the profiler's name, for messages.
	Start func() (name string, err error)

	// Timer returns the timer of a device that is being opened, after Start has succeeded.
	Timer func(driver.Device) driver.NodeTimer
}

// Profilers has the process's Profiler, or nil.
var Profilers atomic.Pointer[Profiler]

// An Event is something that happens to a device and is not a submission.
type Event uint8

// The events.
const (
	Alloc   Event = iota // memory was allocated
	Grow                 // a pool grew, or growing memory if the label says so
	Shrink               // a pool or growing memory shrank
	Load                 // code was loaded
	Compile              // the program named by the label was compiled
	Graph                // the graph of a recording was made
	Lost                 // the device is lost; or, if the error is a collective.Error, a communicator failed
)

// A Submission observes a submission.
type Submission interface {
	engine.Observer

	// Calls returns the function to call instead of fn. fn calls the program's function of a host
	// call or a notification. Calls is called without locks. The function that Calls returns for a
	// notification is called after Ends.
	Calls(fn func() error) func() error

	// Collective says which group of collectives the submission is. kernel names the group's first
	// operation. Collective is called when a communicator is asked to take the group.
	Collective(kernel, communicator string, rank, ranks int)

	// CommandBegins and CommandBegun are called before and after the native calls of a command, if
	// a recording is replayed as calls. They are called between Begins and Begun. CommandBegins is
	// not called for a command without a label, unless the device's TimesCommands returns true.
	// CommandBegun is called in any case.
	CommandBegins(tl *engine.Timeline, c Command)
	CommandBegun(tl *engine.Timeline, index int, kind work.Kind, some bool)
}

// A Command is a command of a recording.
type Command struct {
	Index  int
	Kind   work.Kind
	Label  string // "" if the program has given none
	Kernel string
	Bytes  uint64
	Grid   [3]uint32
	Block  [3]uint32
}

// Of returns the observer of a submission, or nil. It is the last one in s.Observers, behind the
// observer of a Timing.
func Of(s *engine.Submission) Submission {
	if n := len(s.Observers); n > 0 {
		x, _ := s.Observers[n-1].(Submission)
		return x
	}
	return nil
}

// A Semaphore observes a semaphore, for all tracers whose devices use it. It is kept in the
// semaphore's field Notes. All methods are called without locks.
type Semaphore interface {
	// Signalled says that the host has signalled the semaphore. If err is not nil, the host is
	// about to fail the semaphore instead.
	Signalled(s *sema.Semaphore, value uint64, err error)

	// Renamed says that the semaphore has another name.
	Renamed()

	// Waits is called when a wait of the host begins. It returns nil if the tracer is no longer in
	// use.
	Waits(ctx context.Context, all bool) Wait

	// Calls returns the function to call instead of fn, which the program has given to OnReached.
	Calls(p sema.Point, fn func(error)) func(error)
}

// OfSemaphore returns the observer of a semaphore, or nil.
func OfSemaphore(s *sema.Semaphore) Semaphore {
	if notes := s.Notes.Load(); notes != nil {
		return (*notes).(Semaphore)
	}
	return nil
}

// A Wait observes a wait of the host. When the wait is over, package gpu calls For for each point,
// and then Ended. The points are passed one by one, because a slice would move to the heap.
type Wait interface {
	For(p sema.Point)
	Ended(err error)
}
