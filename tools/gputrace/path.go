package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/traceformat"
)

// A segment is a stretch of time on a path, and says what went on then.
type segment struct {
	Kind   string           `json:"kind"`   // one of the kinds below
	Name   string           `json:"name"`   // of an operation, call or wait
	Device string           `json:"device"` // of an operation
	Begin  traceformat.Time `json:"begin_ns"`
	End    traceformat.Time `json:"end_ns"`

	node  node
	known bool // the field node is set
}

// Kinds of segments.
const (
	onDevice = "device" // a device executed an operation
	// From the operation's issue, or from the end of its last dependency, until the device began
	// the operation.
	toStart = "start"
	toGive  = "give"  // the host was still giving the device the operation, which may already have run
	toIssue = "issue" // from submission, or from the release of the last wait, until issue
	toSee   = "seen"  // from the end of work that the host waited for until the host went on
	inCall  = "call"  // the host was in a call
	inWait  = "wait"  // the host waited, and the trace does not say for which work
	onHost  = "host"  // the host did other work
)

// A collective is an operation of a communicator with a submission in each rank.
type collective struct {
	channel string
	number  uint64
}

// A walker goes back in time from an operation through its dependencies.
type walker struct {
	t       *trace
	before  map[node][]node
	prev    []int              // by submission: the submission before it on the same stream, or -1
	last    map[collective]int // submission of the last rank
	host    [][]int            // by program: slices of the host, sorted by end
	hostEnd [][]traceformat.Time
}

func newWalker(t *trace) *walker {
	w := &walker{t: t, before: t.befores(), prev: make([]int, len(t.subs)), host: make([][]int, len(t.programs)), hostEnd: make([][]traceformat.Time, len(t.programs))}
	for i := range w.prev {
		w.prev[i] = -1
	}
	w.last = map[collective]int{}
	for i := range t.subs {
		s := &t.subs[i]
		if s.args.Collective == 0 || s.slice < 0 {
			continue
		}
		k := collective{s.args.Channel, s.args.Collective}
		if j, ok := w.last[k]; !ok || s.begun > t.subs[j].begun {
			w.last[k] = i
		}
	}
	last := map[int]int{} // by track
	for i := range t.slices {
		s := &t.slices[i]
		switch s.cat {
		case traceformat.CatDevice:
			if s.sub < 0 {
				continue
			}
			if p, ok := last[s.track]; ok {
				w.prev[s.sub] = p
			}
			last[s.track] = s.sub
		case traceformat.CatCall, traceformat.CatWait:
			p := t.tracks[s.track].program
			w.host[p] = append(w.host[p], i)
		}
	}
	for p, list := range w.host {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(t.slices[a].end, t.slices[b].end) })
		for _, i := range list {
			w.hostEnd[p] = append(w.hostEnd[p], t.slices[i].end)
		}
	}
	return w
}

// lastRank returns the submission of the last rank to arrive at the collective of submission i. It
// returns i if i is no collective, or if the last rank did not arrive while i ran.
func (w *walker) lastRank(i int) int {
	s := &w.t.subs[i]
	if s.args.Collective == 0 || s.slice < 0 {
		return i
	}
	j := w.last[collective{s.args.Channel, s.args.Collective}]
	if x := &w.t.subs[j]; x.begun > s.begun && x.begun < s.ended {
		return j
	}
	return i
}

// back returns the segments from the beginning of submission i back to the time until, the latest
// first.
func (w *walker) back(i int, until traceformat.Time) []segment {
	b := backward{walker: w, until: until}
	b.device(i)
	return b.out
}

// critical returns the path from the first submission, or from the begin of the window, to the end
// of the last submission, the earliest segment first.
func (w *walker) critical() []segment {
	if len(w.t.subs) == 0 {
		return nil
	}
	last := 0
	for i := range w.t.subs {
		if x := &w.t.subs[i]; x.finish() > w.t.subs[last].finish() && !x.instant {
			last = i
		}
	}
	b := backward{walker: w, until: max(w.t.subs[0].submitted, w.t.win.from)}
	b.device(b.executed(last))
	slices.Reverse(b.out)
	return b.out
}

// backward is one path backwards. Methods that return a bool return false at the end of the path.
type backward struct {
	*walker
	until traceformat.Time
	out   []segment
	steps int
}

func (b *backward) add(s segment) bool {
	// The number of steps is bounded even if moments contradict each other.
	if b.steps++; b.steps > 4*(len(b.t.subs)+len(b.t.slices))+4 {
		return false
	}
	goOn := s.Begin > b.until
	s.Begin = max(s.Begin, b.until)
	if n := len(b.out); n > 0 {
		s.End = min(s.End, b.out[n-1].Begin)
	}
	if s.End > s.Begin {
		b.out = append(b.out, s)
	}
	return goOn
}

func (b *backward) deviceName(i int) string {
	if d := b.t.subs[i].device; d >= 0 {
		return b.t.shortName(d)
	}
	return ""
}

// executed adds the work of a submission on its device. For a collective the path continues at the
// last rank, because all other ranks waited for that one. executed returns the next submission, or
// -1 at the end.
func (b *backward) executed(i int) int {
	s := &b.t.subs[i]
	begin, on := s.start(), b.lastRank(i)
	if on != i {
		begin = b.t.subs[on].begun
	}
	if !b.add(segment{Kind: onDevice, Name: s.title, Device: b.deviceName(i), Begin: begin, End: s.finish(), node: node{false, i}, known: true}) {
		return -1
	}
	return on
}

// device goes back from the beginning of a submission, submission by submission.
func (b *backward) device(i int) {
	for i >= 0 {
		s := &b.t.subs[i]
		begin := s.start()
		if s.early > 0 {
			from := begin - s.early
			if !b.add(segment{Kind: toGive, Name: s.title, Device: b.deviceName(i), Begin: from, End: begin, node: node{false, i}, known: true}) {
				return
			}
			begin = from
		}
		before, at := -1, unknown
		consider := func(p int) {
			if end := b.t.subs[p].finish(); end <= begin && end > at && p != i {
				before, at = p, end
			}
		}
		for _, n := range b.before[node{false, i}] {
			if !n.host {
				consider(n.index)
			}
		}
		if p := b.prev[i]; p >= 0 {
			consider(p)
		}
		if before >= 0 && at >= s.issued {
			if !b.add(segment{Kind: toStart, Name: s.title, Device: b.deviceName(i), Begin: at, End: begin, node: node{false, i}, known: true}) {
				return
			}
			i = b.executed(before)
			continue
		}
		if s.issued != unknown && !b.add(segment{Kind: toStart, Name: s.title, Device: b.deviceName(i), Begin: s.issued, End: begin, node: node{false, i}, known: true}) {
			return
		}
		i = b.issue(i)
	}
}

// issue goes back from the time of issue, and returns the first submission that it meets on a
// device, or -1 at the end.
func (b *backward) issue(i int) int {
	for {
		s := &b.t.subs[i]
		issued := s.issued
		if issued == unknown {
			issued = s.start()
		}
		var by node
		at := unknown
		if s.parked {
			for _, n := range b.before[node{false, i}] {
				released := unknown
				if n.host {
					released = b.t.slices[n.index].end
				} else {
					released = b.t.subs[n.index].issued
				}
				if released <= issued && released > max(at, s.submitted) {
					by, at = n, released
				}
			}
		}
		from := max(at, s.submitted)
		if !b.add(segment{Kind: toIssue, Name: s.title, Device: b.deviceName(i), Begin: from, End: issued, node: node{false, i}, known: true}) {
			return -1
		}
		switch {
		case at == unknown:
			return b.hostBefore(s.program, -1, s.submitted)
		case by.host:
			return b.call(by.index)
		}
		i = by.index
	}
}

func (b *backward) call(slice int) int {
	s := &b.t.slices[slice]
	if !b.add(segment{Kind: inCall, Name: s.name, Begin: s.begin, End: s.end, node: node{true, slice}, known: true}) {
		return -1
	}
	return b.hostBefore(b.t.tracks[s.track].program, s.track, s.begin)
}

// hostBefore goes back on the host from the time at, and returns the first submission that it meets
// on a device, or -1 at the end. It begins with the track's slice that was the last to end by then.
// If the track is unknown, track is -1, and the slices of all the program's tracks count.
func (b *backward) hostBefore(program, track int, at traceformat.Time) int {
	for {
		list := b.host[program]
		i, _ := slices.BinarySearch(b.hostEnd[program], at+1)
		for i--; i >= 0 && track >= 0 && b.t.slices[list[i]].track != track; i-- {
		}
		if i < 0 {
			b.add(segment{Kind: onHost, Begin: b.t.begin, End: at})
			return -1
		}
		s := &b.t.slices[list[i]]
		if !b.add(segment{Kind: onHost, Begin: s.end, End: at}) {
			return -1
		}
		track = s.track
		n := node{true, list[i]}
		if s.cat == traceformat.CatCall {
			if !b.add(segment{Kind: inCall, Name: s.name, Begin: s.begin, End: s.end, node: n, known: true}) {
				return -1
			}
			at = s.begin
			continue
		}
		// A wait: find the work that ended it.
		var by node
		ended := unknown
		for _, p := range b.before[n] {
			end := unknown
			if p.host {
				end = b.t.slices[p.index].end
			} else {
				end = b.t.subs[p.index].finish()
				if b.t.subs[p.index].ended == unknown {
					end = min(end, s.end) // the time at which the host saw the end is known
				}
			}
			if end <= s.end && end > ended {
				by, ended = p, end
			}
		}
		if ended == unknown {
			if !b.add(segment{Kind: inWait, Name: s.name, Begin: s.begin, End: s.end, node: n, known: true}) {
				return -1
			}
			at = s.begin
			continue
		}
		if !b.add(segment{Kind: toSee, Name: b.nodeName(by), Begin: ended, End: s.end, node: n, known: true}) {
			return -1
		}
		if !by.host {
			return b.executed(by.index)
		}
		c := &b.t.slices[by.index]
		if !b.add(segment{Kind: inCall, Name: c.name, Begin: c.begin, End: c.end, node: by, known: true}) {
			return -1
		}
		at, track = c.begin, c.track
	}
}

func (b *backward) nodeName(n node) string {
	if n.host {
		return b.t.slices[n.index].name
	}
	return b.t.subs[n.index].title
}

// deviceName is the displayed name of a device.
func (t *trace) deviceName(d int) string {
	return cmp.Or(t.devices[d].args.Name, t.devices[d].args.Model, "device")
}

// shortName is a device's name without its model.
func (t *trace) shortName(d int) string {
	name := t.deviceName(d)
	if short := strings.TrimSuffix(name, ": "+t.devices[d].args.Model); short != "" {
		return short
	}
	return name
}
