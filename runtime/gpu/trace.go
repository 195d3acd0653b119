package gpu

import (
	"context"
	"fmt"
	"math/bits"
	"runtime/pprof"
	rtrace "runtime/trace"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// All hooks of a Tracer are in this file. A span collects what the tracer learns about one
// submission. The submission has its span from the call until its record is released. A submission
// without a span is not traced, so a hook costs one comparison with nil when tracing is off. A span
// becomes one record when the submission ends. If its device times must still be queried, it
// becomes a record when the records are taken (see devicetimes.go). Records lie in a lock-free ring
// with many writers and one reader.

// A Tracer records what devices do. [Options] gives a device its tracer. The tracer records
// submissions with their times, waits and signals, the host's waits and function calls, memory,
// code, and device loss. It keeps records in a ring from which one reader takes them
// ([Tracer.Take]). If the ring is full, a new record is dropped and counted. Package runtime/trace
// writes records to a file. Devices whose work waits for each other should share a tracer, because
// the tracer numbers the semaphores. All methods may be called concurrently.
//
// A tracer changes neither the order of work nor its results. While the standard library's
// runtime/trace is enabled, each submission is also a task of it, and each wait a region.
type Tracer struct {
	opt        TracerOptions
	start      time.Time
	ids        atomic.Uint64 // submission numbers
	semaphores atomic.Uint64
	slots      []traceSlot
	head       atomic.Uint64 // the number of the next record to write
	dropped    atomic.Uint64
	untimed    atomic.Uint64
	untimedCmd atomic.Uint64
	clamped    atomic.Uint64

	soon chan struct{}
	self weak.Pointer[Tracer]

	takeMu sync.Mutex    // serializes readers
	tail   atomic.Uint64 // the number of the next record to read; changed under takeMu

	mu      sync.Mutex // a leaf; protects devices
	devices []*Device
}

// TracerOptions configure a [Tracer]. The zero value is the usual configuration.
type TracerOptions struct {
	// Records is the number of records for which the ring has room, rounded up to a power of two. 0
	// means 16384. A record takes about 400 bytes.
	Records int

	// Times selects the work whose device times are recorded.
	Times TraceTimes

	// Flush, if not nil, is called when a device with this tracer has been closed, by the goroutine
	// that closes it. It should take all records.
	Flush func()
}

// TraceTimes selects the work for which a [Tracer] records when the device begins and ends it.
type TraceTimes int

const (
	// SubmissionTimes records the times of each submission that gives a stream work. Each
	// submission takes one timing event. It takes a second one if its stream was idle or has to
	// wait. The events may keep kernels from overlapping.
	SubmissionTimes TraceTimes = iota

	// CommandTimes also records the times of each command of a recording. Recordings of AutoMode
	// then run as calls instead of graphs. A recording of GraphMode has only the times of the whole
	// graph, and [TraceRecord].Graph is set.
	CommandTimes

	// NoTimes records no device times. Records only say when the host had given the work to the
	// device, and when the host saw it done.
	NoTimes
)

// A TraceKind is the subject of a [TraceRecord].
type TraceKind uint8

// The kinds of records.
const (
	TraceSubmission TraceKind = iota // an operation, recorded when it is over
	TraceCommand                     // a command of a recording; its record follows the submission's, with the same ID
	TraceWait                        // a wait by the host, for the points in Waits
	TraceSignal                      // the host signaled a semaphore, or with Err failed it
	TraceCall                        // a call of a program's function, except host calls
	TraceAlloc                       // memory was allocated: Bytes
	TraceGrow                        // a pool grew by Bytes
	TraceShrink                      // a pool shrank by Bytes
	TraceLoad                        // code was loaded: Bytes
	TraceCompile                     // the program named in Label was compiled
	TraceGraph                       // the graph of a recording was made
	TraceName                        // the semaphore in Signals is called Label
	TraceClock                       // the clocks were compared: Done, Within, Drift
	TraceCounters                    // ParkedNow, InFlight, and Bytes of buffers and pools
	TraceOpen                        // the device was opened; Label names its driver
	// The device was lost (Err). If Err is a [ChannelError], a channel failed: Channel, Rank,
	// Ranks.
	TraceLost
	TraceClosed // the device was closed
	traceKinds
)

var traceKindNames = [traceKinds]string{"submission", "command", "wait", "signal", "call", "alloc", "grow", "shrink", "load", "compile", "graph",
	"name", "clock", "counters", "open", "lost", "closed"}

// String returns the kind's name: "submission".
func (k TraceKind) String() string {
	if k < traceKinds {
		return traceKindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// A TimeSource says where a record's Begun and Ended come from.
type TimeSource uint8

// The sources.
const (
	NoTime     TimeSource = iota // there are no times
	HostTime                     // the host's clock, around a function that the host called
	DeviceTime                   // the device's clock, in host time; Within is the error margin
)

// A TracePoint is a value of a semaphore. The tracer numbers the semaphores.
type TracePoint struct {
	Semaphore uint64 // from 1
	Value     uint64
}

// A TraceRecord describes one event that a [Tracer] recorded. Kind says which fields are set. Times
// count from [Tracer.Start]; 0 means that there is no time.
type TraceRecord struct {
	Kind            TraceKind
	Timed           TimeSource
	Untimed         bool   // device times were requested but are missing
	UntimedCommands int    // how many commands of an execution lack their device times
	ID              uint64 // of the submission: from 1, in the order of the calls
	Device          *Device
	Queue           *Queue // the queue, also a channel's

	Op      string // for example "dispatch"
	Label   string // the label of the [Order]
	Kernel  string // the kernel's name; of a collective, its operation
	Bytes   uint64 // how many bytes are written, allocated or loaded
	Grid    [3]uint32
	Block   [3]uint32
	Part    int // which part of an execution, which may be several submissions; from 0
	Command int // index of the command in its recording, from 0

	Commands   int    // how many commands the executed part of a recording has
	Graph      bool   // the part runs as a graph, so its commands have no times
	Channel    string // the channel's name ([ChannelOptions])
	Collective uint64 // the number of the group among those issued on the channel, from 1
	Rank       int
	Ranks      int // 0 unless this is a collective

	Submitted time.Duration // the call began; for other kinds than submissions, the event began
	Parked    time.Duration // it began to wait for a point that has no producer yet
	Issued    time.Duration // the host began to give it to the device, or to call its function
	Begun     time.Duration // the device or the function began it
	Ended     time.Duration // the device or the function ended it
	Done      time.Duration // the host saw it done, or it failed; for other kinds, the event ended

	Within time.Duration // error margin of the device times
	// The device may have begun the work up to Early before Begun: the device was idle while the
	// host was still giving it this work.
	Early time.Duration
	Drift float64 // of the device's clock: seconds that it loses in a second
	Err   error

	Waits, Signals []TracePoint

	ParkedNow, InFlight int    // as in [Stats]
	Reserved, Used      uint64 // bytes of pools
}

// TracerStats count what a [Tracer] has recorded.
type TracerStats struct {
	Submissions uint64 // traced submissions; each one's record is or will be recorded or dropped
	Records     uint64 // records kept, without dropped ones
	Dropped     uint64 // records for which the ring had no room
	Untimed     uint64 // submissions whose device times are missing
	Clamped     uint64 // device times that were moved, within their margin, to fit the host's

	UntimedCommands uint64 // commands whose device times are missing

	Devices int // open devices with this tracer
}

type traceSlot struct {
	seq atomic.Uint64 // number of the record to write here; one more if it can be read
	rec TraceRecord
}

// NewTracer makes a tracer. A zero Tracer has no room for records, and no device accepts it.
func NewTracer(o TracerOptions) (*Tracer, error) {
	switch {
	case o.Records < 0 || o.Records > 1<<26:
		return nil, errs.Argument("tracer", "%d records; there can be up to %d", o.Records, 1<<26)
	case o.Times < SubmissionTimes || o.Times > NoTimes:
		return nil, errs.Argument("tracer", "no times %d", int(o.Times))
	case o.Records == 0:
		o.Records = 1 << 14
	}
	t := &Tracer{opt: o, start: time.Now(), soon: make(chan struct{}, 1), slots: make([]traceSlot, 1<<bits.Len(uint(max(o.Records, 2)-1)))}
	for i := range t.slots {
		t.slots[i].seq.Store(uint64(i))
	}
	t.self = weak.Make(t)
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

// Take moves records to the slice, oldest first, and returns how many it moved. It reuses the Waits
// and Signals slices of the records in the slice. First it queries the devices for the times of
// completed work, which frees their timing events for new work. These driver calls run on the
// runtime's own threads, and Take waits for them. To keep all records of a program, call Take every
// few milliseconds.
func (t *Tracer) Take(to []TraceRecord) int {
	t.takeMu.Lock()
	defer t.takeMu.Unlock()
	for _, d := range t.open() {
		d.askTimes()
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
		s.rec.Err, s.rec.Device, s.rec.Queue = nil, nil, nil
		s.seq.Store(tail + uint64(len(t.slots)))
		t.tail.Store(tail + 1)
	}
	return len(to)
}

// Soon returns a channel that receives a value when the ring is at least half full. The reader
// should then take records at once.
func (t *Tracer) Soon() <-chan struct{} { return t.soon }

// Sample records for each open device what it has in flight, parked and allocated. It also records
// by how much the driver's pools have grown or shrunk since the last sample. It blocks while it
// queries the driver about its pools.
func (t *Tracer) Sample() {
	for _, d := range t.open() {
		s := d.Stats()
		r := TraceRecord{Kind: TraceCounters, Device: d, Done: t.now(), ParkedNow: s.Parked, InFlight: s.InFlight, Bytes: s.Bytes}
		r.Reserved, r.Used = d.memory.SamplePools()
		t.pushOf(d, &r)
	}
}

// A memoryWatcher is a device's tracer as package memory sees it.
type memoryWatcher Device

// watcherOf returns the watcher of a device's memory, or nil without a tracer.
func watcherOf(d *Device) memory.Watcher {
	if d.opt.Tracer == nil {
		return nil
	}
	return (*memoryWatcher)(d)
}

// Now returns the tracer's time.
func (w *memoryWatcher) Now() time.Duration { return w.opt.Tracer.begin() }

// Changed records a change of the device's memory.
func (w *memoryWatcher) Changed(c memory.Change, began time.Duration, size uint64, err error) {
	kind := [...]TraceKind{memory.Allocated: TraceAlloc, memory.Grown: TraceGrow, memory.Shrunk: TraceShrink}[c]
	w.opt.Tracer.event(kind, (*Device)(w), began, "", size, err)
}

func (t *Tracer) open() []*Device {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.devices)
}

// push adds a record, or drops it if the ring is full.
func (t *Tracer) push(r *TraceRecord) {
	if !t.put(r) {
		t.dropped.Add(1)
	}
}

// put adds a record, and reports false if the ring is full.
func (t *Tracer) put(r *TraceRecord) bool {
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

// pushOf pushes a device's record unless the device has been closed: no record of a device may
// follow its TraceClosed.
func (t *Tracer) pushOf(d *Device, r *TraceRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.devices, d) {
		t.push(r)
	}
}

// copy copies a record and reuses the slices that r has.
func (r *TraceRecord) copy(from *TraceRecord) {
	waits, signals := append(r.Waits[:0], from.Waits...), append(r.Signals[:0], from.Signals...)
	*r = *from
	r.Waits, r.Signals = waits, signals
}

// opened adds a device to the tracer.
func (t *Tracer) opened(d *Device) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.devices = append(t.devices, d)
		t.push(&TraceRecord{Kind: TraceOpen, Device: d, Label: d.native.Driver.Name(), Done: t.now()})
	}
}

// ended records that a device has been closed and removes it from the tracer. Only submissions that
// come afterwards, and fail, still make records of it.
func (t *Tracer) ended(d *Device) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.devices, d); i >= 0 {
		t.devices = slices.Delete(t.devices, i, i+1)
		t.push(&TraceRecord{Kind: TraceClosed, Device: d, Done: t.now()})
	}
}

// flush calls the Flush option after a device has been closed.
func (t *Tracer) flush() {
	if t != nil && t.opt.Flush != nil {
		t.opt.Flush()
	}
}

// lost records that a device is lost.
func (t *Tracer) lost(d *Device, err error) {
	if t != nil {
		now := t.now()
		t.pushOf(d, &TraceRecord{Kind: TraceLost, Device: d, Submitted: now, Done: now, Err: err})
	}
}

// begin returns the start time to pass to event later. Without a tracer it is 0.
func (t *Tracer) begin() time.Duration {
	if t == nil {
		return 0
	}
	return t.now()
}

// event records an event that began at began and ends now.
func (t *Tracer) event(kind TraceKind, d *Device, began time.Duration, label string, bytes uint64, err error) {
	if t != nil {
		t.push(&TraceRecord{Kind: kind, Device: d, Submitted: began, Done: t.now(), Label: label, Bytes: bytes, Err: err})
	}
}

// A tracedSemaphore is a tracer's number for a semaphore. A semaphore has a list of them, one for
// each tracer.
type tracedSemaphore struct {
	tracer weak.Pointer[Tracer] // weak: semaphores do not keep an unused tracer's records
	id     uint64
	told   atomic.Bool                     // the tracer has a record of the semaphore's name
	next   atomic.Pointer[tracedSemaphore] // only entries of dead tracers are removed
}

// traced returns the first entry of the list in a semaphore's Notes, or nil.
func traced(notes *any) *tracedSemaphore {
	if notes == nil {
		return nil
	}
	return (*notes).(*tracedSemaphore)
}

// used returns the first entry, from x on, whose tracer is still in use.
func (x *tracedSemaphore) used() *tracedSemaphore {
	for x != nil && x.tracer.Value() == nil {
		x = x.next.Load()
	}
	return x
}

// number returns the tracer's number for a semaphore. The caller holds no lock of the semaphore.
func (t *Tracer) number(s *sema.Semaphore) uint64 {
	for {
		notes := s.Notes.Load()
		first := traced(notes)
		for x := first; x != nil; x = x.next.Load() {
			if x.tracer == t.self {
				if !x.told.Load() && x.told.CompareAndSwap(false, true) && !t.tell(s, x.id) {
					x.told.Store(false) // try again the next time, when the ring may have room
				}
				return x.id
			}
		}
		add := &tracedSemaphore{tracer: t.self, id: t.semaphores.Add(1)}
		for last, x := add, first.used(); ; x = last.next.Load().used() {
			if last.next.Store(x); x == nil {
				break
			}
			last = x
		}
		var now any = add
		s.Notes.CompareAndSwap(notes, &now)
	}
}

// tell records the name of a semaphore, if it has one. It reports false if the ring is full.
func (t *Tracer) tell(s *sema.Semaphore, id uint64) bool {
	name := s.Name()
	return name == "" || t.put(&TraceRecord{Kind: TraceName, Label: name, Signals: []TracePoint{{Semaphore: id}}, Done: t.now()})
}

// renamed makes every tracer record the semaphore's name again.
func renamed(s *sema.Semaphore) {
	for x := traced(s.Notes.Load()); x != nil; x = x.next.Load() {
		x.told.Store(false)
	}
}

// points appends points to a list.
func (t *Tracer) points(list []TracePoint, points []sema.Point) []TracePoint {
	for _, p := range points {
		list = append(list, TracePoint{t.number(p.Semaphore), p.Value})
	}
	return list
}

// traceSignal records that the host signaled or failed a semaphore.
func traceSignal(s *sema.Semaphore, value uint64, err error) {
	for x := traced(s.Notes.Load()); x != nil; x = x.next.Load() {
		if t := x.tracer.Value(); t != nil {
			now, at := t.now(), [1]TracePoint{{t.number(s), value}}
			t.push(&TraceRecord{Kind: TraceSignal, Submitted: now, Done: now, Signals: at[:], Err: err})
		}
	}
}

// tracerOf returns a tracer that has numbered one of the points' semaphores, or nil.
func tracerOf(points []sema.Point) *Tracer {
	for _, p := range points {
		if x := traced(p.Semaphore.Notes.Load()).used(); x != nil {
			return x.tracer.Value()
		}
	}
	return nil
}

// wait calls waitUntil and records the wait.
func (t *Tracer) wait(ctx context.Context, points []Point, all bool) (index int, err error) {
	r := TraceRecord{Kind: TraceWait, Op: "wait", Submitted: t.now()}
	if !all {
		r.Op = "wait for any"
	}
	defer rtrace.StartRegion(ctx, "gpu wait").End()
	index, r.Err = waitUntil(ctx, points, all)
	var room [4]TracePoint
	r.Done, r.Waits = t.now(), t.points(room[:0], inner(points))
	t.push(&r)
	return index, r.Err
}

// traceCall wraps a function for OnReached so that its call is recorded.
func traceCall(p sema.Point, fn func(error)) func(error) {
	t := tracerOf([]sema.Point{p})
	if t == nil {
		return fn
	}
	return func(err error) {
		r := TraceRecord{Kind: TraceCall, Op: "function", Timed: HostTime, Submitted: t.now(), Waits: t.points(nil, []sema.Point{p})}
		r.Begun = r.Submitted
		defer func() {
			r.Done = t.now()
			r.Ended = r.Done
			t.push(&r)
		}()
		pprof.Do(context.Background(), pprof.Labels("gpu_op", "function", "gpu_semaphore", p.Semaphore.String()), func(context.Context) { fn(err) })
	}
}

// deviceSpans are what a device needs to trace and time its submissions.
type deviceSpans struct {
	spans   sync.Pool            // of *span
	times   deviceTimes          // device times for a tracer
	timings map[*Timing]struct{} // protected by the device's mu
}

// A span collects what a tracer, a Timing, or both need to know about a submission.
type span struct {
	rec    TraceRecord
	tracer *Tracer // nil: the span only serves timing
	timing *Timing
	edges  timingEdges
	// The work lies between the events begin and last. The span holds both. begin is nil if times
	// are not recorded, or are missing.
	begin    *engine.Event
	last     *engine.Event // the submission's own event
	shared   bool          // begin is the event of the submission in front
	given    hostTimes     // when the host gave the work to the device
	moved    time.Duration // by how much the device times were moved, to lie within the host's
	commands []commandTimes
	task     *rtrace.Task
	next     *span // in the list of spans whose times must be queried
}

// trace begins a span. It returns an error if the Order's Timing cannot be used.
func (s *record) trace(o *Order) error {
	d := s.q.dev
	if o.Timing != nil {
		if err := o.Timing.begin(d, o.edges); err != nil {
			return fmt.Errorf("gpu: %s on %v: %w", s.Op.Kind, s.q, err)
		}
	}
	x, _ := d.spans.Get().(*span)
	if x == nil {
		x = new(span)
	}
	s.Observer, x.edges, x.tracer = x, o.edges, d.opt.Tracer
	if o.Timing != nil {
		x.timing = o.Timing.self // self: using o.Timing would move the caller's lists to the heap
		if s.Op.Kind == work.Barrier || s.Op.Kind == work.Notify {
			x.timing.note(notedNone) // overwritten if the barrier takes a place in its stream
		}
	}
	t := x.tracer
	if t == nil {
		return nil
	}
	r := &x.rec
	r.Kind, r.ID, r.Device, r.Queue, r.Op, r.Label, r.Bytes, r.Part = TraceSubmission, t.ids.Add(1), d, s.q, s.Op.Kind.String(), s.label, s.Op.Bytes(), s.recording.Number()
	switch s.Op.Kind {
	case work.Dispatch:
		r.Grid, r.Block, r.Bytes = s.launch.Grid, s.launch.Block, 0
	case work.Alloca, work.Dealloca:
		if b := s.memory.Buffer(); b != nil {
			r.Bytes = b.Size()
		}
	}
	if s.kernel != nil {
		r.Kernel = s.kernel.name
	}
	if s.recording.Recording() != nil {
		r.Commands, r.Graph = s.recording.Commands()
	}
	r.Waits, r.Signals = t.points(r.Waits[:0], s.Waits), t.points(r.Signals[:0], s.Signals)
	if rtrace.IsEnabled() {
		ctx, task := rtrace.NewTask(context.Background(), "gpu "+r.Op)
		x.task = task
		rtrace.Log(ctx, "gpu", r.Label)
	}
	r.Submitted = t.now()
	return nil
}

// spanOf returns the span of a submission, or nil.
func spanOf(s *engine.Submission) *span {
	x, _ := s.Observer.(*span)
	return x
}

// Parks records that the submission waits for a point without a producer.
func (x *span) Parks() {
	if x.tracer != nil && x.rec.Parked == 0 {
		x.rec.Parked = x.tracer.now()
	}
}

// Fails records why the submission fails.
func (x *span) Fails(err error) {
	if x.rec.Err == nil {
		x.timing.note(notedFailed)
		if x.rec.Err = err; x.tracer != nil {
			x.rec.Done = x.tracer.now()
		}
	}
}

// called calls a function of the program and records the call.
func (x *span) called(q *Queue, fn func() error) (err error) {
	if x == nil {
		return guard(fn)
	}
	begun := time.Now()
	x.rec.Timed = HostTime
	if x.tracer != nil {
		x.rec.Issued = x.tracer.now()
		x.rec.Begun = x.rec.Issued
	}
	defer func() { // also if fn ends its goroutine
		if x.tracer != nil {
			x.rec.Ended = x.tracer.now()
		}
		if x.timing != nil {
			x.timing.hostly(time.Since(begun), x.edges)
		}
	}()
	pprof.Do(context.Background(), pprof.Labels("gpu_op", x.rec.Op, "gpu_queue", q.String(), "gpu_label", x.rec.Label),
		func(context.Context) { err = guard(fn) })
	return err
}

// notified wraps a function that is called when its submission is over. The call gets a record of
// its own.
func (x *span) notified(q *Queue, fn func() error) func() error {
	if x == nil || x.tracer == nil {
		return fn
	}
	t, label := x.tracer, x.rec.Label
	return func() (err error) {
		r := TraceRecord{Kind: TraceCall, Op: "notified function", Label: label, Device: q.dev, Queue: q, Timed: HostTime, Submitted: t.now()}
		r.Begun = r.Submitted
		defer func() {
			r.Done, r.Err = t.now(), err
			r.Ended = r.Done
			t.push(&r)
		}()
		pprof.Do(context.Background(), pprof.Labels("gpu_op", "notify", "gpu_queue", q.String(), "gpu_label", label),
			func(context.Context) { err = guard(fn) })
		return err
	}
}

// Ends turns the span into a record: at once, or after the device times have been queried.
func (x *span) Ends(s *engine.Submission) {
	d := recordOf(s).q.dev
	if x.timing != nil {
		x.timing.release()
	}
	if x.task != nil {
		x.task.End()
	}
	if t := x.tracer; t != nil {
		if x.rec.Done == 0 {
			x.rec.Done = t.now()
		}
		if x.last != nil {
			d.times.finished(x)
		} else {
			d.times.tell(d, x)
		}
		return
	}
	d.putSpan(x)
}

// putSpan puts a span into the pool for another submission.
func (d *Device) putSpan(x *span) {
	waits, signals := x.rec.Waits[:0], x.rec.Signals[:0]
	clear(x.commands)
	*x = span{commands: x.commands[:0]}
	x.rec.Waits, x.rec.Signals = waits, signals
	d.spans.Put(x)
}
