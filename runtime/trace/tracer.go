package trace

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A Tracer records the work of devices. [gpu.Options] gives a device its tracer. The tracer records
// submissions with their times, waits and signals, the host's waits, signals and function calls,
// memory, code, and device loss. It keeps records in a ring from which one reader takes them
// ([Tracer.Take]). If the ring is full, a new record is dropped and counted. A [Trace] writes the
// records to a file. All methods may be called concurrently.
//
// Devices whose work waits for each other should share a tracer. Each tracer numbers the semaphores
// by itself. If two tracers know a semaphore, only one of them records the host's waits for it and
// the calls of functions given to [gpu.Semaphore.OnReached].
//
// A tracer changes neither the order of work nor its results. While the standard library's
// runtime/trace is enabled, each submission is also a task of runtime/trace, and each wait of the
// host is a region.
type Tracer struct {
	opt        TracerOptions
	start      time.Time
	ids        atomic.Uint64 // submission numbers
	semaphores atomic.Uint64
	recordings atomic.Uint64
	slots      []slot
	head       atomic.Uint64 // the number of the next record to write
	dropped    atomic.Uint64
	untimed    atomic.Uint64
	untimedCmd atomic.Uint64
	clamped    atomic.Uint64

	soon  chan struct{}
	self  weak.Pointer[Tracer]
	waits sync.Pool // of *hostWait

	takeMu sync.Mutex    // serializes readers
	tail   atomic.Uint64 // the number of the next record to read; changed under takeMu

	mu      sync.Mutex // protects devices; no other lock is taken while it is held
	devices []*observer
}

// TracerOptions configure a [Tracer]. The zero value is the usual configuration.
type TracerOptions struct {
	// Records is the number of records for which the ring has room, rounded up to a power of two. 0
	// means 16384. A record takes about 400 bytes.
	Records int

	// Times selects the work whose device times are recorded.
	Times Times

	// Flush, if not nil, is called when a device with this tracer has been closed, and when Open
	// fails after the tracer has begun to observe the device. Flush should take all records. Open
	// waits until Flush returns. Close waits too, but not for ever: see [gpu.Device.Shutdown].
	Flush func()
}

// Times selects the work for which a [Tracer] records when the device begins and ends it.
type Times int

const (
	// SubmissionTimes records the times of each submission that gives a stream work. Each
	// submission takes one or two timing events. The events may keep kernels from overlapping.
	SubmissionTimes Times = iota

	// CommandTimes also records the times of each command of a recording. The commands of graphs
	// have times if the driver can time them, or if the program imports a package that can, such as
	// cuptitrace. Otherwise recordings of AutoMode run as calls instead of graphs, and a recording
	// of GraphMode has only the times of the whole graph. The field Graph of a [Record] says that
	// the record is of a graph.
	CommandTimes

	// NoTimes records no device times. Records have only times of the host.
	NoTimes
)

// TracerStats count the records of a [Tracer].
type TracerStats struct {
	Submissions uint64 // traced submissions, even if the record was dropped or is not made yet
	Records     uint64 // records put into the ring, including those that Take has removed
	Dropped     uint64 // records for which the ring had no room
	Untimed     uint64 // submissions whose device times are missing
	// Clamped counts submissions whose device times were moved to fit the host's times. No time was
	// moved by more than its error margin.
	Clamped uint64

	UntimedCommands uint64 // commands whose device times are missing

	Devices int // open devices with this tracer
}

type slot struct {
	// While the slot is free, seq is the number of the next record to write here. While the slot
	// has a record, seq is that record's number plus 1.
	seq atomic.Uint64
	rec Record
}

// NewTracer makes a tracer. A zero Tracer has no room for records, and no device accepts it.
func NewTracer(o TracerOptions) (*Tracer, error) {
	switch {
	case o.Records < 0 || o.Records > 1<<26:
		return nil, fmt.Errorf("trace: %d records; there can be up to %d: %w", o.Records, 1<<26, gpu.ErrArgument)
	case o.Times < SubmissionTimes || o.Times > NoTimes:
		return nil, fmt.Errorf("trace: no times %d: %w", int(o.Times), gpu.ErrArgument)
	case o.Records == 0:
		o.Records = 1 << 14
	}
	t := &Tracer{opt: o, start: time.Now(), soon: make(chan struct{}, 1), slots: make([]slot, 1<<bits.Len(uint(max(o.Records, 2)-1)))}
	for i := range t.slots {
		t.slots[i].seq.Store(uint64(i))
	}
	t.self = weak.Make(t)
	if p := observe.Profilers.Load(); p != nil && o.Times == CommandTimes {
		p.Start() // must be called before a device is opened; Observe reports the error of Start
	}
	return t, nil
}

// Start returns the time from which the tracer's times count.
func (t *Tracer) Start() time.Time { return t.start }

func (t *Tracer) now() time.Duration { return max(time.Since(t.start), 1) }

// Stats returns a snapshot of the tracer's counters.
func (t *Tracer) Stats() TracerStats {
	t.mu.Lock()
	devices := len(t.devices)
	t.mu.Unlock()
	return TracerStats{Submissions: t.ids.Load(), Records: t.head.Load(), Dropped: t.dropped.Load(), Untimed: t.untimed.Load(), Clamped: t.clamped.Load(),
		UntimedCommands: t.untimedCmd.Load(), Devices: devices}
}

// Take first queries the devices for the times of completed work, which frees timing events for new
// work. The queries run on the runtime's own threads, and Take waits for them. Then Take moves
// records from the ring to the slice, oldest first, and returns how many it moved. It reuses the
// Waits and Signals slices of the records in the slice. To keep all records of a program, call Take
// every few milliseconds.
func (t *Tracer) Take(to []Record) int {
	t.takeMu.Lock()
	defer t.takeMu.Unlock()
	for _, o := range t.open() {
		o.askTimes()
	}
	if t.slots == nil {
		return 0
	}
	for n := range to {
		tail := t.tail.Load()
		s := &t.slots[tail&uint64(len(t.slots)-1)]
		if s.seq.Load() != tail+1 {
			return n
		}
		to[n].copy(&s.rec)
		s.rec.Err, s.rec.Device, s.rec.Queue, s.rec.recorded = nil, nil, nil, nil
		s.seq.Store(tail + uint64(len(t.slots)))
		t.tail.Store(tail + 1)
	}
	return len(to)
}

// Soon returns a channel that receives a value when the ring is at least half full, or when many
// submissions have ended whose times must be queried. The reader should then call Take at once.
func (t *Tracer) Soon() <-chan struct{} { return t.soon }

// Sample makes a record of each open device, with the number of submissions in flight, the number
// of parked submissions, the bytes that buffers have allocated, the bytes that pools have reserved,
// and how many of these are allocated. It also records by how much the driver's pools have grown or
// shrunk since they were last queried. It blocks while it queries the driver about its pools.
func (t *Tracer) Sample() {
	for _, o := range t.open() {
		s := o.dev.Stats()
		r := Record{Kind: KindCounters, Done: t.now(), ParkedNow: s.Parked, InFlight: s.InFlight, Bytes: s.Device.Live + s.Host.Live}
		r.Reserved, r.Used = o.pools()
		o.push(&r)
	}
}

func (t *Tracer) open() []*observer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.devices)
}

// push adds a record, or drops it if the ring is full.
func (t *Tracer) push(r *Record) {
	if !t.put(r) {
		t.dropped.Add(1)
	}
}

// put adds a record. It returns false if the ring is full.
func (t *Tracer) put(r *Record) bool {
	for {
		at := t.head.Load()
		s := &t.slots[at&uint64(len(t.slots)-1)]
		switch seq := s.seq.Load(); {
		case seq < at:
			return false
		case seq == at && t.head.CompareAndSwap(at, at+1):
			s.rec.copy(r)
			s.seq.Store(at + 1)
			if half := uint64(len(t.slots) / 2); at%min(half/4+1, 256) == 0 && at-t.tail.Load() >= half {
				wake.Nudge(t.soon)
			}
			return true
		}
	}
}

// copy makes r a copy of *from. It reuses the memory of r.Waits and r.Signals.
func (r *Record) copy(from *Record) {
	waits, signals := append(r.Waits[:0], from.Waits...), append(r.Signals[:0], from.Signals...)
	*r = *from
	r.Waits, r.Signals = waits, signals
}
