package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/internal/traceformat"
)

//go:embed web/page.html
var pageHTML string

//go:embed web/page.css
var pageCSS string

// pageJS is web/viewer.js with the parts of d3 that it uses, bundled by web/build.sh.
//
//go:embed web/viewer.min.js
var pageJS string

// maxPageSlices is the greatest number of slices of a page that a browser can open.
const maxPageSlices = 2_000_000

// writePage writes a page with the trace and its summary. The page needs nothing else: it contains
// the data, compressed, and its policy forbids all other addresses.
func writePage(w io.Writer, t *trace, s *summary) error {
	data := newPageData(t, s)
	if n := len(data.Slices.Name); n > maxPageSlices {
		return fmt.Errorf("%s are too many for a page; the limit is %s: choose a part with -from and -to", count(n, "slice"), number(maxPageSlices))
	}
	head, rest, ok1 := strings.Cut(pageHTML, "{{css}}")
	middle, rest, ok2 := strings.Cut(rest, "{{data}}")
	between, tail, ok3 := strings.Cut(rest, "{{js}}")
	if !ok1 || !ok2 || !ok3 {
		return fmt.Errorf("the template of the page is broken")
	}
	sum := sha256.Sum256([]byte(pageJS))
	title := strings.NewReplacer("{{title}}", html.EscapeString(data.Title))
	head, middle = title.Replace(head), title.Replace(middle)
	head = strings.ReplaceAll(head, "{{hash}}", base64.StdEncoding.EncodeToString(sum[:]))
	out := bufio.NewWriter(w)
	out.WriteString(head)
	out.WriteString(pageCSS)
	out.WriteString(middle)
	enc := base64.NewEncoder(base64.StdEncoding, out)
	zip := gzip.NewWriter(enc)
	for _, f := range []func() error{func() error { return json.NewEncoder(zip).Encode(data) }, zip.Close, enc.Close} {
		if err := f(); err != nil {
			return err
		}
	}
	out.WriteString(between)
	out.WriteString(pageJS)
	out.WriteString(tail)
	return out.Flush()
}

// pageData is the input of the page's script. In slices and submissions a text is an index into
// Strings. Moments are in nanoseconds from Begin, and -1 means unknown.
type pageData struct {
	Title     string           `json:"title"`
	Version   string           `json:"version"`
	Begin     traceformat.Time `json:"begin"`
	Length    traceformat.Time `json:"length"`
	Summary   *summary         `json:"summary"`
	Strings   []string         `json:"strings"`
	Processes []pageProcess    `json:"processes"`
	Tracks    []pageTrack      `json:"tracks"`
	Slices    pageSlices       `json:"slices"` // by row, and in a row by begin
	Subs      pageSubs         `json:"subs"`
	From      []int            `json:"from"` // by arrow, the slice where it begins
	To        []int            `json:"to"`   // by arrow, the slice where it ends
	Counters  []pageCounter    `json:"counters"`
	Instants  []pageInstant    `json:"instants"`
}

type pageProcess struct {
	Title string `json:"title"`
	Kind  string `json:"kind"`
}

type pageTrack struct {
	Title   string `json:"title"`
	Kind    string `json:"kind"`
	Process int    `json:"process"`
	Rows    []int  `json:"rows"` // number of slices of each row
	More    int    `json:"more"` // slices that overlap others in the last row
}

// Kinds of slices on the page.
const (
	pageDevice = iota
	pageCommand
	pageCall
	pageWait
	pageQueue
	pagePath
	pageIdle
)

type pageSlices struct {
	Begin []traceformat.Time `json:"begin"` // nanoseconds from the begin of the slice before it in the row
	Dur   []traceformat.Time `json:"dur"`
	Name  []int              `json:"name"`
	Kind  []int              `json:"kind"`
	Sub   []int              `json:"sub"`
	Note  []int              `json:"note"` // lines of further text
}

type pageSubs struct {
	ID        []uint64           `json:"id"`
	Queue     []int              `json:"queue"` // title of the queue
	Submitted []traceformat.Time `json:"submitted"`
	Issued    []traceformat.Time `json:"issued"`
	Begun     []traceformat.Time `json:"begun"`
	Ended     []traceformat.Time `json:"ended"`
	Done      []traceformat.Time `json:"done"`
	Parked    []int              `json:"parked"`
	Op        []int              `json:"op"`
	Note      []int              `json:"note"`
	Waits     []int              `json:"waits"`
	Signals   []int              `json:"signals"`
	Error     []int              `json:"error"`
}

type pageCounter struct {
	Title   string             `json:"title"`
	Process int                `json:"process"`
	Series  []string           `json:"series"`
	Time    []traceformat.Time `json:"time"`
	Values  [][]int64          `json:"values"` // by series
	Max     int64              `json:"max"`    // of all values, at least 0
}

type pageInstant struct {
	Time    traceformat.Time `json:"time"`
	Process int              `json:"process"`
	Kind    string           `json:"kind"`
	Text    string           `json:"text"`
}

type pageMaker struct {
	pageData
	t         *trace
	texts     map[string]int
	processes map[int64]int
	ofSlice   []int // by slice of the trace, its index on the page
	ofQueue   []int // by submission, the index on the page of its slice on the queue's track
}

// A box is a slice of the page that has no row yet.
type box struct {
	begin, end traceformat.Time
	name       string
	kind, sub  int
	note       string
	slice      int // the slice of the trace that the box shows, or -1
	queued     int // the submission that the box shows on a queue's track, or -1
}

func newPageData(t *trace, s *summary) *pageData {
	m := &pageMaker{t: t, texts: map[string]int{}, processes: map[int64]int{}, ofSlice: make([]int, len(t.slices)), ofQueue: make([]int, len(t.subs))}
	short := *s
	short.Critical = nil // it is a track of the page
	m.Begin, m.Length, m.Summary = t.begin, max(t.end-t.begin, 1), &short
	m.Version = programVersion(t)
	m.Title = "trace"
	for i, p := range t.programs {
		if i == 0 && p.args.Program != "" {
			m.Title = clean(p.args.Program, 60)
		} else if i == 1 {
			m.Title += fmt.Sprintf(" and %d more", len(t.programs)-1)
		}
	}
	m.text("")
	m.subs()
	// The boxes of each track.
	boxes := make([][]box, len(t.tracks))
	for i := range t.slices {
		x := &t.slices[i]
		kind := map[string]int{traceformat.CatDevice: pageDevice, traceformat.CatCommand: pageCommand, traceformat.CatCall: pageCall}
		k, ok := kind[x.cat]
		if !ok {
			k = pageWait
		}
		b := box{begin: x.begin, end: x.end, name: x.name, kind: k, sub: x.sub, slice: i, queued: -1}
		if k != pageDevice {
			b.note = noteOf(x.args)
		}
		if k == pageWait {
			b.note = joined(b.note, "waits for\t"+pointsText(x.args.Waits, " ≥ "))
		}
		boxes[x.track] = append(boxes[x.track], b)
	}
	for i := range t.subs {
		x := &t.subs[i]
		end := x.last()
		if x.done == unknown {
			end = t.end
		}
		boxes[x.queue] = append(boxes[x.queue], box{begin: x.submitted, end: end, name: x.title, kind: pageQueue, sub: i, slice: -1, queued: i})
	}
	if len(s.Critical) > 0 {
		path := make([]box, 0, len(s.Critical))
		for _, x := range s.Critical {
			b := box{begin: x.Begin, end: x.End, name: x.label(), kind: pagePath, sub: -1, note: kindWords[x.Kind], slice: -1, queued: -1}
			if x.known && !x.node.host {
				b.sub = x.node.index
			}
			path = append(path, b)
		}
		m.Processes = append(m.Processes, pageProcess{"Critical path", "path"})
		m.rows("what the end had to wait for", "path", 0, path)
	}
	pid := int64(-1)
	var host []box // of all tracks of a process; their order has no meaning
	finishProcess := func() {
		if pid < 0 {
			return
		}
		if len(host) > 0 {
			m.rows("calls and waits", traceformat.KindHost, m.processes[pid], host)
			host = nil
		}
		m.counters(pid)
	}
	for i := range t.tracks {
		k := &t.tracks[i]
		if k.pid != pid {
			finishProcess()
			pid = k.pid
			kind := traceformat.KindHost
			if k.device >= 0 {
				kind = traceformat.KindDevice
			}
			m.processes[pid] = len(m.Processes)
			m.Processes = append(m.Processes, pageProcess{cmp.Or(clean(k.process, 80), fmt.Sprintf("process %d", pid)), kind})
			if k.device >= 0 {
				m.idle(s, k.device)
			}
		}
		if k.kind == traceformat.KindHost {
			host = append(host, boxes[i]...)
		} else if len(boxes[i]) > 0 {
			m.rows(clean(k.title, 80), k.kind, m.processes[pid], boxes[i])
		}
	}
	finishProcess()
	for _, e := range t.edges {
		m.From, m.To = append(m.From, m.node(e.from)), append(m.To, m.node(e.to))
	}
	for _, x := range t.instants {
		text := x.name
		switch x.cat {
		case traceformat.CatDrop:
			text = count(x.args.Dropped, "record") + " missing from the trace"
		case traceformat.CatClock:
			text = fmt.Sprintf("clock fit: %+.3g ppm, times within ±%s", x.args.Rate, duration(x.args.Margin))
		case traceformat.CatLoss:
			text = x.name + ": " + x.args.Error
		}
		p, ok := m.processes[x.pid]
		if !ok {
			p = -1
		}
		m.Instants = append(m.Instants, pageInstant{x.time - t.begin, p, x.cat, clean(text, 400)})
	}
	return &m.pageData
}

func programVersion(t *trace) string {
	if len(t.programs) == 0 {
		return ""
	}
	a := &t.programs[0].args
	return clean(strings.TrimSpace(a.Version+" "+a.Go), 80)
}

func (m *pageMaker) text(s string) int {
	i, ok := m.texts[s]
	if !ok {
		i = len(m.Strings)
		m.texts[s] = i
		m.Strings = append(m.Strings, s)
	}
	return i
}

// moment returns a time of the trace on the page, or -1 if the time is unknown.
func (m *pageMaker) moment(t traceformat.Time) traceformat.Time {
	if t == unknown {
		return -1
	}
	return t - m.Begin
}

func (m *pageMaker) subs() {
	s := &m.Subs
	for i := range m.t.subs {
		x := &m.t.subs[i]
		s.ID = append(s.ID, x.id)
		s.Queue = append(s.Queue, m.text(m.t.tracks[x.queue].title))
		s.Submitted, s.Issued = append(s.Submitted, m.moment(x.submitted)), append(s.Issued, m.moment(x.issued))
		s.Begun, s.Ended, s.Done = append(s.Begun, m.moment(x.begun)), append(s.Ended, m.moment(x.ended)), append(s.Done, m.moment(x.done))
		parked := 0
		if x.parked {
			parked = 1
		}
		s.Parked = append(s.Parked, parked)
		s.Op, s.Note, s.Error = append(s.Op, m.text(x.args.Op)), append(s.Note, m.text(noteOf(&x.args))), append(s.Error, m.text(x.err))
		s.Waits, s.Signals = append(s.Waits, m.text(pointsText(x.args.Waits, " ≥ "))), append(s.Signals, m.text(pointsText(x.args.Signals, " = ")))
	}
}

// rows adds a track, and packs its slices into as few rows as possible without overlap. A nested
// slice is in a row below the outer one. Slices for which there is no row left are in the last row,
// where they overlap others.
func (m *pageMaker) rows(title, kind string, process int, boxes []box) {
	limit := 64
	switch kind {
	case traceformat.KindQueue:
		limit = 6
	case traceformat.KindHost:
		limit = 12
	}
	slices.SortStableFunc(boxes, func(a, b box) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end)) })
	var rows [][]box
	more := 0
	for _, b := range boxes {
		r := 0
		for r < len(rows) && rows[r][len(rows[r])-1].end > b.begin {
			r++
		}
		if r == limit {
			r, more = r-1, more+1
		}
		if r == len(rows) {
			rows = append(rows, nil)
		}
		rows[r] = append(rows[r], b)
	}
	t := pageTrack{Title: title, Kind: kind, Process: process, More: more}
	s := &m.Slices
	for _, row := range rows {
		t.Rows = append(t.Rows, len(row))
		last := m.Begin
		for _, b := range row {
			n := len(s.Name)
			switch {
			case b.slice >= 0:
				m.ofSlice[b.slice] = n
			case b.queued >= 0:
				m.ofQueue[b.queued] = n
			}
			s.Begin, s.Dur = append(s.Begin, b.begin-last), append(s.Dur, b.end-b.begin)
			s.Name, s.Kind, s.Sub, s.Note = append(s.Name, m.text(b.name)), append(s.Kind, b.kind), append(s.Sub, b.sub), append(s.Note, m.text(b.note))
			last = b.begin
		}
	}
	m.Tracks = append(m.Tracks, t)
}

// node returns the index on the page of the slice that shows a node.
func (m *pageMaker) node(n node) int {
	if n.host {
		return m.ofSlice[n.index]
	}
	if s := m.t.subs[n.index].slice; s >= 0 {
		return m.ofSlice[s]
	}
	return m.ofQueue[n.index]
}

// idle adds a track with the gaps of a device.
func (m *pageMaker) idle(s *summary, device int) {
	var boxes []box
	for _, p := range s.pieces {
		if p.device == device {
			boxes = append(boxes, box{begin: p.begin, end: p.end, name: p.cause, kind: pageIdle, sub: -1, note: p.kind, slice: -1, queued: -1})
		}
	}
	if len(boxes) > 0 {
		m.rows("idle, and for what", "idle", m.processes[m.t.devices[device].pid], boxes)
	}
}

func (m *pageMaker) counters(pid int64) {
	byName := map[string]*pageCounter{}
	var order []string
	for _, c := range m.t.counters {
		if c.pid != pid {
			continue
		}
		p := byName[c.name]
		if p == nil {
			p = &pageCounter{Title: c.name, Process: m.processes[pid]}
			for _, s := range c.series {
				p.Series = append(p.Series, s.Name)
			}
			p.Values = make([][]int64, len(p.Series))
			byName[c.name] = p
			order = append(order, c.name)
		}
		p.Time = append(p.Time, c.time-m.Begin)
		for i := range p.Series {
			v := int64(0)
			if i < len(c.series) {
				v = c.series[i].Value
			}
			p.Values[i] = append(p.Values[i], v)
			p.Max = max(p.Max, v)
		}
	}
	for _, name := range order {
		m.Counters = append(m.Counters, *byName[name])
	}
}

// noteOf returns details of an operation or a call, a line each.
func noteOf(a *traceformat.Args) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			b.WriteString(name + "\t" + value + "\n")
		}
	}
	line("label", a.Label)
	line("kernel", a.Kernel)
	line("grid", dims(a.Grid))
	line("block", dims(a.Block))
	if a.Bytes > 0 {
		line("bytes", number(a.Bytes))
	}
	if a.Margin > 0 {
		line("off by up to", duration(a.Margin))
	}
	if a.Early > 0 {
		line("may have begun", duration(a.Early)+" earlier")
	}
	if a.Commands > 0 {
		line("commands", number(a.Commands))
	}
	if a.Command > 0 {
		line("command", number(a.Command))
	}
	line("communicator", a.Channel)
	if a.Collective > 0 {
		line("collective", number(a.Collective))
	}
	if a.Ranks > 0 {
		line("rank", fmt.Sprintf("%d of %d", a.Rank, a.Ranks))
	}
	if len(a.Signals) > 0 && a.Sub == 0 {
		line("signals", pointsText(a.Signals, " = "))
	}
	line("error", a.Error)
	return strings.TrimSuffix(b.String(), "\n")
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

func dims(d [3]uint32) string {
	if d == [3]uint32{} {
		return ""
	}
	return fmt.Sprintf("%d × %d × %d", d[0], d[1], d[2])
}

func pointsText(points []traceformat.Point, relation string) string {
	list := make([]string, len(points))
	for i, p := range points {
		name := p.Name
		if name == "" {
			name = "semaphore " + strconv.FormatUint(p.Semaphore, 10)
		}
		list[i] = name + relation + number(p.Value)
	}
	return strings.Join(list, ", ")
}
