// Package traceformat reads and writes puregpu's traces: events of the Chrome Trace Event format (a
// JSON array) with the conventions of docs/trace-format.md. It writes an event, and reads a file
// event by event, even a file cut off by the program's death. It checks a file against the rules,
// and merges the files of several processes.
package traceformat

// Version is the version of the conventions. A reader refuses a newer one. Version 2 lists the
// commands of recordings once, and has times of commands of graphs.
const Version = 2

// Metadata events: names of events with [Metadata] as phase.
const (
	MetaTrace       = "puregpu" // about the trace: Args.Rank, and Args from Format to Unix
	MetaProcess     = "process_name"
	MetaThread      = "thread_name"
	MetaProcessSort = "process_sort_index"
	MetaThreadSort  = "thread_sort_index"
	MetaCommand     = "puregpu_command"    // a command of a recording: Args.Recording, Args.Command
	MetaNodes       = "puregpu_node_times" // of a device: Args.NodeTimes is the source of the times of graphs' commands, or Args.Error says why there is none
)

// Kinds of a process and of a track: Args.Kind of [MetaProcess] and [MetaThread].
const (
	KindHost    = "host"    // a process: the program itself; a track: calls and waits, one at a time
	KindDevice  = "device"  // a process: one device
	KindQueue   = "queue"   // a track: overlapping submissions, from submitted to done
	KindStream  = "stream"  // a track: work that a stream of the device executes
	KindChannel = "channel" // a track: work that a communicator's stream executes
	KindNodes   = "nodes"   // a track: commands of graphs
)

// Categories.
const (
	CatSubmission = "submission" // AsyncBegin and AsyncEnd on a queue's track
	CatDevice     = "device"     // Complete on a stream's or communicator's track: the device executes a submission
	CatCommand    = "command"    // Complete on a track of KindStream, KindChannel or KindNodes: one command of a recording
	CatCall       = "call"       // Complete on a host track: load, compile, allocate, signal, ..., or a submission that the host executes
	CatWait       = "wait"       // Complete on a host track: the host waits
	CatSignal     = "signal"     // FlowBegin and FlowEnd: from a signal to its wait
	CatLoss       = "loss"       // Instant: a device or a communicator is lost
	CatDrop       = "drop"       // Instant: the trace lacks submissions
	CatArrows     = "arrows"     // Instant: the trace lacks arrows, or may lack some
	CatCut        = "cut"        // Instant: the file of this program ends here, inside its array
	CatClock      = "clock"      // Instant: a new fit of the device's clock to the host's
)

// NameParked is the name of the inner async slice of a submission that was parked: from submitted
// to issued, or to failed.
const NameParked = "parked"

// Names of the counters, on a device's process.
const (
	CounterInFlight  = "in flight"  // series "operations"
	CounterParked    = "parked"     // series "operations"
	CounterPoolBytes = "pool bytes" // series "reserved" and "used"
)
