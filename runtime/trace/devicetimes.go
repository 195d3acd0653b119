package trace

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/wake"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Device times come from timing events. If times are recorded, all events of a device are timing
// events. A submission ends when its own event is reached. If the stream goes directly from one
// submission to the next, that event also marks the beginning of the next submission. Otherwise an
// additional event marks the beginning (see span.Begins). No submission waits for the driver to
// return times: a bound thread queries them after the stream has passed the work, when the trace's
// records are read (askTimes). Recording or querying an event may fail, and there may be no spare
// event. In both cases only the times are missing.

// If a stream has no work in front of an event, the event is reached immediately. So if the stream
// ran dry, the time between two events is longer than the work took. The stream can run dry in
// front of the work, while the host is still giving the work. The stream can also run dry behind
// the work, before the host records the event. The host's times tell whether the stream may have
// run dry: see workBetween.

// commandTimes are the events and times of one command of a recording.
type commandTimes struct {
	observe.Command
	begin *engine.Event // nil if no event could be recorded
	end   *engine.Event // nil if begin is nil, the stream got no work, or recording failed
	given hostTimes
	times betweenTimes
}

// hostTimes are the times at which the host gave a stream a submission, or a command of a
// recording. The host does this by one or more calls of the driver.
type hostTimes struct {
	issued time.Duration // before the first call
	first  time.Duration // after the first call that gave the stream work
	all    time.Duration // after the last of these calls
	closed time.Duration // after the call that recorded the event behind the work
}

const (
	// While the times of mostUnasked or more ended submissions have not been queried yet, further
	// submissions are not timed.
	mostUnasked = 1 << 13

	// If the host issues work within atOnce after the previous work, the new work is taken to begin
	// where the previous work ends. If the stream was idle in between, it was idle for at most
	// atOnce.
	atOnce = 10 * time.Microsecond
)

// deviceTimes has a device's spans whose times must be queried, its events that must not be reused
// yet, and its clock.
type deviceTimes struct {
	mu      sync.Mutex      // protects done, doubt and stopped; no other lock is taken while it is held
	done    *span           // spans whose times must be queried, the latest first
	doubt   []*engine.Event // events of refused work; the stream may not have passed them yet
	stopped bool            // nothing is queried any more
	unasked atomic.Int32

	askMu sync.Mutex // serializes queries; protects clock and nodeTimes.room
	clock deviceClock
}

// TimesCommands reports whether the commands of recordings are timed.
func (o *observer) TimesCommands() bool { return o.times == CommandTimes }

// begin makes the device's events record times, and compares the clocks. Recording times needs more
// events, because an event stays in use until its time has been queried. Times of commands take two
// events for each command. Making an event would delay the call that issues a command, so events
// are made in advance.
func (o *observer) begin() {
	switch o.times {
	case SubmissionTimes:
		o.core.Events.RecordTimes(o.timers, 16, engine.MostInUse/8)
	case CommandTimes:
		o.core.Events.RecordTimes(o.timers, 512, engine.MostInUse/2)
	default:
		return
	}
	o.clock.compare(o)
}

// finished adds a span whose times must be queried. When there are mostUnasked/2 such spans,
// finished wakes the reader of the records (Tracer.Soon). It returns false if the device's times
// are no longer queried.
func (t *deviceTimes) finished(x *span) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	x.next, t.done = t.done, x
	if t.unasked.Add(1) == mostUnasked/2 {
		wake.Nudge(x.tracer.soon)
	}
	return true
}

// Begins records an event in front of the work, unless the event behind the previous submission can
// mark the beginning. If the submission is not timed, or the times of mostUnasked spans must still
// be queried, Begins records no event.
func (x *span) Begins(s *engine.Submission, waits bool) {
	tl := s.Timeline
	x.launchBegins(s)
	x.rec.Issued = x.tracer.now()
	x.given = hostTimes{issued: x.rec.Issued}
	if x.times == NoTimes || x.unasked.Load() >= mostUnasked {
		return
	}
	// The host may take long to give the stream executions, collectives and native work. So the
	// event behind the previous submission does not tell when such work begins.
	calls := x.kind == work.Execute || x.kind == work.Collect || x.kind == work.Native
	if !waits && !calls && !tl.Adopted {
		x.begin = tl.InFront(x.rec.Issued)
	}
	if x.shared = x.begin != nil; !x.shared {
		x.begin = tl.RecordTime()
	}
	s.Timed = x.begin != nil
}

// Begun keeps the time at which the host had given the stream all of the work, if the submission is
// timed. If the stream got no work, Begun releases the events.
func (x *span) Begun(s *engine.Submission, some bool) {
	x.launchEnds()
	if x.begin != nil {
		x.given.all = x.tracer.now()
		if x.given.first == 0 {
			x.given.first = x.given.all
		}
	}
	if !some {
		x.letGoEvents(true)
		s.Timed = false
	}
}

// EventBehind returns the event behind the submission, with a reference for the caller. It returns
// nil if no event was recorded. It also returns nil if the host gave the stream the last part of
// the work more than atOnce before now: after that work the stream may have been idle too long.
func (x *span) EventBehind(now time.Duration) *engine.Event {
	if x.last == nil || now-x.given.all > atOnce {
		return nil
	}
	x.last.Hold()
	return x.last
}

// Recorded keeps e, the event that has been recorded behind the submission.
func (x *span) Recorded(e *engine.Event) {
	if x.begin == nil {
		return
	}
	e.SinceRef = 0
	e.Hold()
	x.last = e
	x.given.closed = x.tracer.now()
}

// CommandBegins records the event in front of a command of a recording, if the command is timed.
func (x *span) CommandBegins(tl *engine.Timeline, c observe.Command) {
	if x.times != CommandTimes || c.Kind == work.Barrier || c.Kind == work.Nothing || c.Kind == work.Timestamp {
		return
	}
	issued := x.tracer.now()
	x.commands = append(x.commands, commandTimes{Command: c, given: hostTimes{issued: issued}, begin: tl.RecordTime()})
}

// CommandBegun does nothing if a command gave the stream no work, or if the submission is not
// timed. Otherwise it records the event behind the command, if the command is timed. For the first
// command that gave the stream work, CommandBegun also keeps the time, as the time of the
// submission's first work. A native function gives the stream work at an unknown moment, so after
// each native function CommandBegun replaces that time.
func (x *span) CommandBegun(tl *engine.Timeline, index int, kind work.Kind, some bool) {
	if x.begin == nil || !some {
		return
	}
	if x.given.first == 0 || kind == work.Native {
		x.given.first = x.tracer.now()
	}
	if len(x.commands) == 0 {
		return
	}
	if c := &x.commands[len(x.commands)-1]; c.Index == index && c.begin != nil {
		now := x.tracer.now()
		c.end = tl.RecordTime()
		c.given.first, c.given.all, c.given.closed = now, now, x.tracer.now()
	}
}

// letGoEvents releases the span's events. If the parameter loose is set, the stream got none of the
// work and may not have passed the span's own events yet. In that case letGoEvents keeps the span's
// own events in the list deviceTimes.doubt. An event must not be reused until the stream has passed
// the event, since some devices cannot record a pending event again.
func (x *span) letGoEvents(loose bool) {
	drop := func(e *engine.Event, own bool) {
		switch {
		case e == nil:
		case own && loose:
			x.mu.Lock()
			x.doubt = append(x.doubt, e)
			x.mu.Unlock()
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

// askTimes has a bound thread query the device for the times of completed work, and waits until the
// thread has done this. askTimes also makes records of nodes of graphs (askNodes).
func (o *observer) askTimes() {
	if !o.idle() {
		// Do fails if the device is ending. In that case observer.Stopped queries the times.
		o.core.Do(func() error {
			o.askMu.Lock()
			defer o.askMu.Unlock()
			o.ask(false)
			return nil
		})
	}
	if o.nodeTimer != nil {
		o.askMu.Lock()
		defer o.askMu.Unlock()
		o.askNodes(false)
	}
}

// idle reports whether nothing must be queried.
func (t *deviceTimes) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done == nil && len(t.doubt) == 0
}

// ask queries the times of the finished spans and makes the records of these spans. Unless the
// parameter last is set, ask makes no records before the clocks have been compared (see
// deviceClock.compare). If last is set, spans that finish later have no times. ask runs on a bound
// thread. The caller holds observer.askMu.
func (o *observer) ask(last bool) {
	if !o.idle() && !o.clock.compare(o) && !last {
		return
	}
	o.mu.Lock()
	var first *span
	for x := o.done; x != nil; {
		next := x.next
		x.next, first, x = first, x, next
	}
	doubt := o.doubt
	o.done, o.doubt, o.stopped = nil, nil, o.stopped || last
	o.mu.Unlock()
	for x := first; x != nil; {
		next := x.next
		x.next = nil
		o.unasked.Add(-1)
		o.tell(x, true)
		x = next
	}
	for i, e := range doubt {
		if done, err := o.core.Native.Query(e.Handle); !done || err != nil {
			o.mu.Lock()
			o.doubt = append(o.doubt, doubt[i:]...)
			o.mu.Unlock()
			break
		}
		e.Drop()
	}
}

// Stopped makes records of the finished spans and of nodes of graphs, and destroys the clock.
func (o *observer) Stopped(ctx context.Context) {
	o.askMu.Lock()
	defer o.askMu.Unlock()
	o.ask(true)
	o.askNodes(true)
	o.clock.destroy(ctx, o)
}

// tell makes the records of a span and releases the span. If the parameter ask is set, tell queries
// the times, and the caller holds observer.askMu.
func (o *observer) tell(x *span, ask bool) {
	r, t := &x.rec, o.tracer
	if ask {
		r.Untimed = !o.place(x)
	} else {
		r.Untimed = o.times != NoTimes && r.Timed == NoTime && r.Issued > 0 && r.Err == nil
	}
	if r.Untimed {
		t.untimed.Add(1)
	}
	for i := range x.commands {
		c := &x.commands[i]
		if r.Timed != DeviceTime || !o.placeCommand(x, c) {
			r.UntimedCommands++
		} else if c.times.begun < r.Begun && c.times.ended > r.Begun { // no command may lie partly before Record.Begun
			r.Early += c.times.ended - r.Begun
			r.Begun = c.times.ended
		}
	}
	t.untimedCmd.Add(uint64(r.UntimedCommands))
	t.push(r)
	for i := range x.commands {
		c := &x.commands[i]
		y := Record{Kind: KindCommand, ID: r.ID, Device: r.Device, Queue: r.Queue, Op: c.Kind.String(), Label: cmp.Or(c.Label, r.Label), Kernel: c.Kernel, Bytes: c.Bytes,
			Grid: c.Grid, Block: c.Block, Part: r.Part, Command: c.Index, Recording: r.Recording, recorded: r.recorded, Submitted: r.Submitted, Issued: c.given.issued, Done: r.Done}
		if c.times.ok {
			y.Timed, y.Begun, y.Ended, y.Within, y.Early = DeviceTime, c.times.begun, c.times.ended, c.times.within, c.times.early
		} else {
			y.Untimed = true
		}
		t.push(&y)
	}
	x.letGoEvents(false)
	x.put()
}

// betweenTimes say when the device ran some work, on the host's clock.
type betweenTimes struct {
	begun, ended, within, early time.Duration // like the fields of Record with these names
	ok                          bool
}

// between returns when the device ran the work between two events that the device has reached. If
// the parameter shared is set, the event in front is also the event behind other work.
func (c *deviceClock) between(o *observer, front, behind *engine.Event, shared bool, h hostTimes) (b betweenTimes) {
	begun, _, ok := c.at(o, front)
	ended, within, ok2 := c.at(o, behind)
	if !ok || !ok2 {
		return b
	}
	return workBetween(begun, max(ended, begun), within, shared, h)
}

// workBetween returns when the device ran the work between two events. The parameters begun and
// ended are the times at which the events were reached, and within is the margin of these times.
//
// If the stream was idle, it reached the event in front before it had the work. In that case the
// device began the work at an unknown moment, at the latest when the stream had got the first part
// of the work (h.first). If the stream may have been idle for more than atOnce until h.first, the
// result says that the work began at h.first, and the result's field early is how much earlier the
// work may have begun. Otherwise this uncertainty is added to the margin.
//
// The event behind the work may have been reached late, because the host recorded that event late.
// This possible delay is added to the margin too.
func workBetween(begun, ended, within time.Duration, shared bool, h hostTimes) betweenTimes {
	took := ended - begun
	dry := begun+within < h.first
	since := h.issued // the work began at h.issued or later, even if begun is before h.issued
	if shared && !dry {
		since -= atOnce // the shared event may be reached up to atOnce before h.issued: see span.EventBehind
	}
	since = max(since, begun-within)
	early := min(max(h.first-since, 0), took) // by how much the beginning is uncertain
	late := time.Duration(0)                  // by how much the end is uncertain
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
// device times lie outside these bounds by at most their margin, place moves them inside.
func (o *observer) place(x *span) bool {
	r := &x.rec
	b := o.clock.between(o, x.begin, x.last, x.shared, x.given)
	if !b.ok {
		return false
	}
	took := b.ended - b.begun
	off := max(r.Issued-b.begun, b.ended-r.Done, 0)
	// If the submission failed before it was issued, r.Issued is above r.Done.
	if off > b.within || r.Issued > r.Done {
		return false
	}
	r.Begun, r.Ended = b.begun, b.ended
	if off > 0 {
		o.tracer.clamped.Add(1)
		r.Begun = max(min(b.begun, r.Done-took), r.Issued)
		r.Ended = min(r.Begun+took, r.Done)
	}
	r.Timed, r.Within, r.Early, x.moved = DeviceTime, b.within, min(b.early, r.Begun-r.Issued), r.Begun-b.begun
	return true
}

// placeCommand finds the times of a command of x, and reports whether it found them. place(x) must
// have succeeded before.
func (o *observer) placeCommand(x *span, c *commandTimes) bool {
	if c.begin == nil || c.end == nil {
		return false
	}
	of, b := &x.rec, &c.times
	if *b = o.clock.between(o, c.begin, c.end, false, c.given); !b.ok {
		return false
	}
	b.begun = min(max(b.begun+x.moved, of.Begun-of.Early), of.Ended)
	b.ended = min(max(b.ended+x.moved, b.begun), of.Ended)
	b.early = min(b.early, b.begun-(of.Begun-of.Early))
	b.within = max(b.within, of.Within)
	return true
}
