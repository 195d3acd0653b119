package gpu

import (
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu/internal/wake"
	"github.com/puregpu/puregpu/runtime/gpu/internal/work"
)

// Device times are those of timing events in the stream, one in front of the work and one behind it. They are asked for when the work has
// been passed: those of a Timing by who wants to know, those of a trace by who takes its records, on a bound thread, so that no submission
// waits for the driver's answer. To record or to ask may fail, and there may be no events left: then times are missing, and nothing else.
//
// The device's clock is compared with the host's by events in a stream that has nothing else, recorded and asked for until they are reached:
// each lies between two times of the host. The narrowest counts. Times of a trace are those since such an event, with the drift that
// some of them show.

// A timerPair is the timing events around a piece of work.
type timerPair struct {
	begin, end driver.Event
	bad        bool // the second has not been recorded
	loose      bool // the stream may not have passed the first
	next       *timerPair
}

// commandTimes are those of a command of a recording.
type commandTimes struct {
	timers  *timerPair // nil if there were none
	command int
	op      work.Kind
	kernel  string
	grid    [3]uint32
	block   [3]uint32
	bytes   uint64
}

// mostPairs is how many pairs of timing events a device has at the most. It begins with some for each of [Options].Events, and makes as many as
// it has when they have not been enough.
const mostPairs = 1 << 14

// deviceTimes are the timing events of a device, and what is to be asked about them.
type deviceTimes struct {
	mu    sync.Mutex // a leaf
	free  *timerPair
	done  *span // whose times are to be asked for, the last first
	left  int   // of the free ones
	low   int   // of how many left on the reader is to make haste
	short bool  // there are fewer; then more are made

	askMu  sync.Mutex // one at a time asks; protects what follows
	pairs  []*timerPair
	doubt  []*timerPair // not known to be passed
	clock  deviceClock
	closed bool
}

// timesOf returns of what the device notes times.
func (d *Device) timesOf() TraceTimes {
	if d.opt.Tracer == nil || d.timers == nil {
		return NoTimes
	}
	return d.opt.Tracer.opt.Times
}

// take takes a pair, or returns nil.
func (t *deviceTimes) take(tracer *Tracer) *timerPair {
	t.mu.Lock()
	p := t.free
	if p != nil {
		t.free, p.next = p.next, nil
		t.left--
	}
	hasten := t.left < t.low && !t.short
	t.short = t.short || hasten
	t.mu.Unlock()
	if hasten {
		wake.Nudge(tracer.soon)
	}
	return p
}

func (t *deviceTimes) put(p *timerPair) {
	t.mu.Lock()
	p.next, t.free = t.free, p
	t.left++
	t.mu.Unlock()
}

// finished adds a span whose times are to be asked for.
func (t *deviceTimes) finished(x *span) {
	t.mu.Lock()
	x.next, t.done = t.done, x
	t.mu.Unlock()
}

// begun is called right before the native calls of a submission, with its timeline's mu held.
func (x *span) begun(tl *timeline) {
	if x == nil {
		return
	}
	if x.timing != nil && x.edges&noBegin == 0 {
		x.timing.record(tl, x.timing.timers.begin, notedBegin)
	}
	if x.tracer == nil {
		return
	}
	x.rec.Issued = x.tracer.now()
	if tl.dev.timesOf() == NoTimes {
		return
	}
	if x.timers = tl.dev.beginTimes(tl); x.timers == nil {
		x.untimed()
	}
}

// ended is called right behind them, and told whether the stream has got any.
func (x *span) ended(tl *timeline, some bool) {
	if x == nil {
		return
	}
	if x.timing != nil && some && x.edges&noEnd == 0 {
		x.timing.record(tl, x.timing.timers.end, notedEnd)
	}
	if x.timers != nil {
		if x.timers.ended(tl, some); x.timers.bad {
			x.untimed()
		}
	}
	if !some && (x.timers != nil || x.timing != nil) {
		tl.loose = true
	}
}

// untimed notes that device times are missing.
func (x *span) untimed() {
	if !x.rec.Untimed {
		x.rec.Untimed = true
		x.tracer.untimed.Add(1)
	}
}

// commandBegun is begun of a command of a recording.
func (x *span) commandBegun(tl *timeline, c *CommandBuffer, i int) {
	if x == nil || tl.dev.timesOf() != CommandTimes {
		return
	}
	cmd := c.cmds.at(i)
	if cmd.op.Kind == work.Barrier || cmd.op.Kind == work.Nothing || cmd.op.Kind == work.Timestamp {
		return
	}
	t := commandTimes{timers: tl.dev.beginTimes(tl), command: i, op: cmd.op.Kind, bytes: cmd.op.Bytes()}
	if cmd.op.Kind == work.Dispatch {
		t.grid, t.block, t.kernel, t.bytes = cmd.launch.Grid, cmd.launch.Block, c.kernels[cmd.launch.Function], 0
	}
	x.commands = append(x.commands, t)
}

// commandEnded is ended of that command.
func (x *span) commandEnded(tl *timeline, i int, some bool) {
	if x == nil || len(x.commands) == 0 {
		return
	}
	if c := &x.commands[len(x.commands)-1]; c.command == i && c.timers != nil {
		c.timers.ended(tl, some)
	}
}

// beginTimes records the first event of a pair, and returns that, or nil.
func (d *Device) beginTimes(tl *timeline) *timerPair {
	p := d.times.take(d.opt.Tracer)
	if p != nil && d.drv.Record(p.begin, tl.h) != nil {
		d.times.put(p)
		p = nil
	}
	return p
}

// ended records the second event, if there is work between them.
func (p *timerPair) ended(tl *timeline, some bool) {
	p.bad = !some || tl.dev.drv.Record(p.end, tl.h) != nil
}

// askTimes asks the device for the times of what it has done, and makes more events if there were too few. It waits for a bound thread.
func (d *Device) askTimes() {
	if d.timesOf() == NoTimes {
		return
	}
	t := &d.times
	t.mu.Lock()
	idle := t.done == nil && !t.short
	t.mu.Unlock()
	if !idle {
		d.do(func() error { t.ask(d, true); return nil }) // a device that gives everything back asks itself
	}
}

// ask makes records of the spans whose times are to be asked for. It runs on a bound thread.
func (t *deviceTimes) ask(d *Device, goesOn bool) {
	t.askMu.Lock()
	defer t.askMu.Unlock()
	if t.closed {
		return
	}
	t.mu.Lock()
	var first *span
	for x := t.done; x != nil; {
		next := x.next
		x.next, first, x = first, x, next
	}
	t.done = nil
	short := t.short
	t.mu.Unlock()
	if goesOn {
		t.clock.compare(d)
	}
	for x := first; x != nil; {
		next := x.next
		x.next = nil
		t.tell(d, x)
		x = next
	}
	if goesOn && short {
		t.make(d, len(t.pairs))
	}
	doubt := t.doubt
	t.doubt = nil
	for _, p := range doubt {
		t.giveBack(d, p)
	}
}

// make makes so many pairs, as far as the driver does and there may be.
func (t *deviceTimes) make(d *Device, n int) {
	defer func() {
		t.mu.Lock()
		t.low, t.short = len(t.pairs)/2, false
		t.mu.Unlock()
	}()
	for n = min(n, mostPairs-len(t.pairs)); n > 0; n-- {
		p := &timerPair{}
		var err error
		if p.begin, err = d.timers.NewTimer(); err != nil {
			return
		}
		t.pairs = append(t.pairs, p)
		if p.end, err = d.timers.NewTimer(); err != nil {
			return
		}
		t.put(p)
	}
}

// giveBack has a pair used again, once the stream has passed it.
func (t *deviceTimes) giveBack(d *Device, p *timerPair) {
	if p.loose {
		if done, err := d.drv.Query(p.begin); !done || err != nil {
			t.doubt = append(t.doubt, p)
			return
		}
	}
	p.loose, p.bad = false, false
	t.put(p)
}

// tell makes the records of a span.
func (t *deviceTimes) tell(d *Device, x *span) {
	r := &x.rec
	p, loose := x.timers, false
	if p != nil {
		if loose = p.loose; !r.Untimed && (loose || !t.place(d, r, p)) {
			x.untimed()
		}
	}
	x.tracer.push(r)
	for i := range x.commands {
		c := &x.commands[i]
		y := TraceRecord{Kind: TraceCommand, ID: r.ID, Device: r.Device, Queue: r.Queue, Op: c.op.String(), Label: r.Label, Kernel: c.kernel, Bytes: c.bytes,
			Grid: c.grid, Block: c.block, Part: r.Part, Command: c.command, Submitted: r.Submitted, Issued: r.Issued, Done: r.Done}
		if c.timers == nil || r.Timed != DeviceTime || !y.within(d, r, p, c.timers) {
			y.Untimed = true
			x.tracer.untimed.Add(1)
		}
		if c.timers != nil {
			c.timers.loose = loose
			t.giveBack(d, c.timers)
		}
		x.tracer.push(&y)
	}
	if p != nil {
		t.giveBack(d, p)
	}
	d.putSpan(x)
}

// within puts the times of a command into its record, from those of its submission, and reports whether that could be.
func (r *TraceRecord) within(d *Device, of *TraceRecord, p, command *timerPair) bool {
	if command.bad {
		return false
	}
	after, err := d.timers.Elapsed(p.begin, command.begin)
	took, err2 := d.timers.Elapsed(command.begin, command.end)
	if err != nil || err2 != nil {
		return false
	}
	begun := min(of.Begun+max(after, 0), of.Ended)
	r.Timed, r.Begun, r.Ended, r.Within = DeviceTime, begun, min(begun+max(took, 0), of.Ended), of.Within
	return true
}

// place puts the times of a pair into a record, and reports whether that could be. The work cannot have begun before the host began to
// issue it, nor ended after the host has seen it done; where the clocks have been compared less exactly than that, both are moved.
func (t *deviceTimes) place(d *Device, r *TraceRecord, p *timerPair) bool {
	if p.bad {
		return false
	}
	took, err := d.timers.Elapsed(p.begin, p.end)
	if err != nil {
		return false
	}
	begun, within, ok := t.clock.at(d, p.begin)
	if !ok {
		return false
	}
	took = max(took, 0)
	ended := begun + took
	off := max(r.Issued-begun, ended-r.Done, 0)
	if off > within {
		return false
	}
	if off > 0 {
		d.opt.Tracer.clamped.Add(1)
		begun = max(min(begun, r.Done-took), r.Issued)
		ended = min(begun+took, r.Done)
	}
	r.Timed, r.Begun, r.Ended, r.Within = DeviceTime, begun, ended, within
	return true
}

// close tells what is left, and destroys all events. It runs on the device's thread, when nothing else does anything.
func (t *deviceTimes) close(d *Device) (errs []error) {
	t.ask(d, false)
	t.askMu.Lock()
	defer t.askMu.Unlock()
	t.closed = true
	var all []driver.Event
	for _, p := range t.pairs {
		all = append(all, p.begin, p.end)
	}
	for i := range t.clock.marks {
		all = append(all, t.clock.marks[i].event)
	}
	for _, h := range append(all, t.clock.spare) {
		if h != 0 {
			if err := d.insist(func() error { return d.drv.DestroyEvent(h) }); err != nil {
				errs = append(errs, err)
			}
		}
	}
	t.pairs, t.doubt, t.free, t.clock = nil, nil, nil, deviceClock{}
	return errs
}
