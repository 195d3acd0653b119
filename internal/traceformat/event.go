package traceformat

// A Phase says what kind of event an [Event] is.
type Phase byte

// The phases that traces use. puregpu writes no Begin and End, but reads them.
const (
	Begin      Phase = 'B'
	End        Phase = 'E'
	Complete   Phase = 'X' // a slice with a duration
	Instant    Phase = 'i'
	Counter    Phase = 'C'
	Metadata   Phase = 'M'
	AsyncBegin Phase = 'b'
	AsyncStep  Phase = 'n'
	AsyncEnd   Phase = 'e'
	FlowBegin  Phase = 's'
	FlowStep   Phase = 't'
	FlowEnd    Phase = 'f'
)

// A Time is a moment of the trace, or a duration, in nanoseconds. Files have microseconds with up
// to three decimals. Moments count from the start of the trace, which [MetaTrace] gives as wall
// clock time.
type Time int64

// An Event is one element of the array.
type Event struct {
	Phase Phase
	Name  string
	Cat   string
	Time  Time
	Dur   Time // duration of a Complete event
	PID   int64
	TID   int64
	ID    uint64 // of async and flow events: joins the events that belong together
	Scope byte   // of an Instant event: 'g', 'p' or 't', for the whole trace, a process or a track
	// BindEnclosing makes a FlowEnd point to the slice around its time, not to the next one ("bp":
	// "e").
	BindEnclosing bool
	Args          Args
}

// A Point is a semaphore and a value to wait for or to signal.
type Point struct {
	Semaphore uint64 // unique in the process
	Name      string // the name set by SetName, which may be empty
	Value     uint64
}

// A Series is one value of a [Counter].
type Series struct {
	Name  string
	Value int64
}

// Args are the arguments of an event. Zero fields are not written, unless the kind of event always
// has them. docs/trace-format.md lists the arguments of each event.
type Args struct {
	// Fields of submissions and their events.
	Sub             uint64 // number of the submission, from 1, unique in the process
	Op              string // "fill", "launch", ...
	Label           string // given by the user
	Kernel          string
	Grid            [3]uint32
	Block           [3]uint32
	Bytes           uint64
	Waits           []Point
	Signals         []Point
	MoreWaits       uint64 // number of waits that are left out, because the event has no room
	MoreSignals     uint64 // the same for signals
	Issued          Time   // of AsyncEnd of a submission: when it was issued to the device; 0 if it never was
	Error           string // reason why the work failed
	Untimed         bool   // of AsyncEnd of a submission: the device's times are missing, though they should have been recorded
	Recording       uint64 // number of the recording, from 1, unique in the process; 0 in traces before version 2
	First           int    // of an execution: the index in the recording of the first command of this submission
	Commands        int    // of an execution: number of commands of this submission, all of the recording's or a part of them
	Graph           bool   // the recording is executed as a graph
	UntimedCommands int    // of AsyncEnd of an execution: number of commands without device times
	Early           Time   // of CatDevice and CatCommand: the device may have begun this much earlier
	Command         int    // of CatCommand and MetaCommand: its index in the recording, from 0
	Channel         string // name of the communicator, the same in all its ranks
	Collective      uint64 // number of the collective in its communicator, from 1, the same in all ranks
	Ranks           int    // number of ranks of the communicator
	Rank            int    // rank in the communicator; of MetaTrace: rank of the process

	// Fields of metadata.
	Name      string // name of a process or track
	Kind      string
	Device    int
	Queue     int
	Stream    int
	Model     string // model of a device, for its process
	Driver    string // "cuda", "hip", "sim"
	SortIndex int
	NodeTimes string // of MetaNodes: the source of the times of graphs' commands

	// Fields of MetaTrace.
	Format  int
	Version string // version of puregpu
	Go      string
	Program string
	Host    string
	OSPID   int
	World   int    // number of ranks, 0 if not known
	Level   string // "submissions", "commands" or "none"
	Start   string // wall clock at time 0, RFC 3339 with nanoseconds, UTC
	// Unix is Start in nanoseconds since 1970.
	Unix int64

	// Fields of CatDrop.
	Dropped uint64 // submissions missing since the previous drop event
	Total   uint64 // since the start

	// Fields of CatArrows: totals so far.
	Undrawn   uint64 // waits without an arrow, because by the known times no sufficient signal came before them
	Forgotten uint64 // waits that may lack an arrow, because they or their signals were too long ago

	// Fields of CatClock.
	Rate   float64 // speed of the device's clock relative to the host's, less 1, in parts per million
	Margin Time    // error bound of the device's times until the next fit; of CatDevice: that of this slice's times, if larger

	// Fields of Counter.
	Series []Series
}

// more reports whether points are left out.
func (a *Args) more() bool { return a.MoreWaits > 0 || a.MoreSignals > 0 }
