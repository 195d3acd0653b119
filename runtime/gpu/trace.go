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

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// The hooks of a Tracer are all here. What it learns of a submission is gathered in a span, which the submission has from its call until
// its record is let go of; a submission without one is not traced, so that off a hook is a comparison with nil. A span becomes one record,
// at the end, or where its device times are still to be asked for when the records are taken (timing.go). Records lie in a ring without a
// lock, which many write to and one reads.

// A Tracer learns what the devices do that were given it by [Options]: submissions with their times, waits and signals, waits and calls of
// the host, memory, code, and loss. It keeps that as records in a ring, from which one reader takes them ([Tracer.Take]); a record for which
// there is no room is dropped, and counted. Package runtime/trace writes a file of them. Devices whose work meets share a tracer: semaphores
// have their numbers from it. All methods may be called concurrently.
//
// It changes neither the order of work nor what becomes of it. While runtime/trace of the standard library is enabled, each submission is a
// task and each wait a region of that.
type Tracer struct {
	opt        TracerOptions
	start      time.Time
	ids        atomic.Uint64 // of submissions
	semaphores atomic.Uint64
	slots      []traceSlot
	head       atomic.Uint64 // of the slots: where the next record goes
	dropped    atomic.Uint64
	untimed    atomic.Uint64
	untimedCmd atomic.Uint64
	clamped    atomic.Uint64

	soon chan struct{}
	self weak.Pointer[Tracer]

	takeMu sync.Mutex    // one at a time reads
	tail   atomic.Uint64 // where the next record is read; changed under takeMu

	mu      sync.Mutex // a leaf
	devices []*Device
}

// TracerOptions set up a [Tracer]. The zero value is the usual way.
type TracerOptions struct {
	// Records is how many records there is room for, rounded up to a power of two; 0 means 16384. A record takes about 400 bytes.
	Records int

	// Times says of what device times are noted.
	Times TraceTimes

	// Flush, if it is not nil, is called when a device with the tracer has been closed, by who closes it. It is to take all records.
	Flush func()
}

// TraceTimes says of what a [Tracer] notes when the device begins and ends it.
type TraceTimes int

const (
	// SubmissionTimes are of each submission that gives a stream work. They take a timing event a submission, and one more where its stream was
	// idle or has to wait, which may keep kernels apart that would overlap else.
	SubmissionTimes TraceTimes = iota

	// CommandTimes are of each command of a recording besides. Recordings of AutoMode then run as calls, not as graphs; of one of GraphMode
	// there are only the times of the whole, and [TraceRecord].Graph is set.
	CommandTimes

	// NoTimes are none: what is known is when the host had given the work to the device, and when it saw it done.
	NoTimes
)

// A TraceKind says what a [TraceRecord] is about.
type TraceKind uint8

// The kinds of records.
const (
	TraceSubmission TraceKind = iota // an operation, when it is over
	TraceCommand                     // a command of a recording, behind the record of the submission with the same ID
	TraceWait                        // a wait of the host, for Waits
	TraceSignal                      // a signal of the host, or a failure by it: Err
	TraceCall                        // of a function of the program by the runtime, but for host calls, which are submissions
	TraceAlloc                       // of memory, of Bytes
	TraceGrow                        // of a pool by Bytes
	TraceShrink                      // of a pool by Bytes
	TraceLoad                        // of code of Bytes
	TraceCompile                     // of a program whose name is Label
	TraceGraph                       // the graph of a recording is made
	TraceName                        // the semaphore in Signals is called Label
	TraceClock                       // the device's clock was compared with the host's: at Done, Within, Drift
	TraceCounters                    // Parked, InFlight, Bytes of buffers and pools
	TraceOpen                        // the device has been opened, of the driver that Label names
	TraceLost                        // the device is lost, by Err; or a channel of it has failed, if that is a [ChannelError]: Channel, Rank, Ranks
	TraceClosed                      // the device has been closed
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

// A TimeSource says whose Begun and Ended are.
type TimeSource uint8

// The sources.
const (
	NoTime     TimeSource = iota // there are none
	HostTime                     // of a function that the host called
	DeviceTime                   // the device's, on the host's clock; Within says how exactly
)

// A TracePoint is a point of a semaphore, which the tracer has given a number.
type TracePoint struct {
	Semaphore uint64 // from 1
	Value     uint64
}

// A TraceRecord is what a [Tracer] has learned of one thing. Which fields count depends on Kind; times are since [Tracer.Start], and 0
// where there is none.
type TraceRecord struct {
	Kind            TraceKind
	Timed           TimeSource
	Untimed         bool   // device times were to be noted, and are missing
	UntimedCommands int    // commands of an execution of which they are missing
	ID              uint64 // of the submission, from 1, in the order of the calls
	Device          *Device
	Queue           *Queue // also a channel's

	Op      string // "dispatch"
	Label   string // of [Order]
	Kernel  string // its name; of a collective what it is
	Bytes   uint64 // that are written, allocated or loaded
	Grid    [3]uint32
	Block   [3]uint32
	Part    int // of an execution, which may be several submissions; from 0
	Command int // of the recording, from 0

	Commands   int    // of the part of a recording that is executed
	Graph      bool   // that is executed as a graph, of whose commands there are no times
	Channel    string // as of [ChannelOptions], with
	Collective uint64 // the number of the group among those issued on it, from 1
	Rank       int
	Ranks      int // 0 of what is no collective

	Submitted time.Duration // the call began; of what is no submission, it began
	Parked    time.Duration // it began to wait for something that nobody had issued
	Issued    time.Duration // the host began to give it to the device, or to call its function
	Begun     time.Duration // the device began it, or the function
	Ended     time.Duration // the device ended it, or the function
	Done      time.Duration // the host has seen it done, or it has failed; of what is no submission, it ended

	Within time.Duration // by how much the device's times may be off
	Early  time.Duration // the device may have begun it by so much before Begun: it had no other work while the host was still giving it this
	Drift  float64       // of the device's clock: how many seconds a second it loses
	Err    error

	Waits, Signals []TracePoint

	ParkedNow, InFlight int    // as of [Stats]
	Reserved, Used      uint64 // by pools
}

// TracerStats count what a [Tracer] has done.
type TracerStats struct {
	Submissions uint64 // traced; each has a record in the end, or is among the dropped
	Records     uint64 // noted, without those dropped
	Dropped     uint64 // records for which there was no room
	Untimed     uint64 // submissions of which device times are missing
	Clamped     uint64 // submissions of which device times were moved, by no more than they may be off, to lie within the host's

	UntimedCommands uint64 // commands of which device times are missing

	Devices int // that have been opened with the tracer, and not been closed
}

type traceSlot struct {
	seq atomic.Uint64 // the number of the record that may be written here, or one more if it is there to be read
	rec TraceRecord
}

// NewTracer makes a tracer. A zero tracer has no room for records, and no device takes it.
func NewTracer(o TracerOptions) (*Tracer, error) {
	switch {
	case o.Records < 0 || o.Records > 1<<26:
		return nil, argument("tracer", "%d records; there can be up to %d", o.Records, 1<<26)
	case o.Times < SubmissionTimes || o.Times > NoTimes:
		return nil, argument("tracer", "no times %d", int(o.Times))
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

// Start returns the time from which the tracer counts.
func (t *Tracer) Start() time.Time { return t.start }

func (t *Tracer) now() time.Duration { return max(time.Since(t.start), 1) }

// Stats returns a snapshot.
func (t *Tracer) Stats() TracerStats {
	t.mu.Lock()
	devices := len(t.devices)
	t.mu.Unlock()
	return TracerStats{Submissions: t.ids.Load(), Records: t.head.Load(), Dropped: t.dropped.Load(), Untimed: t.untimed.Load(), Clamped: t.clamped.Load(),
		UntimedCommands: t.untimedCmd.Load(), Devices: devices}
}

// Take moves records to a slice, oldest first, and returns how many. It reuses the lists of points that the slice's records have. Before
// that it asks devices for the times of what they have done, and makes room for the times of more: the driver is called, on threads of their own, and
// Take waits for that. One that is to keep the records of a program calls it every few milliseconds.
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

// Soon returns a channel that has something when whoever takes records is to do so at once, since there is half the room left, or less.
func (t *Tracer) Soon() <-chan struct{} { return t.soon }

// Sample notes what each open device has in flight, parked and allocated, as a record of its own, and by how much the driver's pools have grown or shrunk since
// the last time. It blocks while the driver is asked about its pools.
func (t *Tracer) Sample() {
	for _, d := range t.open() {
		s := d.Stats()
		r := TraceRecord{Kind: TraceCounters, Device: d, Done: t.now(), ParkedNow: s.Parked, InFlight: s.InFlight, Bytes: s.Bytes}
		d.pools.mu.Lock()
		pools := slices.Clone(d.pools.all)
		d.pools.mu.Unlock()
		for _, p := range pools {
			if s, err := p.Stats(); err == nil { // else it has been closed
				r.Reserved, r.Used = r.Reserved+s.Reserved, r.Used+s.Used
				d.pools.mu.Lock()
				if !p.closed.Load() { // else it is told that all has been given back
					p.traceReserved(s.Reserved)
				}
				d.pools.mu.Unlock()
			}
		}
		t.pushOf(d, &r)
	}
}

// traceReserved notes how much a native pool has reserved now, and so by how much it has grown or shrunk since that was last noted: when, the driver does not tell.
func (p *Pool) traceReserved(bytes uint64) {
	t := p.dev.opt.Tracer
	if t == nil || p.blocks != nil {
		return
	}
	switch was := p.sampled.Swap(bytes); {
	case bytes > was:
		t.event(TraceGrow, p.dev, t.begin(), "", bytes-was, nil)
	case bytes < was:
		t.event(TraceShrink, p.dev, t.begin(), "", was-bytes, nil)
	}
}

// traceNative asks a native pool how much it has reserved, for traceReserved. It runs on a bound thread.
func (p *Pool) traceNative() {
	if p.dev.opt.Tracer != nil {
		if bytes, err := p.dev.faces.pooling.PoolAttr(p.native, driver.PoolReserved); err == nil {
			p.traceReserved(bytes)
		}
	}
}

func (t *Tracer) open() []*Device {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.devices)
}

// push adds a record, or drops it.
func (t *Tracer) push(r *TraceRecord) {
	if !t.put(r) {
		t.dropped.Add(1)
	}
}

// put adds a record, if there is room.
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

// pushOf is push of a record of a device, unless that has been closed: behind that record there is none of it.
func (t *Tracer) pushOf(d *Device, r *TraceRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.devices, d) {
		t.push(r)
	}
}

// copy copies a record, into the lists that are there.
func (r *TraceRecord) copy(from *TraceRecord) {
	waits, signals := append(r.Waits[:0], from.Waits...), append(r.Signals[:0], from.Signals...)
	*r = *from
	r.Waits, r.Signals = waits, signals
}

// opened adds a device.
func (t *Tracer) opened(d *Device) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.devices = append(t.devices, d)
		t.push(&TraceRecord{Kind: TraceOpen, Device: d, Label: d.native.Driver.Name(), Done: t.now()})
	}
}

// ended notes that a device gives everything back, behind which nothing comes of it but what is submitted then, and fails.
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

// flush has all records taken, when a device has been closed.
func (t *Tracer) flush() {
	if t != nil && t.opt.Flush != nil {
		t.opt.Flush()
	}
}

// lost notes that a device is lost.
func (t *Tracer) lost(d *Device, err error) {
	if t != nil {
		now := t.now()
		t.pushOf(d, &TraceRecord{Kind: TraceLost, Device: d, Submitted: now, Done: now, Err: err})
	}
}

// begin returns when something began that ends with event. Without a tracer it is 0.
func (t *Tracer) begin() time.Duration {
	if t == nil {
		return 0
	}
	return t.now()
}

// event notes something that has ended.
func (t *Tracer) event(kind TraceKind, d *Device, began time.Duration, label string, bytes uint64, err error) {
	if t != nil {
		t.push(&TraceRecord{Kind: kind, Device: d, Submitted: began, Done: t.now(), Label: label, Bytes: bytes, Err: err})
	}
}

// A tracedSemaphore is what a semaphore is to a tracer.
type tracedSemaphore struct {
	tracer weak.Pointer[Tracer] // so that a semaphore does not keep the records of a tracer that is used no more
	id     uint64
	told   atomic.Bool                     // its name
	next   atomic.Pointer[tracedSemaphore] // only what is of no use is taken out
}

// traced returns what a semaphore with these Notes is to the first tracer that has met it, or nil.
func traced(notes *any) *tracedSemaphore {
	if notes == nil {
		return nil
	}
	return (*notes).(*tracedSemaphore)
}

// used returns the first, from one on, whose tracer is in use.
func (x *tracedSemaphore) used() *tracedSemaphore {
	for x != nil && x.tracer.Value() == nil {
		x = x.next.Load()
	}
	return x
}

// number returns the number of a semaphore. The caller holds no lock of it.
func (t *Tracer) number(s *sema.Semaphore) uint64 {
	for {
		notes := s.Notes.Load()
		first := traced(notes)
		for x := first; x != nil; x = x.next.Load() {
			if x.tracer == t.self {
				if !x.told.Load() && x.told.CompareAndSwap(false, true) && !t.tell(s, x.id) {
					x.told.Store(false) // the next time there may be room
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

// tell notes the name of a semaphore, if it has one, and reports whether there was room for that.
func (t *Tracer) tell(s *sema.Semaphore, id uint64) bool {
	name := s.Name()
	return name == "" || t.put(&TraceRecord{Kind: TraceName, Label: name, Signals: []TracePoint{{Semaphore: id}}, Done: t.now()})
}

// renamed has the name told again.
func renamed(s *sema.Semaphore) {
	for x := traced(s.Notes.Load()); x != nil; x = x.next.Load() {
		x.told.Store(false)
	}
}

// nameKernel keeps a kernel's name for who notes times of commands.
func (c *CommandBuffer) nameKernel(k *Kernel) {
	if c.dev.timesOf() == CommandTimes {
		if c.kernels == nil {
			c.kernels = map[driver.Function]string{}
		}
		c.kernels[k.fn] = k.name
	}
}

// nameKernels keeps the names that a nested recording has.
func (c *CommandBuffer) nameKernels(child *CommandBuffer) {
	if c.kernels == nil && len(child.kernels) > 0 {
		c.kernels = map[driver.Function]string{}
	}
	for fn, name := range child.kernels {
		c.kernels[fn] = name
	}
}

// points adds points to a list.
func (t *Tracer) points(list []TracePoint, points []sema.Point) []TracePoint {
	for _, p := range points {
		list = append(list, TracePoint{t.number(p.Semaphore), p.Value})
	}
	return list
}

// traceSignal notes a signal of the host, or a failure by it.
func traceSignal(s *sema.Semaphore, value uint64, err error) {
	for x := traced(s.Notes.Load()); x != nil; x = x.next.Load() {
		if t := x.tracer.Value(); t != nil {
			now, at := t.now(), [1]TracePoint{{t.number(s), value}}
			t.push(&TraceRecord{Kind: TraceSignal, Submitted: now, Done: now, Signals: at[:], Err: err})
		}
	}
}

// tracerOf returns the tracer that has met one of the points' semaphores, if there is one.
func tracerOf(points []sema.Point) *Tracer {
	for _, p := range points {
		if x := traced(p.Semaphore.Notes.Load()).used(); x != nil {
			return x.tracer.Value()
		}
	}
	return nil
}

// waitTraced is wait, and notes it.
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

// traceCall returns a function of OnReached that notes when it is called.
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

// deviceSpans are what a device notes of submissions with.
type deviceSpans struct {
	spans   sync.Pool            // of spans
	times   deviceTimes          // of submissions, for a tracer
	timings map[*Timing]struct{} // under the device's mu
}

// A span is what is to be noted of a submission: by a tracer, for a Timing, or both.
type span struct {
	rec      TraceRecord
	tracer   *Tracer // nil: only timing is to be told
	timing   *Timing
	edges    timingEdges
	begin    *engine.Event // between which and end the device is at it, held; nil if times are not noted, or missing
	last     *engine.Event // the submission's own
	shared   bool          // begin is that of the submission in front of it
	given    hostTimes     // when the host gave it to the device
	moved    time.Duration // by how much its times were moved, to lie within the host's
	commands []commandTimes
	task     *rtrace.Task
	next     *span // in the list of those whose times are to be asked for
}

// trace begins a span. The error is that of a Timing which cannot be told.
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
		x.timing = o.Timing.self // else the caller's lists would be moved to the heap
		if s.Op.Kind == work.Barrier || s.Op.Kind == work.Notify {
			x.timing.note(notedNone) // a barrier that takes a place in its stream notes more
		}
	}
	t := x.tracer
	if t == nil {
		return nil
	}
	r := &x.rec
	r.Kind, r.ID, r.Device, r.Queue, r.Op, r.Label, r.Bytes, r.Part = TraceSubmission, t.ids.Add(1), d, s.q, s.Op.Kind.String(), s.label, s.Op.Bytes(), s.part
	switch s.Op.Kind {
	case work.Dispatch:
		r.Grid, r.Block, r.Bytes = s.launch.Grid, s.launch.Block, 0
	case work.Alloca, work.Dealloca:
		if b := s.buffer; b != nil {
			r.Bytes = b.mem.Size
		}
	}
	if s.kernel != nil {
		r.Kernel = s.kernel.name
	}
	if s.recording != nil {
		p := &s.recording.parts[s.part]
		r.Commands, r.Graph = p.to-p.from, p.graph
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

// Parks notes that the submission waits for something nobody has issued.
func (x *span) Parks() {
	if x.tracer != nil && x.rec.Parked == 0 {
		x.rec.Parked = x.tracer.now()
	}
}

// Fails notes why the submission fails.
func (x *span) Fails(err error) {
	if x.rec.Err == nil {
		x.timing.note(notedFailed)
		if x.rec.Err = err; x.tracer != nil {
			x.rec.Done = x.tracer.now()
		}
	}
}

// called calls a function of the program, and notes that.
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
	defer func() { // also if it ends its goroutine
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

// notified returns a function that is called when its submission is over, and is noted for itself.
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

// Ends makes a record of the span, at once or when the device has told its times.
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

// putSpan keeps a span for another submission.
func (d *Device) putSpan(x *span) {
	waits, signals := x.rec.Waits[:0], x.rec.Signals[:0]
	clear(x.commands)
	*x = span{commands: x.commands[:0]}
	x.rec.Waits, x.rec.Signals = waits, signals
	d.spans.Put(x)
}
