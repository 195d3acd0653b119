package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/puregpu/puregpu/internal/traceformat"
)

// print writes the summary as text. top is the greatest number of rows of a table.
func (s *summary) print(w io.Writer, top int) error {
	var b strings.Builder
	if s.onlyKernels {
		s.printKernels(&b, top)
		_, err := io.WriteString(w, b.String())
		return err
	}
	s.head(&b)
	if len(s.Devices) > 0 {
		s.printDevices(&b)
	}
	if len(s.Queues) > 0 {
		s.printQueues(&b, top)
	}
	printOperations(&b, "Longest operations, by kind", s.Longest, top)
	printCommands(&b, "Commands of recordings", s.Commands, top)
	s.printCritical(&b, top)
	s.printStarved(&b, top)
	printOperations(&b, "Host, by kind of call and wait", s.Host, top)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *summary) head(b *strings.Builder) {
	names := make([]string, 0, len(s.Programs))
	for _, p := range s.Programs {
		names = append(names, p.Program)
	}
	title := ""
	if len(names) > 0 {
		title = clean(names[0], 60)
	}
	if len(names) > 1 {
		title = fmt.Sprintf("%s and %d more ranks", title, len(names)-1)
	}
	fmt.Fprintf(b, "%s: %s from the first submission to the end of the last, %s\n", title, duration(s.End-s.Begin), count(s.Submissions, "submission"))
	if s.Failed > 0 {
		fmt.Fprintf(b, "%d failed, the first: %s\n", s.Failed, clean(s.FirstError, 200))
	}
	for _, err := range s.Lost {
		fmt.Fprintf(b, "a device or a communicator was lost: %s\n", clean(err, 200))
	}
	if s.Unfinished > 0 {
		fmt.Fprintf(b, "%s had not ended when the trace did", count(s.Unfinished, "submission"))
		if s.Cut {
			b.WriteString(", which has no end: the program died, or still runs")
		}
		b.WriteByte('\n')
	}
	if s.Untimed > 0 {
		fmt.Fprintf(b, "%s no device times, because they could not be recorded: times and numbers of operations below lack them\n", have(s.Untimed, "submission"))
	}
	if s.UntimedCommands > 0 {
		fmt.Fprintf(b, "%s no device times, because they could not be recorded\n", have(s.UntimedCommands, "command"))
	}
	if s.Graphs > 0 {
		b.WriteString(s.CommandTimes.Note + "\n")
	}
	if s.Inexact > 0 {
		fmt.Fprintf(b, "%s off by up to %s, because the host was slow to submit: see their margins\n", may(s.Inexact, "operation or command", "operations or commands"), duration(s.InexactBy))
	}
	if s.Arrowless > 0 {
		fmt.Fprintf(b, "%s no arrow: by the known times the signal did not come first, or one of the two was too long ago\n", have(int(s.Arrowless), "wait"))
	}
	if s.Dropped > 0 {
		fmt.Fprintf(b, "%s missing, because the trace could not be written fast enough: the numbers below lack them\n", count(s.Dropped, "record"))
	}
}

// may formats a count, a noun and "may be".
func may(n int, one, more string) string {
	if n == 1 {
		return "1 " + one + " may be"
	}
	return number(n) + " " + more + " may be"
}

// have formats a count, a noun, and "has" or "have".
func have(n int, what string) string {
	if n == 1 {
		return count(n, what) + " has"
	}
	return count(n, what) + " have"
}

func (s *summary) printDevices(b *strings.Builder) {
	t := table{head: []string{"Device", "busy", "", "for other ranks", "idle", "overlap", "operations", "streams", "times within"}, left: 1}
	untimed := false
	anyPeers := slices.ContainsFunc(s.Devices, func(d deviceSummary) bool { return d.Peers > 0 })
	if !anyPeers {
		t.head[3] = ""
	}
	for _, d := range s.Devices {
		margin := ""
		if d.Margin > 0 {
			margin = "±" + duration(d.Margin)
		}
		peers := ""
		if anyPeers {
			peers = duration(d.Peers)
		}
		if d.Operations == 0 { // then it has no known times
			t.add(clean(d.Name, 40), "?", "", "", "?", "?", "?", "?", "")
			untimed = untimed || d.Window > 0
			continue
		}
		t.add(clean(d.Name, 40), duration(d.Busy), percent(d.Busy, d.Window), peers, duration(d.Idle), duration(d.Overlap), number(d.Operations), number(d.Streams), margin)
	}
	t.write(b)
	if untimed {
		b.WriteString("The trace has no times of a device: of its work it is known when it was issued, and when the host saw that it was done.\n")
	}
	for _, d := range s.Devices {
		if d.Unknown > 0 {
			fmt.Fprintf(b, "%s: during %s of the idle time the host was in calls that gave it work; part of that work may have run then.\n", clean(d.Name, 40), duration(d.Unknown))
		}
	}
	if s.Together > 0 {
		fmt.Fprintf(b, "At least two devices were busy for %s.\n", duration(s.Together))
	}
}

func (s *summary) printQueues(b *strings.Builder, top int) {
	t := table{head: []string{"Queue", "submissions", "busy", "", "overlap", "to issue: p50", "p99", "max", "parked", "to start: p50", "to see: p50"}, left: 1}
	for i, q := range s.Queues {
		if i == top {
			t.more(len(s.Queues) - top)
			break
		}
		name := clean(q.Name, 30)
		if len(s.Devices) > 1 {
			name = clean(q.Device, 24) + ", " + name
		}
		row := []string{name, number(q.Submissions), duration(q.Busy), percent(q.Busy, q.Window), duration(q.Overlap),
			duration(q.Issue.P50), duration(q.Issue.P99), duration(q.Issue.Max), number(q.Parked.Count), duration(q.Start.P50), duration(q.Seen.P50)}
		if q.Seen.Count == 0 {
			row[2], row[3], row[4], row[9], row[10] = "?", "", "?", "?", "?"
		}
		t.add(row...)
	}
	t.write(b)
}

func printOperations(b *strings.Builder, title string, list []operationSummary, top int) {
	if len(list) == 0 {
		return
	}
	var total traceformat.Time
	anyBytes := false
	for _, o := range list {
		total += o.Total
		anyBytes = anyBytes || o.Bytes > 0
	}
	t := table{head: []string{title, "count", "total", "", "mean", "longest", "at"}, left: 1}
	if anyBytes {
		t.head = append(t.head, "rate")
	}
	for i, o := range list {
		if i == top {
			t.more(len(list) - top)
			break
		}
		name := clean(o.Name, 40)
		if o.Op != "" && o.Op != o.Name {
			name += " (" + clean(o.Op, 20) + ")"
		}
		row := []string{name, number(o.Count), duration(o.Total), percent(o.Total, total), duration(o.Mean), duration(o.Max), duration(o.MaxAt)}
		if anyBytes {
			row = append(row, rate(o.Bandwidth))
		}
		t.add(row...)
	}
	t.write(b)
}

func (s *summary) printCritical(b *strings.Builder, top int) {
	if len(s.Critical) == 0 {
		return
	}
	t := table{head: []string{"Critical path", "total", "", "times"}, left: 1}
	for _, k := range s.CriticalN {
		t.add(kindWords[k.Kind], duration(k.Total), percent(k.Total, s.End-s.Begin), number(k.Count))
	}
	t.write(b)
	// Print the longest parts of the path, added up by name.
	sums := map[string]*operationSummary{}
	for _, x := range s.Critical {
		name := x.label()
		o := sums[name]
		if o == nil {
			o = &operationSummary{Name: name, MaxAt: x.Begin}
			sums[name] = o
		}
		o.Count++
		o.Total += x.End - x.Begin
		if d := x.End - x.Begin; d > o.Max {
			o.Max, o.MaxAt = d, x.Begin
		}
	}
	printOperations(b, "What is on it", ranking(sums), top)
}

var kindWords = map[string]string{
	onDevice: "operations on a device",
	toStart:  "from issued to begun",
	toGive:   "the host still gave work that may have run",
	toIssue:  "from submitted to issued",
	toSee:    "until the host saw the end",
	inCall:   "calls of the host",
	inWait:   "waits of the host for something else",
	onHost:   "the host's own work",
}

// label names a segment of the critical path.
func (x *segment) label() string {
	switch x.Kind {
	case onDevice:
		return x.Name + " on " + x.Device
	case inCall:
		return "call: " + x.Name
	}
	return kindWords[x.Kind]
}

func (s *summary) printStarved(b *strings.Builder, top int) {
	if len(s.Starved) == 0 {
		return
	}
	var total traceformat.Time
	for _, x := range s.Starved {
		total += x.Total
	}
	t := table{head: []string{"Idle devices waited for", "total", "", "gaps", "longest", "at"}, left: 1}
	for i, x := range s.Starved {
		if i == top {
			t.more(len(s.Starved) - top)
			break
		}
		cause := clean(x.Cause, 70)
		if len(s.Devices) > 1 {
			cause = clean(x.Device, 24) + ": " + cause
		}
		t.add(cause, duration(x.Total), percent(x.Total, total), number(x.Count), duration(x.Max), duration(x.MaxAt))
	}
	t.write(b)
}

// A table has columns as wide as their contents.
type table struct {
	head []string
	rows [][]string
	left int    // number of columns aligned on the left; later columns are aligned on the right
	tail string // a line below
}

func (t *table) add(row ...string) { t.rows = append(t.rows, row) }

func (t *table) more(n int) { t.tail = fmt.Sprintf("and %s more (-top)\n", number(n)) }

func (t *table) write(b *strings.Builder) {
	width := make([]int, len(t.head))
	rows := append([][]string{t.head}, t.rows...)
	for _, row := range rows {
		for i, v := range row {
			width[i] = max(width[i], utf8.RuneCountInString(v))
		}
	}
	b.WriteByte('\n')
	for _, row := range rows {
		var line strings.Builder
		for i, v := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(v))
			switch {
			case width[i] == 0:
			case i == 0:
				line.WriteString(v + pad)
			case i < t.left:
				line.WriteString("  " + v + pad)
			default:
				line.WriteString("  " + pad + v)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	b.WriteString(t.tail)
}

// duration formats a time with up to three digits and a unit.
func duration(t traceformat.Time) string {
	v, sign := float64(t), ""
	if v < 0 {
		v, sign = -v, "-"
	}
	if v == 0 {
		return "0"
	}
	units := []struct {
		in   float64
		name string
	}{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}
	for i, u := range units {
		x := v / u.in
		if i < len(units)-1 && x >= 999.5 {
			continue
		}
		switch {
		case i == 0 || x >= 99.95:
			return fmt.Sprintf("%s%.0f %s", sign, x, u.name)
		case x >= 9.995:
			return fmt.Sprintf("%s%.1f %s", sign, x, u.name)
		default:
			return fmt.Sprintf("%s%.2f %s", sign, x, u.name)
		}
	}
	panic("unreachable")
}

func percent(part, whole traceformat.Time) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

func rate(bytesPerSecond float64) string {
	for _, u := range []struct {
		in   float64
		name string
	}{{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}} {
		if bytesPerSecond >= u.in {
			return fmt.Sprintf("%.3g %s", bytesPerSecond/u.in, u.name)
		}
	}
	return ""
}

// number formats an integer with commas.
func number[T int | uint64](n T) string {
	s := strconv.FormatUint(uint64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func count[T int | uint64](n T, what string) string {
	if n != 1 {
		what += "s"
	}
	return number(n) + " " + what
}

// clean returns s on one line of at most n characters, with '·' for characters that cannot be
// printed.
func clean(s string, n int) string {
	out := make([]rune, 0, min(len(s), n))
	for _, r := range s {
		if len(out) == n {
			out[n-1] = '…'
			break
		}
		if !unicode.IsPrint(r) {
			r = '·'
		}
		out = append(out, r)
	}
	return string(out)
}
