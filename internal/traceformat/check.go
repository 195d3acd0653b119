package traceformat

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// PIDRange is the number of process numbers that one program may use, for itself and its devices.
// In a merged file the numbers of program i, from 0, begin at i times PIDRange. Numbers of
// submissions and semaphores are unique within a program.
const PIDRange = 1000

// MaxProblems is the largest number of problems that a [Report] lists.
const MaxProblems = 100

// A Problem is a rule that a trace breaks.
type Problem struct {
	Event int // number of the event in the file, from 1; 0 for the whole file
	Text  string
}

func (p Problem) String() string {
	if p.Event == 0 {
		return p.Text
	}
	return fmt.Sprintf("event %d: %s", p.Event, p.Text)
}

// A Report is the result of [Check].
type Report struct {
	Events      int
	Submissions int
	Slices      int // complete events
	Arrows      int // flows with both ends
	Cut         bool
	Problems    []Problem // the first MaxProblems
	More        int       // number of further problems
}

// Check reads a trace and reports violations of the format and of docs/trace-format.md. In a cut
// file, events missing at the end are not problems. Check returns an error if it cannot continue
// reading. It needs some hundred bytes of memory for each event.
func Check(r io.Reader) (*Report, error) {
	c := &checker{
		tracks:   map[track]*checkedTrack{},
		async:    map[asyncKey]*checkedAsync{},
		flows:    map[flowKey]*checkedFlow{},
		subs:     map[subKey]*checkedSub{},
		kinds:    map[int64]string{},
		programs: map[int64]bool{},
		commands: map[commandKey]bool{},
	}
	rd := NewReader(r)
	var e Event
	for {
		faults, err := rd.next(&e)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		c.n++
		for _, f := range faults {
			c.problem(c.n, "%s", f)
		}
		c.event(&e)
	}
	c.report.Cut = rd.Cut()
	c.cut = c.cut || rd.Cut()
	c.finish()
	c.report.Events = c.n
	return &c.report, nil
}

type track struct{ pid, tid int64 }
type asyncKey struct {
	pid int64
	cat string
	id  uint64
}
type flowKey struct {
	cat string
	id  uint64
}
type subKey struct {
	program int64
	sub     uint64
}

type commandKey struct {
	program   int64
	recording uint64
	command   int
}

type span struct {
	begin, end Time
	event      int
	parent     int // index of the enclosing slice, or -1
	name, cat  string
	sub        uint64
	waits      []Point // what a wait, or a call on the host's track, waits for
	signals    []Point // signals of a call
	more       bool    // the event had no room for all points
}

type checkedTrack struct {
	kind  string
	named bool
	first int // number of the first event that used the track
	spans []span
	open  []string // names of the B events that wait for their E
}

type checkedAsync struct {
	stack []string
	last  Time
	first int
	ended bool
}

type flowEnd struct {
	track track
	time  Time
	event int
}
type checkedFlow struct {
	begin *flowEnd
	ends  []flowEnd
}

type checkedSub struct {
	event              int
	begin, done        Time
	issued             Time
	ended              bool
	waits, signals     []Point
	more               bool // the event had no room for all points
	devBegin, devEnd   Time
	devEvent, devCount int
}

type checker struct {
	n        int
	cut      bool // at least one program's events are incomplete
	report   Report
	tracks   map[track]*checkedTrack
	async    map[asyncKey]*checkedAsync
	flows    map[flowKey]*checkedFlow
	subs     map[subKey]*checkedSub
	kinds    map[int64]string    // kind of each process
	programs map[int64]bool      // programs, as process number / PIDRange, that have a MetaTrace event
	commands map[commandKey]bool // listed commands of recordings
	moments  map[momentKey]*moment
}

func (c *checker) problem(event int, format string, args ...any) {
	if len(c.report.Problems) == MaxProblems {
		c.report.More++
		return
	}
	c.report.Problems = append(c.report.Problems, Problem{event, fmt.Sprintf(format, args...)})
}

func (c *checker) track(e *Event) *checkedTrack {
	k := track{e.PID, e.TID}
	t := c.tracks[k]
	if t == nil {
		t = &checkedTrack{first: c.n}
		c.tracks[k] = t
	}
	return t
}

func (c *checker) event(e *Event) {
	switch e.Phase {
	case Metadata:
		c.metadata(e)
	case Begin:
		t := c.track(e)
		t.open = append(t.open, e.Name)
	case End:
		t := c.track(e)
		if len(t.open) == 0 {
			c.problem(c.n, "E without B on track %d/%d", e.PID, e.TID)
			return
		}
		t.open = t.open[:len(t.open)-1]
	case Complete:
		c.complete(e)
	case AsyncBegin, AsyncStep, AsyncEnd:
		c.asyncEvent(e)
	case FlowBegin, FlowStep, FlowEnd:
		c.flow(e)
	case Instant:
		switch e.Cat {
		case CatCut:
			c.cut = true
		case CatDrop:
			if e.Args.Dropped == 0 || e.Args.Total < e.Args.Dropped {
				c.problem(c.n, "a drop of %d of %d submissions", e.Args.Dropped, e.Args.Total)
			}
		case CatArrows:
			if e.Args.Undrawn == 0 && e.Args.Forgotten == 0 {
				c.problem(c.n, "no arrow is missing")
			}
		case CatLoss:
			if e.Args.Error == "" {
				c.problem(c.n, "a loss without an error")
			}
		}
	case Counter:
		for _, s := range e.Args.Series {
			if s.Value < 0 {
				c.problem(c.n, "counter %q: %q is negative", e.Name, s.Name)
			}
		}
	}
}

func (c *checker) metadata(e *Event) {
	switch e.Name {
	case MetaTrace:
		switch {
		case e.Args.Format < 1:
			c.problem(c.n, "%q without the version of the format", MetaTrace)
		case e.Args.Format > Version:
			c.problem(c.n, "the format has version %d, newer than %d", e.Args.Format, Version)
		}
		if e.Args.Unix == 0 {
			c.problem(c.n, "%q without \"unix_ns\"", MetaTrace)
		}
		if p := e.PID / PIDRange; c.programs[p] {
			c.problem(c.n, "%q twice for the processes from %d on", MetaTrace, p*PIDRange)
		} else {
			c.programs[p] = true
		}
	case MetaCommand:
		if e.Args.Recording == 0 || e.Args.Op == "" {
			c.problem(c.n, "%q without a recording or an operation", MetaCommand)
		}
		c.commands[commandKey{e.PID / PIDRange, e.Args.Recording, e.Args.Command}] = true
	case MetaProcess:
		if e.Args.Name == "" {
			c.problem(c.n, "%s without a name", e.Name)
		}
		if k := e.Args.Kind; k != KindHost && k != KindDevice {
			c.problem(c.n, "process %d is of kind %q", e.PID, k)
		}
		c.kinds[e.PID] = e.Args.Kind
	case MetaThread:
		if e.Args.Name == "" {
			c.problem(c.n, "%s without a name", e.Name)
		}
		t := c.track(e)
		t.named, t.kind = true, e.Args.Kind
		switch t.kind {
		case KindHost, KindQueue, KindStream, KindChannel, KindNodes:
		default:
			c.problem(c.n, "track %d/%d is of kind %q", e.PID, e.TID, t.kind)
		}
	}
}

func (c *checker) complete(e *Event) {
	c.report.Slices++
	t := c.track(e)
	s := span{begin: e.Time, end: e.Time + e.Dur, event: c.n, name: e.Name, cat: e.Cat}
	switch e.Cat {
	case CatDevice, CatCommand:
		s.sub = e.Args.Sub
		if s.sub == 0 && (e.Cat == CatDevice || e.Args.Recording == 0) {
			c.problem(c.n, "a slice of category %q without the number of its submission (\"sub\")", e.Cat)
		}
		if k := (commandKey{e.PID / PIDRange, e.Args.Recording, e.Args.Command}); e.Cat == CatCommand && k.recording != 0 && !c.commands[k] {
			c.problem(c.n, "command %d of recording %d runs and is not listed (%q)", k.command, k.recording, MetaCommand)
		}
		if e.Cat == CatDevice && s.sub != 0 {
			d := c.sub(e)
			d.devBegin, d.devEnd, d.devEvent = s.begin, s.end, c.n
			if d.devCount++; d.devCount > 1 {
				c.problem(c.n, "submission %d is executed twice", s.sub)
			}
		}
	case CatWait, CatCall:
		s.waits, s.signals, s.more, s.sub = e.Args.Waits, e.Args.Signals, e.Args.more(), e.Args.Sub
	default:
		c.problem(c.n, "a slice has category %q", e.Cat)
	}
	t.spans = append(t.spans, s)
}

func (c *checker) sub(e *Event) *checkedSub {
	k := subKey{e.PID / PIDRange, e.Args.Sub}
	s := c.subs[k]
	if s == nil {
		s = &checkedSub{}
		c.subs[k] = s
	}
	return s
}

func (c *checker) asyncEvent(e *Event) {
	c.track(e)
	k := asyncKey{e.PID, e.Cat, e.ID}
	a := c.async[k]
	if a == nil {
		a = &checkedAsync{first: c.n}
		c.async[k] = a
	}
	if e.Time < a.last {
		c.problem(c.n, "async event %q of id %#x is earlier than the one of this id before it in the file", e.Name, e.ID)
	}
	a.last = e.Time
	outer := false
	switch e.Phase {
	case AsyncBegin:
		if outer = len(a.stack) == 0; outer && a.ended {
			c.problem(c.n, "id %#x is used again", e.ID)
		}
		a.stack = append(a.stack, e.Name)
	case AsyncEnd:
		if len(a.stack) == 0 {
			c.problem(c.n, "async end %q of id %#x without a beginning before it in the file", e.Name, e.ID)
			return
		}
		if top := a.stack[len(a.stack)-1]; top != e.Name {
			c.problem(c.n, "async end %q of id %#x inside %q", e.Name, e.ID, top)
		}
		a.stack = a.stack[:len(a.stack)-1]
		outer = len(a.stack) == 0
		a.ended = outer
	}
	if e.Cat != CatSubmission || !outer {
		return
	}
	if e.Phase == AsyncBegin {
		if e.Args.Sub == 0 {
			c.problem(c.n, "a submission without a number (\"sub\")")
			return
		}
		s := c.sub(e)
		if s.event != 0 {
			c.problem(c.n, "submission %d was there before, in event %d", e.Args.Sub, s.event)
		} else {
			c.report.Submissions++
		}
		if e.ID != e.Args.Sub+uint64(e.PID/PIDRange)<<MergedIDBits {
			c.problem(c.n, "submission %d has id %#x", e.Args.Sub, e.ID)
		}
		if e.Args.Op == "" {
			c.problem(c.n, "submission %d without its operation (\"op\")", e.Args.Sub)
		}
		s.event, s.begin, s.waits, s.signals, s.more = c.n, e.Time, e.Args.Waits, e.Args.Signals, e.Args.more()
		return
	}
	if s := c.subs[subKey{e.PID / PIDRange, e.ID & (1<<MergedIDBits - 1)}]; s != nil {
		s.done, s.issued, s.ended = e.Time, e.Args.Issued, true
		if s.issued == 0 && e.Args.Error == "" {
			c.problem(c.n, "submission %d ended well and was never issued", e.ID)
		}
	}
}

func (c *checker) flow(e *Event) {
	c.track(e)
	k := flowKey{e.Cat, e.ID}
	f := c.flows[k]
	if f == nil {
		f = &checkedFlow{}
		c.flows[k] = f
	}
	end := flowEnd{track{e.PID, e.TID}, e.Time, c.n}
	switch e.Phase {
	case FlowBegin:
		if f.begin != nil {
			c.problem(c.n, "flow %#x begins twice", e.ID)
			return
		}
		f.begin = &end
	case FlowEnd:
		if !e.BindEnclosing {
			c.problem(c.n, `flow %#x ends without "bp": "e"`, e.ID)
		}
		f.ends = append(f.ends, end)
	}
}

func (c *checker) finish() {
	if len(c.programs) == 0 && c.n > 0 {
		c.problem(0, "no metadata event %q", MetaTrace)
	}
	tracks := make([]track, 0, len(c.tracks))
	for k := range c.tracks {
		tracks = append(tracks, k)
	}
	slices.SortFunc(tracks, func(a, b track) int { return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.tid, b.tid)) })
	for _, k := range tracks {
		c.finishTrack(k, c.tracks[k])
	}
	var later []Problem // sorted before they are reported, since maps have no order
	add := func(event int, format string, args ...any) {
		later = append(later, Problem{event, fmt.Sprintf(format, args...)})
	}
	for k, a := range c.async {
		if len(a.stack) > 0 && !c.cut {
			add(a.first, "async slice %q of id %#x does not end", a.stack[0], k.id)
		}
	}
	for k, f := range c.flows {
		c.finishFlow(k, f, add)
	}
	for k, s := range c.subs {
		c.finishSub(k, s, add)
	}
	slices.SortStableFunc(later, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Text, b.Text)) })
	for _, p := range later {
		c.problem(p.Event, "%s", p.Text)
	}
}

func (c *checker) finishTrack(k track, t *checkedTrack) {
	if len(t.open) > 0 && !c.cut {
		c.problem(0, "track %d/%d: %q begins (B) and does not end", k.pid, k.tid, t.open[0])
	}
	if !t.named && len(t.spans) > 0 {
		c.problem(t.first, "track %d/%d has no %q", k.pid, k.tid, MetaThread)
	}
	// An outer slice is sorted before its inner ones. If slices have the same begin and end, the
	// order in the file decides.
	slices.SortStableFunc(t.spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end))
	})
	at := -1 // innermost open slice
	for i := range t.spans {
		s := &t.spans[i]
		for at >= 0 && t.spans[at].end <= s.begin {
			at = t.spans[at].parent
		}
		s.parent = at
		if at >= 0 {
			if outer := t.spans[at]; s.end > outer.end {
				c.problem(s.event, "%q overlaps %q of event %d on track %d/%d without lying inside it", s.name, outer.name, outer.event, k.pid, k.tid)
			}
		}
		if s.cat == CatCommand && (at < 0 || t.spans[at].sub != s.sub) && t.kind != KindStream && t.kind != KindChannel && t.kind != KindNodes {
			c.problem(s.event, "a command of submission %d lies on track %d/%d, which is no stream", s.sub, k.pid, k.tid)
		}
		at = i
	}
}

// A moment is a point in time on a track. It holds the signals and waits of all slices that contain
// this point.
type moment struct {
	found   bool
	signals []Point
	waits   []Point
	waiters []uint64            // for each wait, its submission, or 0
	more    bool                // an event had no room for all points
	reached map[uint64][2]reach // for each semaphore, the highest signal, and the highest signal of any other submission
}

// A reach is the value to which a submission signals a semaphore. Submission 0 is the host.
type reach struct{ value, sub uint64 }

type momentKey struct {
	track track
	at    Time
}

// If more slices than this number begin at the same time on a track, the checker caches their
// moment. With a coarse clock, thousands of slices and arrows begin together.
const crowded = 8

// around returns the signals and waits of the slices that contain a point in time on a track. It
// includes all slices that begin at that point.
func (c *checker) around(k track, at Time) *moment {
	if m := c.moments[momentKey{k, at}]; m != nil {
		return m
	}
	t, m := c.tracks[k], &moment{reached: map[uint64][2]reach{}}
	say := func(sub uint64, waits, signals []Point, more bool) {
		m.found, m.more = true, m.more || more
		m.signals, m.waits = append(m.signals, signals...), append(m.waits, waits...)
		for range waits {
			m.waiters = append(m.waiters, sub)
		}
		for _, s := range signals {
			m.reached[s.Semaphore] = further(m.reached[s.Semaphore], reach{s.Value, sub})
		}
	}
	add := func(s *span) {
		say(s.sub, s.waits, s.signals, s.more)
		if sub := c.subs[subKey{k.pid / PIDRange, s.sub}]; s.sub != 0 && sub != nil && s.cat != CatCall { // a call has signals and waits of its own
			say(s.sub, sub.waits, sub.signals, sub.more)
		}
	}
	i, _ := slices.BinarySearchFunc(t.spans, at, func(s span, at Time) int {
		if s.begin <= at {
			return -1
		}
		return 1
	})
	last, outer := i-1, i-1
	for i--; i >= 0 && t.spans[i].begin == at; i-- {
		add(&t.spans[i])
		outer = t.spans[i].parent
	}
	for ; outer >= 0; outer = t.spans[outer].parent {
		if s := &t.spans[outer]; s.end >= at {
			add(s)
		}
	}
	if last-i > crowded {
		if c.moments == nil {
			c.moments = map[momentKey]*moment{}
		}
		c.moments[momentKey{k, at}] = m
	}
	return m
}

func (c *checker) finishFlow(k flowKey, f *checkedFlow, add func(int, string, ...any)) {
	switch {
	case f.begin == nil:
		add(f.ends[0].event, "flow %#x ends and does not begin", k.id)
		return
	case len(f.ends) == 0:
		if !c.cut {
			add(f.begin.event, "flow %#x begins and does not end", k.id)
		}
		return
	}
	from := c.around(f.begin.track, f.begin.time)
	if !from.found {
		add(f.begin.event, "flow %#x begins outside of every slice", k.id)
		return
	}
	for _, end := range f.ends {
		c.report.Arrows++
		if end.track.pid/PIDRange != f.begin.track.pid/PIDRange {
			add(end.event, "flow %#x leads into another program", k.id)
		}
		to := c.around(end.track, end.time)
		ok, itself := from.releases(to)
		switch {
		case !to.found:
			add(end.event, "flow %#x ends outside of every slice", k.id)
		case k.cat != CatSignal || ok:
		case itself != 0:
			add(end.event, "flow %#x leads from submission %d to itself", k.id, itself)
		case !from.more && !to.more:
			add(end.event, "flow %#x leads from %v to a wait for %v", k.id, from.signals, to.waits)
		}
	}
}

// further adds r to two reaches of a semaphore: the highest one, and the highest one of the other
// submissions.
func further(of [2]reach, r reach) [2]reach {
	switch {
	case r.sub == of[0].sub || of[0].value == 0:
		of[0] = reach{max(r.value, of[0].value), r.sub}
	case r.value > of[0].value:
		of = [2]reach{r, of[0]}
	case r.value > of[1].value:
		of[1] = r
	}
	return of
}

// releases reports whether a signal of the first moment (from) releases a wait of the second (to).
// A submission does not release itself: if only a submission's own signal would, the second result
// is the submission's number.
func (from *moment) releases(to *moment) (ok bool, itself uint64) {
	for i, w := range to.waits {
		for _, r := range from.reached[w.Semaphore] {
			switch {
			case r.value < w.Value || r.value == 0:
			case r.sub != 0 && r.sub == to.waiters[i]:
				itself = r.sub
			default:
				return true, 0
			}
		}
	}
	return false, itself
}

func (c *checker) finishSub(k subKey, s *checkedSub, add func(int, string, ...any)) {
	if s.event == 0 {
		if !c.cut {
			add(s.devEvent, "submission %d is executed and was not submitted", k.sub)
		}
		return
	}
	if s.ended && s.issued != 0 && (s.issued < s.begin || s.issued > s.done) {
		add(s.event, "submission %d was issued at %d ns, not between %d, when it was submitted, and %d, when it was done", k.sub, s.issued, s.begin, s.done)
	}
	if s.devCount > 0 {
		if s.devBegin < s.begin {
			add(s.devEvent, "submission %d began at %d ns, before it was submitted at %d", k.sub, s.devBegin, s.begin)
		}
		if s.ended && s.devEnd > s.done {
			add(s.devEvent, "submission %d ended at %d ns, after it was seen done at %d", k.sub, s.devEnd, s.done)
		}
	}
}
