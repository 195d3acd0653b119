package main

import (
	"cmp"
	"slices"

	"github.com/puregpu/puregpu/internal/traceformat"
)

// A summary is the result for a trace. Times are in nanoseconds.
type summary struct {
	Programs        []programSummary `json:"programs"`
	Begin           traceformat.Time `json:"begin_ns"` // of the first submission, or of the part of the trace
	End             traceformat.Time `json:"end_ns"`   // of the last submission
	Submissions     int              `json:"submissions"`
	Failed          int              `json:"failed"`
	FirstError      string           `json:"first_error,omitempty"`
	Unfinished      int              `json:"unfinished"`       // when the trace ended
	Untimed         int              `json:"untimed"`          // submissions without device times, which no sum includes
	UntimedCommands int              `json:"untimed_commands"` // commands of recordings without times
	Graphs          int              `json:"graphs"`           // executions of graphs without times of their commands, if the trace is to have these times
	Inexact         int              `json:"inexact"`          // operations and commands with a margin above that of the clock
	InexactBy       traceformat.Time `json:"inexact_by_ns"`    // the largest margin
	Dropped         uint64           `json:"dropped"`          // records that the trace lacks
	Arrowless       uint64           `json:"arrowless"`        // waits that lack an arrow, or may lack one
	Cut             bool             `json:"cut"`              // the file has no end: the program died, or still runs
	Lost            []string         `json:"lost,omitempty"`

	Devices      []deviceSummary    `json:"devices"`
	Together     traceformat.Time   `json:"together_ns"` // at least two devices were busy
	Queues       []queueSummary     `json:"queues"`
	Longest      []operationSummary `json:"longest"`           // kinds of operations by their total time
	Commands     []commandSummary   `json:"commands"`          // of recordings, by their total time
	Kernels      []commandSummary   `json:"kernels,omitempty"` // of recordings and outside of them, if -kernels is set
	CommandTimes commandTimes       `json:"command_times"`
	Critical     []segment          `json:"critical_path"`
	CriticalN    []shareSummary     `json:"critical_path_by_kind"`
	Starved      []starvedSummary   `json:"starved"`
	Host         []operationSummary `json:"host"` // kinds of calls and waits by their total time

	onlyKernels bool
	timed       *timedExecutions
	pieces      []idlePiece // parts of the gaps of devices
}

// An idlePiece is a part of a gap, with its cause.
type idlePiece struct {
	device      int
	begin, end  traceformat.Time
	kind, cause string
}

type programSummary struct {
	Program string `json:"program"`
	Rank    int    `json:"rank"`
	Version string `json:"version"`
	Host    string `json:"host"`
	Level   string `json:"level"`
}

type deviceSummary struct {
	Name       string           `json:"name"`
	Operations int              `json:"operations"`
	Window     traceformat.Time `json:"window_ns"` // from the first submission to the end of the last one, of this device
	Busy       traceformat.Time `json:"busy_ns"`   // at least one operation ran
	Peers      traceformat.Time `json:"peers_ns"`  // collectives ran, and waited for other ranks
	Idle       traceformat.Time `json:"idle_ns"`
	Unknown    traceformat.Time `json:"unknown_ns"` // part of the idle time: the host was still giving it work that may have run
	Overlap    traceformat.Time `json:"overlap_ns"` // at least two ran
	Streams    int              `json:"streams"`
	Margin     traceformat.Time `json:"margin_ns"` // greatest margin of the fits of its clock
}

type queueSummary struct {
	Device      string           `json:"device"`
	Name        string           `json:"name"`
	Submissions int              `json:"submissions"`
	Window      traceformat.Time `json:"window_ns"`
	Busy        traceformat.Time `json:"busy_ns"`
	Idle        traceformat.Time `json:"idle_ns"`
	Overlap     traceformat.Time `json:"overlap_ns"` // at least two of its operations ran
	Issue       distribution     `json:"submitted_to_issued"`
	Parked      distribution     `json:"parked"` // submitted to issued, of those that were parked
	Start       distribution     `json:"issued_to_begun"`
	Seen        distribution     `json:"ended_to_seen"`
}

type operationSummary struct {
	Name      string           `json:"name"`
	Op        string           `json:"op"`
	Count     int              `json:"count"`
	Total     traceformat.Time `json:"total_ns"`
	Mean      traceformat.Time `json:"mean_ns"`
	Max       traceformat.Time `json:"max_ns"`
	MaxAt     traceformat.Time `json:"max_at_ns"` // when the longest began
	MaxSub    uint64           `json:"max_submission,omitempty"`
	Bytes     uint64           `json:"bytes,omitempty"`
	Bandwidth float64          `json:"bytes_per_second,omitempty"`
}

type shareSummary struct {
	Kind  string           `json:"kind"`
	Total traceformat.Time `json:"total_ns"`
	Count int              `json:"count"`
}

type starvedSummary struct {
	Device string           `json:"device"`
	Kind   string           `json:"kind"`  // a kind of segment
	Cause  string           `json:"cause"` // the cause as text
	Count  int              `json:"count"`
	Total  traceformat.Time `json:"total_ns"`
	Max    traceformat.Time `json:"max_ns"`
	MaxAt  traceformat.Time `json:"max_at_ns"`
}

// summarize makes the summary of a trace.
func summarize(t *trace) *summary {
	s := &summary{Submissions: len(t.subs), Dropped: t.dropped, Arrowless: t.arrowless, Cut: t.cut, Begin: t.begin, End: t.end}
	for _, p := range t.programs {
		s.Programs = append(s.Programs, programSummary{p.args.Program, p.args.Rank, p.args.Version, p.args.Host, p.args.Level})
	}
	for i := range t.subs {
		x := &t.subs[i]
		if x.err != "" {
			if s.Failed++; s.FirstError == "" {
				s.FirstError = x.err
			}
		}
		if x.done == unknown {
			s.Unfinished++
		}
		if x.untimed {
			s.Untimed++
		}
		s.UntimedCommands += x.untimedCommands
		if i == 0 {
			s.Begin, s.End = max(x.submitted, t.win.from), x.last()
		}
		s.End = max(s.End, x.last())
	}
	for _, x := range t.instants {
		if x.cat == traceformat.CatLoss {
			s.Lost = append(s.Lost, x.args.Error)
		}
	}
	for i := range t.slices {
		if x := &t.slices[i]; (x.cat == traceformat.CatDevice || x.cat == traceformat.CatCommand) && x.args.Margin > 0 {
			s.Inexact++
			s.InexactBy = max(s.InexactBy, x.args.Margin)
		}
	}
	w := newWalker(t)
	s.devices(t, w)
	s.queues(t)
	s.longest(t)
	s.timed = timedOf(t)
	s.Commands, s.CommandTimes = commandsOf(t, nil), commandTimesOf(t, s.timed)
	if s.CommandTimes.timed() {
		s.Graphs = s.CommandTimes.Graphs
	}
	s.Critical = w.critical()
	s.byKind()
	return s
}

// busyOf lists the times at which devices ran the submissions that the function pick chooses,
// clipped to the window. It leaves out unknown times.
func busyOf(t *trace, pick func(*submission) bool) []interval {
	var list []interval
	for i := range t.subs {
		if x := &t.subs[i]; x.slice >= 0 && pick(x) {
			list = append(list, t.win.clip(interval{x.begun, x.ended}))
		}
	}
	for i := range t.slices { // commands that ran while the host was still giving other commands
		c := &t.slices[i]
		if c.cat != traceformat.CatCommand || c.sub < 0 || t.tracks[c.track].kind == traceformat.KindNodes {
			continue
		}
		if x := &t.subs[c.sub]; x.slice >= 0 && c.begin < x.begun && pick(x) {
			list = append(list, t.win.clip(interval{c.begin, min(c.end, x.begun)}))
		}
	}
	return list
}

func (s *summary) devices(t *trace, w *walker) {
	var each []interval
	for d := range t.devices {
		on := func(x *submission) bool { return x.device == d }
		list, operations := busyOf(t, on), 0
		for i := range t.subs {
			if x := &t.subs[i]; x.slice >= 0 && on(x) {
				operations++
			}
		}
		sum := deviceSummary{Name: t.deviceName(d), Operations: operations, Overlap: overlap(list)}
		for i := range t.subs {
			if x := &t.subs[i]; x.slice >= 0 && on(x) {
				if last := w.lastRank(i); last != i {
					v := t.win.clip(interval{x.begun, min(t.subs[last].begun, x.ended)})
					sum.Peers += v.end - v.begin
				}
			}
		}
		busy := union(list)
		each = append(each, busy...)
		within := windowOf(t, on)
		if len(busy) > 0 {
			within.end = busy[len(busy)-1].end
		}
		sum.Window, sum.Busy = within.end-within.begin, length(busy)
		idle := gaps(busy, within)
		sum.Idle = length(idle)
		maybe := slices.Clone(busy)
		for i := range t.subs {
			if x := &t.subs[i]; x.slice >= 0 && x.early > 0 && on(x) {
				maybe = append(maybe, t.win.clip(interval{x.begun - x.early, x.begun}))
			}
		}
		sum.Unknown = length(union(maybe)) - sum.Busy
		for i := range t.tracks {
			if k := &t.tracks[i]; k.device == d && (k.kind == traceformat.KindStream || k.kind == traceformat.KindChannel) {
				sum.Streams++
			}
		}
		for _, x := range t.instants {
			if x.cat == traceformat.CatClock && x.pid == t.devices[d].pid {
				sum.Margin = max(sum.Margin, x.args.Margin)
			}
		}
		s.Devices = append(s.Devices, sum)
		if len(list) > 0 {
			s.starved(t, w, d, idle)
		}
	}
	s.Together = overlap(each)
	slices.SortStableFunc(s.Starved, func(a, b starvedSummary) int { return cmp.Compare(b.Total, a.Total) })
}

// windowOf returns the time from the first submission that the function pick chooses to the end of
// the last one, clipped to the window. The trace may not say what a device did at other times.
func windowOf(t *trace, pick func(*submission) bool) interval {
	var v interval
	first := true
	for i := range t.subs {
		x := &t.subs[i]
		if !pick(x) {
			continue
		}
		if first {
			v, first = interval{x.submitted, x.submitted}, false
		}
		v.end = max(v.end, x.finish())
	}
	return t.win.clip(v)
}

// starved finds the causes of each gap of a device, and adds them up.
func (s *summary) starved(t *trace, w *walker, d int, idle []interval) {
	var began []int // slices of the device, by begin
	for i := range t.slices {
		if x := &t.slices[i]; x.cat == traceformat.CatDevice && x.sub >= 0 && t.tracks[x.track].device == d {
			began = append(began, i)
		}
	}
	type key struct{ kind, cause string }
	found := map[key]*starvedSummary{}
	name := t.shortName(d)
	add := func(kind, cause string, begin, end traceformat.Time) {
		if end <= begin {
			return
		}
		k := key{kind, cause}
		x := found[k]
		if x == nil {
			x = &starvedSummary{Device: name, Kind: kind, Cause: cause}
			found[k] = x
		}
		s.pieces = append(s.pieces, idlePiece{d, begin, end, kind, cause})
		x.Count++
		x.Total += end - begin
		if end-begin > x.Max {
			x.Max, x.MaxAt = end-begin, begin
		}
	}
	for _, g := range idle {
		i, _ := slices.BinarySearchFunc(began, g.end, func(i int, at traceformat.Time) int { return cmp.Compare(t.slices[i].begin, at) })
		if i == len(began) {
			add(onHost, "nothing: no work ran after it", g.begin, g.end)
			continue
		}
		at := g.end
		for _, x := range w.back(t.slices[began[i]].sub, g.begin) {
			add(x.Kind, x.cause(), x.Begin, min(x.End, at))
			at = x.Begin
		}
		add(onHost, "what happened before the trace", g.begin, at)
	}
	for _, x := range found {
		s.Starved = append(s.Starved, *x)
	}
	slices.SortFunc(s.Starved, func(a, b starvedSummary) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Cause, b.Cause))
	})
}

// cause describes the cause of a segment in which a device had no work.
func (x *segment) cause() string {
	switch x.Kind {
	case onDevice:
		return "work of another device: " + x.Name + " on " + x.Device
	case toStart:
		return "the start of work that was issued"
	case toGive:
		return "the host, still giving it work that may have run: " + x.Name
	case toIssue:
		return "the issue of work that was submitted"
	case toSee:
		return "the host, to see that work had ended"
	case inCall:
		return "the host, in a call: " + x.Name
	case inWait:
		return "the host, which waited for something else"
	}
	return "the host, to submit work"
}

func (s *summary) queues(t *trace) {
	for q := range t.tracks {
		k := &t.tracks[q]
		if k.kind != traceformat.KindQueue {
			continue
		}
		on := func(x *submission) bool { return x.queue == q }
		sum := queueSummary{Name: k.title}
		if k.device >= 0 {
			sum.Device = t.shortName(k.device)
		}
		var issue, parked, start, seen []traceformat.Time
		for i := range t.subs {
			x := &t.subs[i]
			if !on(x) {
				continue
			}
			sum.Submissions++
			if x.issued != unknown {
				issue = append(issue, max(x.issued-x.submitted, 0))
				if x.parked {
					parked = append(parked, max(x.issued-x.submitted, 0))
				}
				if x.begun != unknown {
					start = append(start, max(x.begun-x.issued, 0))
				}
			}
			if x.ended != unknown && x.done != unknown {
				seen = append(seen, max(x.done-x.ended, 0))
			}
		}
		if sum.Submissions == 0 {
			continue
		}
		list := busyOf(t, on)
		sum.Overlap = overlap(list)
		busy, within := union(list), windowOf(t, on)
		if len(busy) > 0 {
			within.end = busy[len(busy)-1].end
		}
		sum.Window, sum.Busy, sum.Idle = within.end-within.begin, length(busy), length(gaps(busy, within))
		sum.Issue, sum.Parked, sum.Start, sum.Seen = distributionOf(issue), distributionOf(parked), distributionOf(start), distributionOf(seen)
		s.Queues = append(s.Queues, sum)
	}
}

func (s *summary) longest(t *trace) {
	type key struct{ name, op string }
	device, host := map[key]*operationSummary{}, map[key]*operationSummary{}
	for i := range t.slices {
		x := &t.slices[i]
		m, k := device, key{x.name, x.args.Op}
		switch x.cat {
		case traceformat.CatDevice:
		case traceformat.CatCall, traceformat.CatWait:
			m, k = host, key{x.name, ""}
		default:
			continue
		}
		o := m[k]
		if o == nil {
			o = &operationSummary{Name: k.name, Op: k.op, MaxAt: x.begin, MaxSub: x.args.Sub}
			m[k] = o
		}
		dur := x.end - x.begin
		o.Count++
		o.Total += dur
		if x.cat == traceformat.CatDevice && moves(x.args.Op) {
			o.Bytes += x.args.Bytes
		}
		if dur > o.Max {
			o.Max, o.MaxAt, o.MaxSub = dur, x.begin, x.args.Sub
		}
	}
	s.Longest, s.Host = ranking(device), ranking(host)
}

// moves reports whether the bytes of an operation are data that the operation moves, not only a
// size.
func moves(op string) bool { return op != "alloc" && op != "free" }

func ranking[K comparable](m map[K]*operationSummary) []operationSummary {
	var list []operationSummary
	for _, o := range m {
		o.Mean = o.Total / traceformat.Time(o.Count)
		if o.Total > 0 {
			o.Bandwidth = float64(o.Bytes) / float64(o.Total) * 1e9
		}
		list = append(list, *o)
	}
	slices.SortFunc(list, func(a, b operationSummary) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Op, b.Op))
	})
	return list
}

// byKind adds up the segments of the critical path by kind.
func (s *summary) byKind() {
	for _, kind := range []string{onDevice, toStart, toGive, toIssue, toSee, inCall, inWait, onHost} {
		sum := shareSummary{Kind: kind}
		for i := range s.Critical {
			if x := &s.Critical[i]; x.Kind == kind {
				sum.Count++
				sum.Total += x.End - x.Begin
			}
		}
		if sum.Count > 0 {
			s.CriticalN = append(s.CriticalN, sum)
		}
	}
	slices.SortStableFunc(s.CriticalN, func(a, b shareSummary) int { return cmp.Compare(b.Total, a.Total) })
}
