package gpu

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/wake"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Device times come from timing events. If times are recorded, all events of a device are timing
// events. A submission ends when its own event is reached. It begins when the event of the
// submission in front is reached, if the stream continues directly from that one to this. If the
// stream has to wait, or may have been idle, an additional event marks the beginning. The times are
// queried after the stream has passed the work: a Timing's by the caller of Duration, a trace's by
// the reader of its records, on a bound thread. So no submission waits for the driver's answer.
// Recording or querying an event may fail, and there may be no spare event. Then only the times are
// missing.

// An event is reached at once if the stream has no work in front of it. So the time between two
// events is longer than the work took if the stream ran dry: in front of the work, while the host
// was still giving it, or behind the work, before the host recorded the event. The host's times
// tell whether that is possible: see deviceClock.between.

// commandTimes are the events and times of one command of a recording.
type commandTimes struct {
	begin   *engine.Event // nil if none could be recorded
	end     *engine.Event // nil if the stream got nothing of the command
	given   hostTimes
	command int
	op      work.Kind
	kernel  string
	grid    [3]uint32
	block   [3]uint32
	bytes   uint64
	times   betweenTimes
}

// hostTimes say when the host gave a stream some work.
type hostTimes struct {
	issued time.Duration // the host began to give the work
	first  time.Duration // the stream had the first of the work
	all    time.Duration // the stream had all of the work
	closed time.Duration // the stream had the event behind the work
}

const (
	// mostUnasked is the highest number of submissions whose times may still have to be queried.
	// Above it, submissions are not timed.
	mostUnasked = 1 << 13

	// If the host submits the next work within atOnce of the last, the next work begins where the
	// last one ends. A host that submits one operation after the other takes less time than this
	// for each. If the stream was idle in between, it was idle for at most this time.
	atOnce = 10 * time.Microsecond
)

// deviceTimes are the spans and events that must be queried for a trace.
type deviceTimes struct {
	mu      sync.Mutex      // a leaf; protects done and doubt
	done    *span           // spans whose times must be queried, the latest first
	doubt   []*engine.Event // events of refused work that the stream may not have passed yet
	unasked atomic.Int32

	askMu  sync.Mutex // serializes queries; protects clock and closed
	clock  deviceClock
	closed bool
}

// timesOf returns which times the device records.
func (d *Device) timesOf() TraceTimes {
	if d.opt.Tracer == nil || d.faces.Timers == nil {
		return NoTimes
	}
	return d.opt.Tracer.opt.Times
}

// prepareEvents sets how many events the device's pool has at first, and whether they are timing
// events. With times there are more events, because an event stays in use until its time has been
// queried. Times of commands take two events for each command. Driver calls that make more events
// would delay the calls that issue commands, so all are made at once.
func (d *Device) prepareEvents() {
	first, timers := d.opt.Events, d.faces.Timers
	switch d.timesOf() {
	case NoTimes:
		timers = nil
	case SubmissionTimes:
		first = max(first, min(16*first, engine.MostInUse/8))
	case CommandTimes:
		first = max(first, min(512*first, engine.MostInUse/2))
	}
	d.native.Events.Configure(first, d.opt.Events, timers)
}

// finished adds a span whose times must be queried. If many are waiting, it wakes the reader.
func (t *deviceTimes) finished(x *span) {
	t.mu.Lock()
	x.next, t.done = t.done, x
	t.mu.Unlock()
	if t.unasked.Add(1) == mostUnasked/2 {
		wake.Nudge(x.tracer.soon)
	}
}

// Begins is called right before the native calls of a submission. It implements the engine's
// observer.
func (x *span) Begins(s *engine.Submission, waits bool) {
	tl, kind := s.Timeline, s.Op.Kind
	if x.timing != nil && x.edges&noBegin == 0 {
		x.timing.record(tl, x.timing.before, notedBegin)
	}
	if x.tracer == nil {
		return
	}
	x.rec.Issued = x.tracer.now()
	x.given = hostTimes{issued: x.rec.Issued}
	if deviceOf(tl.Device).timesOf() == NoTimes {
		return
	}
	if deviceOf(tl.Device).times.unasked.Load() >= mostUnasked {
		return
	}
	// These may take the host long.
	calls := kind == work.Execute || kind == work.Collect || kind == work.Native
	if !waits && !calls && !tl.Adopted {
		x.begin = tl.InFront(x.rec.Issued)
	}
	if x.shared = x.begin != nil; !x.shared {
		x.begin = recordTime(tl)
	}
}

// recordTime records a spare event in the stream and returns it, or nil if there is none. The
// caller holds the timeline's mu.
func recordTime(tl *engine.Timeline) *engine.Event {
	e := tl.Device.Events.Spare()
	if e == nil {
		return nil
	}
	if tl.Device.Native.Record(e.Handle, tl.Stream) != nil {
		e.Drop()
		return nil
	}
	e.SinceRef = 0
	return e
}

// Begun is called right after the native calls of a submission. some reports whether the stream got
// any work.
func (x *span) Begun(s *engine.Submission, some bool) {
	tl := s.Timeline
	if x.timing != nil && some && x.edges&noEnd == 0 {
		x.timing.record(tl, x.timing.behind, notedEnd)
	}
	if !some {
		x.timing.note(notedNone)
	}
	if x.begin != nil {
		x.given.all = x.tracer.now()
		if x.given.first == 0 {
			x.given.first = x.given.all
		}
	}
	if !some {
		x.letGoEvents(&deviceOf(tl.Device).times, true)
	}
}

// Timed reports whether the submission needs an event behind it for its times.
func (x *span) Timed() bool { return x.begin != nil }

// EventBehind returns the event behind the submission, with a reference for the caller. It returns
// nil if the stream may have been idle since.
func (x *span) EventBehind(now time.Duration) *engine.Event {
	if x.last == nil || now-x.given.all > atOnce {
		return nil
	}
	x.last.Hold()
	return x.last
}

// Recorded notes the event that has been recorded behind the submission.
func (x *span) Recorded(e *engine.Event) {
	if x.begin == nil {
		return
	}
	e.SinceRef = 0
	e.Hold()
	x.last = e
	x.given.closed = x.tracer.now()
}

// Begin is called before the native calls of a command of a recording, and records its first event.
func (x *span) Begin(tl *engine.Timeline, i int, c recording.Info) {
	if deviceOf(tl.Device).timesOf() != CommandTimes {
		return
	}
	if c.Kind == work.Barrier || c.Kind == work.Nothing || c.Kind == work.Timestamp {
		return
	}
	t := commandTimes{given: hostTimes{issued: x.tracer.now()}, begin: recordTime(tl), command: i, op: c.Kind, bytes: c.Bytes,
		grid: c.Grid, block: c.Block, kernel: c.Kernel}
	x.commands = append(x.commands, t)
}

// End is called after the native calls of a command of a recording. When a native function gives work
// to the stream is unknown until the function returns.
func (x *span) End(tl *engine.Timeline, kind work.Kind, i int, some bool) {
	if x.begin == nil || !some {
		return
	}
	if x.given.first == 0 || kind == work.Native {
		x.given.first = x.tracer.now()
	}
	if len(x.commands) == 0 {
		return
	}
	if c := &x.commands[len(x.commands)-1]; c.command == i && c.begin != nil {
		now := x.tracer.now()
		c.end = recordTime(tl)
		c.given.first, c.given.all, c.given.closed = now, now, x.tracer.now()
	}
}

// letGoEvents releases the span's events. With loose, the stream got none of the work, so it may
// not have passed the events yet. Then they go to doubt: an event must not be reused until it is
// passed, since some devices cannot record a pending event again.
func (x *span) letGoEvents(t *deviceTimes, loose bool) {
	drop := func(e *engine.Event, own bool) {
		switch {
		case e == nil:
		case own && loose:
			t.mu.Lock()
			t.doubt = append(t.doubt, e)
			t.mu.Unlock()
		default:
			e.Drop()
		}
	}
	drop(x.begin, !x.shared)
	drop(x.last, true)
	for i := range x.commands {
		drop(x.commands[i].begin, true)
		drop(x.commands[i].end, true)
	}
	clear(x.commands)
	x.begin, x.last, x.shared, x.commands = nil, nil, false, x.commands[:0]
}

// askTimes queries the device for the times of completed work. It waits for a bound thread.
func (d *Device) askTimes() {
	if d.timesOf() == NoTimes {
		return
	}
	t := &d.times
	t.mu.Lock()
	idle := t.done == nil && len(t.doubt) == 0
	t.mu.Unlock()
	if !idle {
		// A device that is closing calls ask itself.
		d.native.Do(func() error { t.ask(d, true); return nil })
	}
}

// ask makes records of the finished spans, once the device's clock has been compared with the
// host's. goesOn is false when the device closes: then it does not compare the clocks again. It
// runs on a bound thread.
func (t *deviceTimes) ask(d *Device, goesOn bool) {
	t.askMu.Lock()
	defer t.askMu.Unlock()
	if t.closed || goesOn && !t.clock.compare(d) {
		return
	}
	t.mu.Lock()
	var first *span
	for x := t.done; x != nil; {
		next := x.next
		x.next, first, x = first, x, next
	}
	doubt := t.doubt
	t.done, t.doubt = nil, nil
	t.mu.Unlock()
	for x := first; x != nil; {
		next := x.next
		x.next = nil
		t.unasked.Add(-1)
		t.tell(d, x)
		x = next
	}
	for i, e := range doubt {
		if done, err := d.native.Native.Query(e.Handle); !done || err != nil {
			t.mu.Lock()
			t.doubt = append(t.doubt, doubt[i:]...)
			t.mu.Unlock()
			break
		}
		e.Drop()
	}
}

// tell makes the records of a span and releases it. If the span has an event behind the work, the
// caller holds askMu.
func (t *deviceTimes) tell(d *Device, x *span) {
	r := &x.rec
	if x.last == nil {
		r.Untimed = d.timesOf() != NoTimes && r.Timed == NoTime && r.Issued > 0 && r.Err == nil
	} else {
		r.Untimed = !t.place(d, x)
	}
	if r.Untimed {
		x.tracer.untimed.Add(1)
	}
	for i := range x.commands {
		c := &x.commands[i]
		if r.Timed != DeviceTime || !t.placeCommand(d, x, c) {
			r.UntimedCommands++
		} else if c.times.begun < r.Begun && c.times.ended > r.Begun { // a command must lie entirely before or after Begun
			r.Early += c.times.ended - r.Begun
			r.Begun = c.times.ended
		}
	}
	x.tracer.untimedCmd.Add(uint64(r.UntimedCommands))
	x.tracer.push(r)
	for i := range x.commands {
		c := &x.commands[i]
		y := TraceRecord{Kind: TraceCommand, ID: r.ID, Device: r.Device, Queue: r.Queue, Op: c.op.String(), Label: r.Label, Kernel: c.kernel, Bytes: c.bytes,
			Grid: c.grid, Block: c.block, Part: r.Part, Command: c.command, Submitted: r.Submitted, Issued: c.given.issued, Done: r.Done}
		if c.times.ok {
			y.Timed, y.Begun, y.Ended, y.Within, y.Early = DeviceTime, c.times.begun, c.times.ended, c.times.within, c.times.early
		} else {
			y.Untimed = true
		}
		x.tracer.push(&y)
	}
	x.letGoEvents(t, false)
	d.putSpan(x)
}

// betweenTimes say when the device ran some work, on the host's clock.
type betweenTimes struct {
	begun, ended, within, early time.Duration // as in TraceRecord
	ok                          bool
}

// between returns when the device ran the work between two events that the device has reached. With
// shared, the event in front is the one behind other work.
func (c *deviceClock) between(d *Device, front, behind *engine.Event, shared bool, h hostTimes) (b betweenTimes) {
	begun, _, ok := c.at(d, front)
	ended, within, ok2 := c.at(d, behind)
	if !ok || !ok2 {
		return b
	}
	return workBetween(begun, max(ended, begun), within, shared, h)
}

// workBetween returns when the device ran the work between two events. The events were reached at
// begun and ended, give or take within.
//
// If the stream had no other work, the event in front was reached before the stream had the work.
// The device then began the work at an unknown moment, at the latest when the host had given it the
// first of the work. If the stream certainly was idle, and for long, that time becomes early: the
// device may or may not have been running the work. Otherwise the possible idle time is added to
// the margin, since the event in front may have been reached earlier than it seems. Likewise, the
// event behind may have been reached late because the host recorded it late. That time is added to
// the margin too.
func workBetween(begun, ended, within time.Duration, shared bool, h hostTimes) betweenTimes {
	took := ended - begun
	dry := begun+within < h.first
	since := h.issued // the earliest moment at which begun may wrongly place the start of the work
	if shared && !dry {
		since -= atOnce // see EventBehind
	}
	since = max(since, begun-within)
	early := min(max(h.first-since, 0), took) // the most by which begun may be early
	late := time.Duration(0)                  // the most by which ended may be late
	if ended-within <= h.closed {
		late = min(max(min(ended+within, h.closed)-max(begun-within, h.all), 0), took)
	}
	b := betweenTimes{ended: ended, ok: true}
	switch {
	case dry && min(h.first, ended)-max(begun, h.issued) > atOnce:
		b.early, begun, early = early, min(h.first, ended), 0
	case dry && shared:
		begun = min(h.first, ended)
	}
	b.begun, b.within = begun, within+early+late
	return b
}

// place writes the times of a span into its record, and reports whether that succeeded. The work
// cannot have begun before the host began to issue it, nor ended after the host saw it done. If the
// device times lie outside these bounds by no more than the clock comparison's margin, both are
// moved.
func (t *deviceTimes) place(d *Device, x *span) bool {
	r := &x.rec
	b := t.clock.between(d, x.begin, x.last, x.shared, x.given)
	if !b.ok {
		return false
	}
	took := b.ended - b.begun
	off := max(r.Issued-b.begun, b.ended-r.Done, 0)
	if off > b.within || r.Issued > r.Done { // the submission failed before it was issued
		return false
	}
	r.Begun, r.Ended = b.begun, b.ended
	if off > 0 {
		d.opt.Tracer.clamped.Add(1)
		r.Begun = max(min(b.begun, r.Done-took), r.Issued)
		r.Ended = min(r.Begun+took, r.Done)
	}
	r.Timed, r.Within, r.Early, x.moved = DeviceTime, b.within, min(b.early, r.Begun-r.Issued), r.Begun-b.begun
	return true
}

// placeCommand finds the times of a command of a placed span, and reports whether it found them.
func (t *deviceTimes) placeCommand(d *Device, x *span, c *commandTimes) bool {
	if c.begin == nil || c.end == nil {
		return false
	}
	of, b := &x.rec, &c.times
	if *b = t.clock.between(d, c.begin, c.end, false, c.given); !b.ok {
		return false
	}
	b.begun = min(max(b.begun+x.moved, of.Begun-of.Early), of.Ended)
	b.ended = min(max(b.ended+x.moved, b.begun), of.Ended)
	b.early = min(b.early, b.begun-(of.Begun-of.Early))
	b.within = max(b.within, of.Within)
	return true
}

// close makes records of the remaining spans, and destroys the events of the clock. It runs on the
// device's thread when nothing else uses the device.
func (t *deviceTimes) close(ctx context.Context, d *Device) (errs []error) {
	t.ask(d, false)
	t.askMu.Lock()
	defer t.askMu.Unlock()
	t.closed = true
	all := []driver.Event{t.clock.spare}
	for i := range t.clock.marks {
		all = append(all, t.clock.marks[i].event)
	}
	for _, h := range all {
		if h != 0 {
			if err := d.native.Insist(ctx, func() error { return d.native.Native.DestroyEvent(h) }); err != nil {
				errs = append(errs, err)
			}
		}
	}
	t.clock = deviceClock{}
	return errs
}
