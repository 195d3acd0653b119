package gpu

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/wake"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Device times are those of timing events, which all events of a device are that notes times: a submission ends when its own event is reached, and it
// begins when that of the submission in front of it is, if the stream goes from that to it. Where the stream has to wait, or may have been idle, it
// begins at one more event. They are asked for when the work has been passed: those of a Timing by who wants to know, those of a trace by who takes its
// records, on a bound thread, so that no submission waits for the driver's answer. To record or to ask may fail, and there may be no events left:
// then times are missing, and nothing else.

// An event that a stream without work passes is reached at once. So the time between the events of some work is longer than
// the work took if the stream ran dry in front of the work, while the host was still giving it, or behind the work, before the
// host recorded the event. The host's times tell whether that may be: see deviceClock.between.

// commandTimes are those of a command of a recording.
type commandTimes struct {
	begin   *engine.Event // nil if there was none
	end     *engine.Event // nil if the stream has got nothing of the command
	given   hostTimes
	command int
	op      work.Kind
	kernel  string
	grid    [3]uint32
	block   [3]uint32
	bytes   uint64
	times   betweenTimes
}

// hostTimes are when the host gave a stream some work.
type hostTimes struct {
	issued time.Duration // it began to
	first  time.Duration // the stream had the first of the work
	all    time.Duration // the stream had all of it
	closed time.Duration // the stream had the event behind it
}

const (
	// mostUnasked is how many submissions there are at the most whose times are to be asked for.
	mostUnasked = 1 << 13

	// atOnce is how long after the host was through with giving a stream some work what it submits next begins where that ends. Who submits one thing
	// after the other takes less for each; where the stream was idle in between all the same, it was for no longer.
	atOnce = 10 * time.Microsecond
)

// deviceTimes are what a device is to be asked about for a trace.
type deviceTimes struct {
	mu      sync.Mutex      // a leaf
	done    *span           // whose times are to be asked for, the last first
	doubt   []*engine.Event // of work that was refused, not known to be passed
	unasked atomic.Int32

	askMu  sync.Mutex // one at a time asks; protects what follows
	clock  deviceClock
	closed bool
}

// timesOf returns of what the device notes times.
func (d *Device) timesOf() TraceTimes {
	if d.opt.Tracer == nil || d.faces.timers == nil {
		return NoTimes
	}
	return d.opt.Tracer.opt.Times
}

// prepareEvents says how many events the device's pool has at first, and whether they note times. Where times
// are noted there are more, since events are in use until somebody has asked for their times. Times of commands
// take two events each, and the driver's calls that make more events get in the way of those that issue
// commands: all are made at once.
func (d *Device) prepareEvents() {
	first, timers := d.opt.Events, d.faces.timers
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

// finished adds a span whose times are to be asked for, and has the reader make haste where many are.
func (t *deviceTimes) finished(x *span) {
	t.mu.Lock()
	x.next, t.done = t.done, x
	t.mu.Unlock()
	if t.unasked.Add(1) == mostUnasked/2 {
		wake.Nudge(x.tracer.soon)
	}
}

// Begins is called right before the native calls of a submission. See observer.
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
	if deviceOf(tl).timesOf() == NoTimes {
		return
	}
	if deviceOf(tl).times.unasked.Load() >= mostUnasked {
		return
	}
	calls := kind == work.Execute || kind == work.Collect || kind == work.Native // may take the host long
	if !waits && !calls && !tl.Adopted {
		x.begin = tl.InFront(x.rec.Issued)
	}
	if x.shared = x.begin != nil; !x.shared {
		x.begin = recordTime(tl)
	}
}

// recordTime has the stream pass an event, which it returns, if there is one to spare. The caller holds mu.
func recordTime(tl *engine.Timeline) *engine.Event {
	e := tl.Device.Events.Spare()
	if e == nil {
		return nil
	}
	if tl.Device.Native.Record(e.Handle, tl.Stream) != nil {
		e.Drop()
		return nil
	}
	e.AskedBy = 0
	return e
}

// Begun is called right behind them. See observer.
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
		x.letGoEvents(&deviceOf(tl).times, true)
	}
}

// Timed reports whether there is to be an event behind the submission, for its times.
func (x *span) Timed() bool { return x.begin != nil }

// EventBehind returns the event behind the submission, held, unless the stream may have been idle behind it.
func (x *span) EventBehind(now time.Duration) *engine.Event {
	if x.last == nil || now-x.given.all > atOnce {
		return nil
	}
	x.last.Hold()
	return x.last
}

// Recorded notes that an event has been recorded behind the submission.
func (x *span) Recorded(e *engine.Event) {
	if x.begin == nil {
		return
	}
	e.AskedBy = 0
	e.Hold()
	x.last = e
	x.given.closed = x.tracer.now()
}

// commandBegun is begun of a command of a recording.
func (x *span) commandBegun(tl *engine.Timeline, c *CommandBuffer, i int) {
	if x == nil || deviceOf(tl).timesOf() != CommandTimes {
		return
	}
	cmd := c.cmds.at(i)
	if cmd.op.Kind == work.Barrier || cmd.op.Kind == work.Nothing || cmd.op.Kind == work.Timestamp {
		return
	}
	t := commandTimes{given: hostTimes{issued: x.tracer.now()}, begin: recordTime(tl), command: i, op: cmd.op.Kind, bytes: cmd.op.Bytes()}
	if cmd.op.Kind == work.Dispatch {
		t.grid, t.block, t.kernel, t.bytes = cmd.launch.Grid, cmd.launch.Block, c.kernels[cmd.launch.Function], 0
	}
	x.commands = append(x.commands, t)
}

// commandEnded is ended of a command of a recording. What a native function gives the stream, and when, is not known until the function returns.
func (x *span) commandEnded(tl *engine.Timeline, kind work.Kind, i int, some bool) {
	if x == nil || x.begin == nil || !some {
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

// letGoEvents lets go of the events. The stream may not have passed those that were recorded for work which it has got nothing of: where events cannot be
// recorded anew before that, nobody else may have them.
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

// askTimes asks the device for the times of what it has done. It waits for a bound thread.
func (d *Device) askTimes() {
	if d.timesOf() == NoTimes {
		return
	}
	t := &d.times
	t.mu.Lock()
	idle := t.done == nil && len(t.doubt) == 0
	t.mu.Unlock()
	if !idle {
		d.native.Do(func() error { t.ask(d, true); return nil }) // a device that gives everything back asks itself
	}
}

// ask makes records of the spans whose times are to be asked for, as soon as something is known of the device's clock. It runs on a bound thread.
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

// tell makes the records of a span, and lets go of that. If there is an event behind the work, the caller holds askMu.
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
		} else if c.times.begun < r.Begun && c.times.ended > r.Begun { // a command lies in front of Begun or behind it as a whole
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

// betweenTimes are when the device was at some work, on the host's clock.
type betweenTimes struct {
	begun, ended, within, early time.Duration // as of TraceRecord
	ok                          bool
}

// between returns when the device was at the work between two events that it has reached. The event in front may be shared: it
// is the one behind other work.
func (c *deviceClock) between(d *Device, front, behind *engine.Event, shared bool, h hostTimes) (b betweenTimes) {
	begun, _, ok := c.at(d, front)
	ended, within, ok2 := c.at(d, behind)
	if !ok || !ok2 {
		return b
	}
	return workBetween(begun, max(ended, begun), within, shared, h)
}

// workBetween returns when the device was at the work between two events. They were reached at begun and ended, give or take
// within.
//
// If the stream had no other work, the event in front was reached before the stream had the work. The device began the work at
// some moment until the host had given the first of it. If this certainly was so, and for long, the time counts as one in which
// it is not known whether the device was at the work. Otherwise the time that this can have been is added to the margin: the
// event in front may have been reached earlier than it seems. Likewise the event behind may have been reached late because the
// host recorded it late, which is added to the margin.
func workBetween(begun, ended, within time.Duration, shared bool, h hostTimes) betweenTimes {
	took := ended - begun
	dry := begun+within < h.first
	since := h.issued // the earliest moment of which begun may wrongly say that the device was at the work
	if shared && !dry {
		since -= atOnce // see endInFront
	}
	since = max(since, begun-within)
	early := min(max(h.first-since, 0), took) // at most, in front of the work
	late := time.Duration(0)                  // at most, behind it
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

// place puts the times of a span into its record, and reports whether that could be. The work cannot have begun before the host began to
// issue it, nor ended after the host has seen it done; where the clocks have been compared less exactly than that, both are moved.
func (t *deviceTimes) place(d *Device, x *span) bool {
	r := &x.rec
	b := t.clock.between(d, x.begin, x.last, x.shared, x.given)
	if !b.ok {
		return false
	}
	took := b.ended - b.begun
	off := max(r.Issued-b.begun, b.ended-r.Done, 0)
	if off > b.within || r.Issued > r.Done { // it had failed before it was issued
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

// placeCommand finds the times of a command of a span, which has been placed, and reports whether that could be.
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

// close tells what is left, and destroys the events of the clock. It runs on the device's thread, when nothing else does anything.
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
