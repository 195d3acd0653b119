package trace

import (
	"context"
	"fmt"
	"runtime/pprof"
	rtrace "runtime/trace"
	"slices"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// An observer observes one device for a tracer. It is an observe.Device.
type observer struct {
	tracer *Tracer
	dev    *gpu.Device
	core   *engine.Device
	pools  func() (reserved, used uint64)
	times  Times         // as in the tracer's options; NoTimes if the driver cannot time
	timers driver.Timers // nil with NoTimes
	spans  sync.Pool     // of *span
	deviceTimes
	nodeTimes
}

// Observe returns an observe.Device, to which package gpu reports what the device does. Package gpu
// calls Observe when it opens a device with a tracer.
func (t *Tracer) Observe(dev *gpu.Device, core *engine.Device, pools func() (reserved, used uint64)) (observe.Device, error) {
	if t.slots == nil {
		return nil, fmt.Errorf("trace: a tracer that was not made: make one with NewTracer: %w", gpu.ErrArgument)
	}
	o := &observer{tracer: t, dev: dev, core: core, pools: pools, times: NoTimes}
	o.nodes.Keep = mostNodes
	if core.Caps.Timers && t.opt.Times != NoTimes {
		if timers, ok := core.Native.(driver.Timers); ok {
			o.times, o.timers = t.opt.Times, timers
		}
	}
	source, lacks := o.findTimer()
	t.mu.Lock()
	t.devices = append(t.devices, o)
	t.push(&Record{Kind: KindOpen, Device: dev, Label: core.Driver.Name(), Op: source, Err: lacks, Done: t.now()})
	t.mu.Unlock()
	o.begin()
	return o, nil
}

// push adds a record of the device unless the device has been closed. Records of submissions and of
// functions do not come through push, and may follow the device's KindClosed record.
func (o *observer) push(r *Record) {
	t := o.tracer
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.devices, o) {
		r.Device = o.dev
		t.push(r)
	}
}

// Happened records an event of the device that ends now. The parameter began is the time at which
// the event began.
func (o *observer) Happened(what observe.Event, began time.Time, label string, bytes uint64, err error) {
	t := o.tracer
	r := Record{Kind: KindAlloc + Kind(what), Submitted: max(began.Sub(t.start), 1), Done: t.now(), Label: label, Bytes: bytes, Err: err}
	if what == observe.Lost {
		r.Kind = KindLost
		if e, ok := err.(*collective.Error); ok {
			r.Communicator, r.Rank, r.Ranks = e.Name, e.Rank, e.Count
		}
	}
	o.push(&r)
}

// Closed records that the device has been closed, removes it from the tracer, and calls
// TracerOptions.Flush.
func (o *observer) Closed() {
	t := o.tracer
	t.mu.Lock()
	t.devices = slices.DeleteFunc(t.devices, func(x *observer) bool { return x == o })
	t.push(&Record{Kind: KindClosed, Device: o.dev, Done: t.now()})
	t.mu.Unlock()
	if t.opt.Flush != nil {
		t.opt.Flush()
	}
}

// A span collects the facts about one submission. It is an observe.Submission. When the submission
// ends, the span becomes a [Record] of the submission, and a record of each command if commands are
// timed. If device times must be queried first, the span becomes records only when the reader takes
// records (see devicetimes.go).
type span struct {
	*observer
	rec  Record
	kind work.Kind
	// The work lies between the events begin and last. The span holds both events. begin is nil if
	// the submission is not timed.
	begin    *engine.Event
	last     *engine.Event // the submission's own event
	shared   bool          // begin is the event behind the previous submission
	given    hostTimes     // when the host gave the work to the device
	moved    time.Duration // how far Record.Begun was moved, to lie within the host's times
	commands []commandTimes
	// launching is the stream in which a thread is launching the submission's graph. It is 0 except
	// between the calls of Begins and Begun.
	launching driver.Stream
	task      *rtrace.Task
	next      *span // in the list of spans whose times must be queried
}

// Submitted begins a span.
func (o *observer) Submitted(s *engine.Submission, d observe.Description) observe.Submission {
	t := o.tracer
	x, _ := o.spans.Get().(*span)
	if x == nil {
		x = &span{observer: o}
	}
	x.kind = s.Op.Kind
	x.rec = Record{Kind: KindSubmission, ID: t.ids.Add(1), Device: o.dev, Queue: d.Queue.(*gpu.Queue), Op: x.kind.String(), Label: d.Label, Kernel: d.Kernel,
		Bytes: d.Bytes, Grid: d.Grid, Block: d.Block, Part: d.Part, Commands: d.Commands, Graph: d.Graph,
		Waits: t.points(x.rec.Waits[:0], s.Waits), Signals: t.points(x.rec.Signals[:0], s.Signals)}
	if d.Recording != nil {
		x.rec.Recording, x.rec.First, x.rec.recorded = d.Recording.ID, d.First, d.Recording
	}
	if rtrace.IsEnabled() {
		ctx, task := rtrace.NewTask(context.Background(), "gpu "+x.rec.Op)
		x.task = task
		rtrace.Log(ctx, "gpu", x.rec.Label)
	}
	x.rec.Submitted = t.now()
	return x
}

// put puts the span into the pool for another submission.
func (x *span) put() {
	waits, signals := x.rec.Waits[:0], x.rec.Signals[:0]
	clear(x.commands)
	*x = span{observer: x.observer, commands: x.commands[:0]}
	x.rec.Waits, x.rec.Signals = waits, signals
	x.spans.Put(x)
}

// Collective records a group's communicator, with its rank and number of ranks, and the kind of the
// first operation.
func (x *span) Collective(kernel, communicator string, rank, ranks int) {
	x.rec.Kernel, x.rec.Communicator, x.rec.Rank, x.rec.Ranks = kernel, communicator, rank, ranks
}

// Parks records when the submission was first parked.
func (x *span) Parks() {
	if x.rec.Parked == 0 {
		x.rec.Parked = x.tracer.now()
	}
}

// Fails records the first error with which the submission fails, and when.
func (x *span) Fails(err error) {
	if x.rec.Err == nil {
		x.rec.Err, x.rec.Done = err, x.tracer.now()
	}
}

// Calls wraps a function of the operation so that the call of the function is recorded. The call of
// a notification gets a record of its own. Other calls are in the record of the submission.
func (x *span) Calls(fn func() error) func() error {
	t, queue := x.tracer, x.rec.Queue
	call := func(op, label string) (err error) {
		pprof.Do(context.Background(), pprof.Labels("gpu_op", op, "gpu_queue", queue.String(), "gpu_label", label),
			func(context.Context) { err = fn() })
		return err
	}
	if x.kind != work.Notify {
		return func() error {
			x.rec.Timed, x.rec.Issued = HostTime, t.now()
			x.rec.Begun = x.rec.Issued
			defer func() { x.rec.Ended = t.now() }() // also if fn ends its goroutine
			return call(x.rec.Op, x.rec.Label)
		}
	}
	r := Record{Kind: KindCall, Op: "notified function", Label: x.rec.Label, Device: x.dev, Queue: queue, Timed: HostTime}
	return func() error {
		r.Submitted = t.now()
		defer t.called(&r)
		r.Err = call("notify", r.Label)
		return r.Err
	}
}

// Ends turns the span into a record: immediately, or after the device times have been queried.
func (x *span) Ends(s *engine.Submission) {
	if x.task != nil {
		x.task.End()
	}
	if x.rec.Done == 0 {
		x.rec.Done = x.tracer.now()
	}
	if x.rec.Ranks > 0 {
		x.rec.Collective = s.Seq
	}
	if x.last == nil || !x.finished(x) {
		x.tell(x, false)
	}
}
