package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/puregpu/puregpu/internal/traceformat"
)

// unknown is a moment that the trace does not have.
const unknown traceformat.Time = -1

// A trace has the events of a file by subject. Tracks, submissions and slices refer to each other
// by index.
type trace struct {
	programs []program
	devices  []device // by program, and by index on the machine
	tracks   []track  // in display order
	subs     []submission
	slices   []slice // by begin
	counters []counter
	instants []instant
	edges    []edge   // the dependencies
	nodes    []string // sources of the times of graphs' commands
	lacks    []string // why there is no such source

	win        window
	begin, end traceformat.Time // earliest begin and latest end of the kept events
	cut        bool             // the file has no end
	dropped    uint64           // records that the trace lacks
	arrowless  uint64           // waits that lack an arrow, or may lack one
}

// A program is the writer of one trace: a rank.
type program struct {
	pid  int64 // first of its process ids
	args traceformat.Args
}

type device struct {
	pid     int64
	program int
	args    traceformat.Args
}

type track struct {
	pid, tid    int64
	kind, title string
	process     string
	device      int // index of the device, or -1 for a track of the host
	program     int
	order       [2]int // sort keys of the process and of the track
}

// A submission is work of a queue. Moments that the trace does not have are unknown.
type submission struct {
	id      uint64
	queue   int // index of the queue's track
	device  int // index of the device, or -1
	program int
	// The name of the device's slice, else the label, kernel or operation.
	title                                 string
	args                                  traceformat.Args
	parked                                bool
	submitted, issued, begun, ended, done traceformat.Time
	slice                                 int // index of the device's slice, or -1
	// The submission counts as taking no time: it has no device times, although other work of its
	// device has.
	instant bool
	// The submission should have device times, but has none.
	untimed         bool
	untimedCommands int // number of commands without times
	// The time in begun may be too late, by up to this much.
	early traceformat.Time
	err   string
}

// start returns the time when a submission began. If that is unknown, it returns the time of issue,
// or else the time of submission.
func (s *submission) start() traceformat.Time {
	switch {
	case s.begun != unknown:
		return s.begun
	case s.issued != unknown:
		return s.issued
	}
	return s.submitted
}

// finish returns the time when a submission ended. If that is unknown, it returns the time of issue
// for an instant submission, else the latest known moment.
func (s *submission) finish() traceformat.Time {
	switch {
	case s.ended != unknown:
		return s.ended
	case s.instant:
		return s.issued
	}
	return s.last()
}

// last returns the latest known moment of a submission.
func (s *submission) last() traceformat.Time {
	return max(s.submitted, s.issued, s.ended, s.done)
}

type slice struct {
	track      int
	cat        string
	name       string
	begin, end traceformat.Time
	sub        int // index of the submission, or -1
	args       *traceformat.Args
}

// An edge leads from a signal to its wait. Nodes are submissions and slices of the host.
type edge struct{ from, to node }

// A node is the index of a submission or, if host is set, of a slice of the host.
type node struct {
	host  bool
	index int
}

type counter struct {
	pid    int64
	name   string
	time   traceformat.Time
	series []traceformat.Series
}

type instant struct {
	pid  int64
	cat  string
	name string
	time traceformat.Time
	args traceformat.Args
}

// A window is the part of a trace to read.
type window struct {
	from, to  traceformat.Time
	maxEvents int
}

// clip returns the part of an interval in the window. The end of the result is not before its
// begin.
func (w window) clip(v interval) interval {
	v.begin = max(v.begin, w.from)
	return interval{v.begin, max(v.begin, min(v.end, w.to))}
}

var everything = window{0, 1<<63 - 1, 5_000_000}

var (
	errTooLong = errors.New("too many events")
	errNoPart  = errors.New("the trace has nothing in the part that -from and -to name")
)

type trackKey struct{ pid, tid int64 }

type commandKey struct {
	program   int
	recording uint64
	command   int
}

type subKey struct {
	program int
	id      uint64
}

// A loader makes a trace from events.
type loader struct {
	trace
	ours     bool              // puregpu wrote the trace
	names    map[string]string // one copy of each text
	programs map[int64]int
	devices  map[int64]int
	process  map[int64]string
	tracks   map[trackKey]int
	subs     map[subKey]int                   // -1 if submitted after the window
	held     map[subKey][]slice               // slices outside the window, of submissions whose end was not read yet
	listed   map[commandKey]*traceformat.Args // commands of recordings
	arrows   map[int]uint64                   // number of missing arrows of each program, as last reported
}

// load reads the part of a trace in the window.
func load(r io.Reader, win window) (*trace, error) {
	l := loader{
		trace: trace{win: win}, names: map[string]string{}, programs: map[int64]int{}, devices: map[int64]int{}, process: map[int64]string{},
		tracks: map[trackKey]int{}, subs: map[subKey]int{}, held: map[subKey][]slice{}, listed: map[commandKey]*traceformat.Args{}, arrows: map[int]uint64{},
	}
	rd := traceformat.NewReader(r)
	kept := 0
	// first is the earliest begin and last the latest end of all events, also of those outside the
	// window.
	first, last := traceformat.Time(math.MaxInt64), traceformat.Time(math.MinInt64)
	var e traceformat.Event
	for {
		err := rd.Next(&e)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if e.Phase != traceformat.Metadata {
			first, last = min(first, e.Time), max(last, e.Time+max(e.Dur, 0))
		}
		if !l.event(&e) {
			continue
		}
		if kept++; kept > win.maxEvents {
			return nil, fmt.Errorf("%w: more than %d of this part of the trace: read a part of it (-from, -to), or allow more memory (-max)", errTooLong, win.maxEvents)
		}
	}
	if !l.ours {
		return nil, fmt.Errorf("%d events, and none is %q: puregpu did not write it", rd.Events(), traceformat.MetaTrace)
	}
	l.cut = l.cut || rd.Cut()
	l.finish()
	t := &l.trace
	if first <= last && (win.from > last || win.to < first || len(t.subs)+len(t.slices)+len(t.counters)+len(t.instants) == 0) {
		return nil, fmt.Errorf("%w: it goes from %s to %s", errNoPart, duration(first), duration(last))
	}
	return t, nil
}

func (l *loader) text(s string) string {
	if t, ok := l.names[s]; ok {
		return t
	}
	l.names[s] = s
	return s
}

// event reads an event, and reports whether the event was kept. window.maxEvents limits the kept
// events.
func (l *loader) event(e *traceformat.Event) bool {
	switch e.Phase {
	case traceformat.Metadata:
		l.metadata(e)
		return false
	case traceformat.AsyncBegin, traceformat.AsyncEnd:
		return e.Cat == traceformat.CatSubmission && l.submission(e)
	case traceformat.Complete:
		return l.slice(e)
	case traceformat.Counter:
		if e.Time < l.win.from || e.Time > l.win.to {
			return false
		}
		l.counters = append(l.counters, counter{e.PID, l.text(e.Name), e.Time, e.Args.Series})
		return true
	case traceformat.Instant:
		switch e.Cat {
		case traceformat.CatDrop:
			l.dropped += e.Args.Dropped
		case traceformat.CatArrows:
			l.arrows[l.program(e.PID)] = e.Args.Undrawn + e.Args.Forgotten
		case traceformat.CatCut:
			l.cut = true
		}
		if e.Time < l.win.from || e.Time > l.win.to {
			return false
		}
		l.instants = append(l.instants, instant{e.PID, l.text(e.Cat), l.text(e.Name), e.Time, e.Args})
		return true
	}
	return false
}

func (l *loader) program(pid int64) int {
	base := pid / traceformat.PIDRange * traceformat.PIDRange
	if i, ok := l.programs[base]; ok {
		return i
	}
	i := len(l.trace.programs)
	l.programs[base] = i
	l.trace.programs = append(l.trace.programs, program{pid: base})
	return i
}

func (l *loader) metadata(e *traceformat.Event) {
	switch e.Name {
	case traceformat.MetaTrace:
		l.trace.programs[l.program(e.PID)].args, l.ours = e.Args, true
	case traceformat.MetaProcess:
		l.process[e.PID] = e.Args.Name
		if e.Args.Kind != traceformat.KindDevice {
			return
		}
		i, ok := l.devices[e.PID]
		if !ok {
			i = len(l.trace.devices)
			l.devices[e.PID] = i
			l.trace.devices = append(l.trace.devices, device{pid: e.PID, program: l.program(e.PID)})
		}
		l.trace.devices[i].args = e.Args
	case traceformat.MetaCommand:
		a := e.Args
		a.Op, a.Kernel, a.Label = l.text(a.Op), l.text(a.Kernel), l.text(a.Label)
		l.listed[commandKey{l.program(e.PID), a.Recording, a.Command}] = &a
	case traceformat.MetaNodes:
		if e.Args.NodeTimes != "" {
			l.nodes = append(l.nodes, l.text(e.Args.NodeTimes))
		} else {
			l.lacks = append(l.lacks, l.text(e.Args.Error))
		}
	case traceformat.MetaThread:
		t := &l.trace.tracks[l.track(e.PID, e.TID)]
		t.kind, t.title = e.Args.Kind, l.text(e.Args.Name)
	case traceformat.MetaThreadSort:
		l.trace.tracks[l.track(e.PID, e.TID)].order[1] = e.Args.SortIndex
	}
}

func (l *loader) track(pid, tid int64) int {
	k := trackKey{pid, tid}
	i, ok := l.tracks[k]
	if !ok {
		i = len(l.trace.tracks)
		l.tracks[k] = i
		l.trace.tracks = append(l.trace.tracks, track{pid: pid, tid: tid, device: -1, program: l.program(pid), title: fmt.Sprintf("track %d", tid)})
	}
	return i
}

func (l *loader) submission(e *traceformat.Event) bool {
	p := l.program(e.PID)
	k := subKey{p, e.ID & (1<<traceformat.MergedIDBits - 1)}
	i, ok := l.subs[k]
	ok = ok && i >= 0
	begins := e.Phase == traceformat.AsyncBegin
	if e.Name == traceformat.NameParked && e.Args.Sub == 0 { // a queue may have this name too
		if ok && begins {
			l.trace.subs[i].parked = true
		}
		return false
	}
	switch {
	case begins && !ok:
		if e.Time > l.win.to {
			l.subs[k] = -1
			return false
		}
		l.subs[k] = len(l.trace.subs)
		a := e.Args
		s := submission{
			id: e.Args.Sub, queue: l.track(e.PID, e.TID), program: p, device: -1, title: l.text(cmp.Or(a.Label, a.Kernel, a.Op)),
			submitted: e.Time, issued: unknown, begun: unknown, ended: unknown, done: unknown, slice: -1,
		}
		a.Op, a.Label, a.Kernel, a.Channel = l.text(a.Op), l.text(a.Label), l.text(a.Kernel), l.text(a.Channel)
		for _, points := range [][]traceformat.Point{a.Waits, a.Signals} {
			for i := range points {
				points[i].Name = l.text(points[i].Name)
			}
		}
		s.args = a
		l.trace.subs = append(l.trace.subs, s)
		return true
	case !begins && ok:
		s := &l.trace.subs[i]
		s.done, s.err, s.untimed = e.Time, l.text(e.Args.Error), e.Args.Untimed
		s.untimedCommands = e.Args.UntimedCommands
		if e.Args.Issued != 0 {
			s.issued = e.Args.Issued
		}
	}
	if !begins {
		l.release(k)
	}
	return false
}

// complete adds to the arguments of a command's slice the arguments that are only in the list of
// the recording's commands.
func (l *loader) complete(e *traceformat.Event) {
	a := &e.Args
	c := l.listed[commandKey{l.program(e.PID), a.Recording, a.Command}]
	if c == nil {
		return
	}
	a.Op, a.Kernel, a.Label = cmp.Or(a.Op, c.Op), cmp.Or(a.Kernel, c.Kernel), cmp.Or(a.Label, c.Label)
	a.Bytes, a.Grid, a.Block = cmp.Or(a.Bytes, c.Bytes), cmp.Or(a.Grid, c.Grid), cmp.Or(a.Block, c.Block)
}

func (l *loader) slice(e *traceformat.Event) bool {
	outside := e.Time > l.win.to || e.Time+e.Dur < l.win.from
	if outside && e.Args.Sub == 0 {
		return false
	}
	k := subKey{l.program(e.PID), e.Args.Sub}
	i, known := l.subs[k]
	if outside && known && (i < 0 || !l.trace.subs[i].partOf(l.win)) {
		return false
	}
	if e.Cat == traceformat.CatCommand {
		l.complete(e)
	}
	s := slice{track: l.track(e.PID, e.TID), cat: l.text(e.Cat), name: l.text(e.Name), begin: e.Time, end: e.Time + max(e.Dur, 0), sub: -1}
	a := e.Args
	a.Op, a.Kernel, a.Label = l.text(a.Op), l.text(a.Kernel), l.text(a.Label)
	s.args = &a
	if outside && (!known || l.trace.subs[i].done == unknown) {
		l.held[k] = append(l.held[k], s)
		return false
	}
	l.trace.slices = append(l.trace.slices, s)
	return true
}

// partOf reports whether a submission, which was submitted before the end of a window, ended after
// the window's begin, or has no known end. Such a submission keeps all its slices, also those
// outside the window. Otherwise the submission would seem to have taken no time.
func (s *submission) partOf(win window) bool { return s.done == unknown || s.done >= win.from }

// release adds the held slices of a submission to the trace if the submission is partly in the
// window, and drops them otherwise.
func (l *loader) release(k subKey) {
	if i, ok := l.subs[k]; ok && i >= 0 && l.trace.subs[i].partOf(l.win) {
		l.trace.slices = append(l.trace.slices, l.held[k]...)
	}
	delete(l.held, k)
}

// finish sorts the tracks, slices and submissions after everything was read, and connects them.
func (l *loader) finish() {
	t := &l.trace
	for k := range l.held { // of submissions that did not end
		l.release(k)
	}
	// Sort tracks and devices by their program and their device's number.
	for i := range t.tracks {
		k := &t.tracks[i]
		k.process = l.process[k.pid]
		if d, ok := l.devices[k.pid]; ok { // sort by device numbers, not by the order of opening
			k.order[0] = k.program*traceformat.PIDRange + 1 + t.devices[d].args.Device
		} else {
			k.order[0] = k.program * traceformat.PIDRange
		}
		if k.kind == traceformat.KindQueue { // below the device's work
			k.order[1] += 1 << 30
		}
	}
	slices.SortFunc(t.devices, func(a, b device) int {
		return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.args.Device, b.args.Device), cmp.Compare(a.pid, b.pid))
	})
	for i, d := range t.devices {
		l.devices[d.pid] = i
	}
	perm := make([]int, len(t.tracks)) // perm[new] = old
	for i := range perm {
		perm[i] = i
	}
	slices.SortFunc(perm, func(a, b int) int {
		x, y := &t.tracks[a], &t.tracks[b]
		return cmp.Or(cmp.Compare(x.order[0], y.order[0]), cmp.Compare(x.pid, y.pid), cmp.Compare(x.order[1], y.order[1]), cmp.Compare(x.tid, y.tid))
	})
	tracks, moved := make([]track, len(perm)), make([]int, len(perm))
	for to, from := range perm {
		tracks[to], moved[from] = t.tracks[from], to
		if d, ok := l.devices[tracks[to].pid]; ok {
			tracks[to].device = d
		}
	}
	t.tracks = tracks
	// Sort slices by begin, outer ones first.
	for i := range t.slices {
		t.slices[i].track = moved[t.slices[i].track]
	}
	slices.SortStableFunc(t.slices, func(a, b slice) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end))
	})
	// Keep the submissions of the window, sorted by the time of submission.
	for i := range t.subs {
		s := &t.subs[i]
		s.queue = moved[s.queue]
		s.device = t.tracks[s.queue].device
	}
	if l.win.from > 0 {
		t.subs = slices.DeleteFunc(t.subs, func(s submission) bool { return !s.partOf(l.win) })
	}
	slices.SortStableFunc(t.subs, func(a, b submission) int { return cmp.Compare(a.submitted, b.submitted) })
	clear(l.subs)
	for i, s := range t.subs {
		l.subs[subKey{s.program, s.id}] = i
	}
	for i := range t.slices {
		s := &t.slices[i]
		if s.args.Sub == 0 {
			continue
		}
		sub, ok := l.subs[subKey{t.tracks[s.track].program, s.args.Sub}]
		if !ok {
			continue
		}
		s.sub = sub
		if x := &t.subs[sub]; s.cat == traceformat.CatDevice && x.slice < 0 {
			x.begun, x.ended, x.slice, x.title, x.early = s.begin, s.end, i, s.name, s.args.Early
		} else if s.cat == traceformat.CatCall && x.begun == unknown { // the host did it
			x.begun, x.ended = s.begin, s.end
		}
	}
	for _, n := range l.arrows {
		t.arrowless += n
	}
	// If some submissions of a device have times, a submission without times took no time. This
	// does not hold for a submission that was not issued, has an error, or should have times.
	timed := make([]bool, len(t.devices)+1)
	for i := range t.subs {
		if x := &t.subs[i]; x.slice >= 0 {
			timed[x.device+1] = true
		}
	}
	for i := range t.subs {
		if x := &t.subs[i]; x.begun == unknown && x.issued != unknown && x.err == "" && !x.untimed && timed[x.device+1] {
			x.instant = true
		}
	}
	slices.SortStableFunc(t.counters, func(a, b counter) int { return cmp.Compare(a.time, b.time) })
	slices.SortStableFunc(t.instants, func(a, b instant) int { return cmp.Compare(a.time, b.time) })
	t.bounds()
	t.link()
}

func (t *trace) bounds() {
	first := true
	add := func(begin, end traceformat.Time) {
		if first {
			t.begin, t.end, first = begin, end, false
		}
		t.begin, t.end = min(t.begin, begin), max(t.end, end)
	}
	for i := range t.subs {
		add(t.subs[i].submitted, t.subs[i].last())
	}
	for i := range t.slices {
		add(t.slices[i].begin, t.slices[i].end)
	}
	for i := range t.instants {
		add(t.instants[i].time, t.instants[i].time)
	}
	for i := range t.counters {
		add(t.counters[i].time, t.counters[i].time)
	}
}
