package trace

import (
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// A Kind is the kind of event that a [Record] describes.
type Kind uint8

// The kinds of records.
const (
	KindSubmission Kind = iota // an operation, recorded when it is over
	KindCommand                // a recording's command that no graph runs; its record follows the submission's, with the same ID
	KindWait                   // a wait by the host, for the points in Waits
	KindSignal                 // the host signalled a semaphore, or failed it with Err
	KindCall                   // a call of a function of the program; a host call is a KindSubmission
	KindAlloc                  // memory was allocated: Bytes
	KindGrow                   // a pool grew by Bytes; or growing memory did, if Label is not empty
	KindShrink                 // a pool or growing memory shrank by Bytes; Label is as for KindGrow
	KindLoad                   // code was loaded: Bytes
	KindCompile                // the program named in Label was compiled
	KindGraph                  // the graph of a recording was made
	KindName                   // the semaphore in Signals is called Label
	KindClock                  // the clocks were compared: Done, Within, Drift
	KindCounters               // the device's counters: ParkedNow, InFlight, Bytes, Reserved and Used
	// The device was opened. Label names its driver. Op names the timer of the nodes of graphs, or
	// is empty if nodes are not timed. Err, if not nil, says why the timer cannot be used.
	KindOpen
	// The device was lost, or a communicator failed. Err says why. If a communicator failed, Err is
	// a [collective.Error], and Communicator, Rank and Ranks are set.
	KindLost
	KindClosed // the device was closed
	// A command that is a node of a graph. ID is the submission's ID, or 0 if that ID is unknown.
	// The record may come before or after the submission's record. A function of Native may have
	// several records.
	KindNode
	kinds
)

var kindNames = [kinds]string{"submission", "command", "wait", "signal", "call", "alloc", "grow", "shrink", "load", "compile", "graph",
	"name", "clock", "counters", "open", "lost", "closed", "node"}

// String returns the kind's name: "submission".
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// A TimeSource is the source of a record's Begun and Ended.
type TimeSource uint8

// The sources.
const (
	NoTime     TimeSource = iota // there are no times
	HostTime                     // the host's clock, around a function that the host called
	DeviceTime                   // the device's clock, in host time; Within is the error margin
)

// A Point is a value of a semaphore. The tracer numbers the semaphores.
type Point struct {
	Semaphore uint64 // from 1
	Value     uint64
}

// A Record describes one event that a [Tracer] recorded. The Kind determines which fields are set.
// Times count from [Tracer.Start]; 0 means that there is no time.
type Record struct {
	Kind            Kind
	Timed           TimeSource
	Untimed         bool   // device times were requested but are missing
	UntimedCommands int    // how many commands of an execution lack their device times
	ID              uint64 // number of the submission: from 1, in the order of the calls
	Device          *gpu.Device
	Queue           *gpu.Queue // the queue, also a communicator's

	Op      string // for example "launch"
	Label   string // the label of the operation
	Kernel  string // the kernel's name, or the operation of a collective
	Bytes   uint64 // written, allocated, freed or loaded; for KindCounters, Device.Live + Host.Live of [gpu.Stats]
	Grid    [3]uint32
	Block   [3]uint32
	Part    int // the part of an execution, from 0; an execution may be several submissions
	Command int // index of the command in its recording, from 0

	Recording uint64 // the tracer's number of the recording, from 1; 0 if there is none
	First     int    // the index of the first command of the executed part
	Commands  int    // how many commands the executed part of a recording has
	Graph     bool   // the part has a graph; if the graph ran, the commands have records of KindNode or no times
	recorded  *observe.Recording

	Communicator string // the communicator's name
	Collective   uint64 // the number of the group among all groups issued on the communicator, from 1
	Rank         int
	Ranks        int // 0 except in records of collectives and of failed communicators

	// For KindSubmission and KindCommand: the call that submitted the operation began. For other
	// kinds: the event began; 0 if the record has no such time.
	Submitted time.Duration
	Parked    time.Duration // the submission was first parked; see Parked of [gpu.Stats]
	Issued    time.Duration // the host began to give the work to the device, or to call the function
	Begun     time.Duration // the device began the work, or the function began
	Ended     time.Duration // the device ended the work, or the function ended
	// For KindSubmission and KindCommand: the host saw the submission done, or the submission failed.
	// For KindNode: the record was made. For other kinds: the event ended.
	Done time.Duration

	Within time.Duration // error margin of the device times
	// The device may have begun the work up to the duration Early before the time Begun. This
	// happens if the device was idle while the host was still giving the work to the device.
	Early time.Duration
	Drift float64 // seconds that the device's clock loses in a second
	Err   error

	Waits, Signals []Point

	ParkedNow, InFlight int    // Parked and InFlight of [gpu.Stats]
	Reserved, Used      uint64 // how many bytes the device's pools have reserved and allocated
}
