package trace

import (
	"bytes"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// written returns the events that a writer makes from records. It sets the device and the queue of
// the records.
func written(t *testing.T, records ...Record) (events []traceformat.Event) {
	t.Helper()
	tracer, err := NewTracer(TracerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	w := newWriter(tracer, Options{})
	for _, r := range records {
		r.Device, r.Queue = dev, dev.Queue(0)
		if r.Kind != KindSubmission || r.Ended > 0 {
			r.Timed = DeviceTime
		}
		w.add(&r)
	}
	w.end()
	rep, err := traceformat.Check(bytes.NewReader(w.buf))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range rep.Problems {
		t.Error(p)
	}
	r := traceformat.NewReader(bytes.NewReader(w.buf))
	for {
		var e traceformat.Event
		if r.Next(&e) != nil {
			return events
		}
		events = append(events, e)
	}
}

// TestRecordsOutOfOrder writes records of one stream, in another order than the order of the
// stream's work. Each record must get a slice, which must not end after the submission's Done.
func TestRecordsOutOfOrder(t *testing.T) {
	const us = time.Microsecond
	found := map[string]traceformat.Event{}
	for _, e := range written(t,
		Record{ID: 2, Op: "copy", Submitted: 2 * us, Issued: 3 * us, Begun: 20 * us, Ended: 100 * us, Done: 110 * us},
		Record{ID: 1, Op: "execute", Submitted: us, Issued: 2 * us, Begun: 4 * us, Ended: 18 * us, Done: 50 * us},
		Record{Kind: KindCommand, ID: 1, Op: "launch", Begun: 5 * us, Ended: 17 * us},
		Record{ID: 3, Op: "fill", Submitted: 3 * us, Issued: 4 * us, Begun: 90 * us, Ended: 120 * us, Done: 130 * us},
	) {
		if e.Phase == traceformat.Complete {
			found[e.Args.Op] = e
		}
	}
	for op, want := range map[string][2]traceformat.Time{"copy": {20_000, 100_000}, "execute": {50_000, 50_000}, "launch": {50_000, 50_000}, "fill": {100_000, 130_000}} {
		if e, ok := found[op]; !ok || e.Time != want[0] || e.Time+e.Dur != want[1] {
			t.Errorf("%s: a slice from %d to %d; the operation is expected: %v, to end at %d", op, e.Time, e.Time+e.Dur, ok, want)
		}
	}
}

// TestInexactTimes checks the margins of slices. A margin is written if it is clearly larger than
// the margin of the clocks. A slice also says how much earlier its work may have begun: at most
// back to the end of the previous slice.
func TestInexactTimes(t *testing.T) {
	const us = time.Microsecond
	found := map[uint64]traceformat.Event{}
	for _, e := range written(t,
		Record{Kind: KindClock, Done: us, Within: 2 * us},
		Record{ID: 1, Op: "copy", Submitted: us, Issued: 2 * us, Begun: 3 * us, Ended: 30 * us, Done: 40 * us, Within: 4 * us},
		Record{ID: 2, Op: "execute", Submitted: us, Issued: 20 * us, Begun: 100 * us, Ended: 120 * us, Done: 130 * us, Early: 80 * us, Within: 9 * us, UntimedCommands: 1},
		Record{Kind: KindCommand, ID: 2, Command: 1, Op: "fill", Begun: 40 * us, Ended: 60 * us, Early: 15 * us, Within: 9 * us},
		Record{Kind: KindCommand, ID: 2, Command: 2, Op: "fill", Begun: 105 * us, Ended: 119 * us, Early: 5 * us},
	) {
		switch {
		case e.Phase == traceformat.Complete:
			found[10*e.Args.Sub+uint64(e.Args.Command)] = e
		case e.Phase == traceformat.AsyncEnd && e.Args.UntimedCommands != int(e.ID-1):
			t.Errorf("submission %d lacks times of %d commands", e.ID, e.Args.UntimedCommands)
		}
	}
	for of, want := range map[uint64][4]traceformat.Time{10: {3000, 30_000, 0, 0}, 20: {100_000, 120_000, 70_000, 9000},
		21: {40_000, 60_000, 10_000, 9000}, 22: {105_000, 119_000, 5000, 0}} {
		if e := found[of]; want != [4]traceformat.Time{e.Time, e.Time + e.Dur, e.Args.Early, e.Args.Margin} {
			t.Errorf("slice %d is from %d to %d, up to %d earlier, within %d; want %v", of, e.Time, e.Time+e.Dur, e.Args.Early, e.Args.Margin, want)
		}
	}
}

// TestArrowsThatAreMissing checks the counts of missing arrows. An arrow is missing if, by the
// times, the wait ended before the signal, or if the signal was forgotten. Waits for any of several
// points do not count. Neither do waits whose signal is known not to be in the trace.
func TestArrowsThatAreMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("writes more signals than a trace remembers")
	}
	const us = time.Microsecond
	at := func(semaphore, value uint64) []Point {
		return []Point{{Semaphore: semaphore, Value: value}}
	}
	records := []Record{
		{ID: 1, Op: "copy", Submitted: us, Issued: 2 * us, Begun: 3 * us, Ended: 9 * us, Done: 10 * us, Signals: at(1, 5)},
		{Kind: KindWait, Op: "wait", Submitted: us, Done: 11 * us, Waits: at(1, 5)},
		{Kind: KindWait, Op: "wait", Submitted: us, Done: 4 * us, Waits: at(1, 4)}, // by the times, the wait ended before the signal
		{Kind: KindWait, Op: "wait for any", Submitted: us, Done: 4 * us, Waits: at(1, 3)},
		{Kind: KindWait, Op: "wait", Submitted: us, Done: 4 * us, Waits: at(2, 1)}, // its signal is not in the trace
	}
	count := func(records []Record) (arrows int, undrawn, forgotten uint64) {
		for _, e := range written(t, records...) {
			switch {
			case e.Phase == traceformat.FlowEnd:
				arrows++
			case e.Cat == traceformat.CatArrows:
				undrawn, forgotten = e.Args.Undrawn, e.Args.Forgotten
			}
		}
		return arrows, undrawn, forgotten
	}
	if arrows, undrawn, forgotten := count(records); arrows != 1 || undrawn != 1 || forgotten != 0 {
		t.Errorf("%d arrows, %d are not drawn, %d forgotten", arrows, undrawn, forgotten)
	}
	for i := range uint64(remembered) {
		records = append(records, Record{Kind: KindSignal, Submitted: 20 * us, Done: 21 * us, Signals: at(3, i+1)})
	}
	records = append(records, Record{Kind: KindWait, Op: "wait", Submitted: us, Done: 30 * us, Waits: at(1, 2)})
	// The writer has forgotten the signal of the last wait, and why two earlier waits have no
	// arrow. So three waits count as forgotten.
	if arrows, undrawn, forgotten := count(records); arrows != 1 || undrawn != 0 || forgotten != 3 {
		t.Errorf("%d arrows, %d are not drawn, %d forgotten", arrows, undrawn, forgotten)
	}
}

// TestArrowsWithoutSlices makes work wait for a signal of a barrier. A barrier has no slice, so no
// arrow may lead to these waits. No arrow may come from the signals of the waiting work or of later
// work either, although the clock is so inexact that these signals could have come before the
// waits. No arrow may count as missing.
func TestArrowsWithoutSlices(t *testing.T) {
	const us = time.Microsecond
	at := func(value uint64) []Point { return []Point{{Semaphore: 1, Value: value}} }
	barrier := Record{ID: 1, Op: "barrier", Submitted: us, Done: 3 * us, Signals: at(1)}
	records := []Record{
		{ID: 2, Op: "fill", Submitted: us, Issued: 2 * us, Begun: 4 * us, Ended: 5 * us, Done: 30 * us, Within: 20 * us, Waits: at(1), Signals: at(2)},
		{ID: 3, Op: "fill", Submitted: us, Issued: 2 * us, Begun: 5 * us, Ended: 6 * us, Done: 30 * us, Within: 20 * us, Waits: at(1), Signals: at(3)},
		{Kind: KindWait, Op: "wait", Submitted: us, Done: 31 * us, Waits: at(1)},
	}
	for name, list := range map[string][]Record{
		"before": append([]Record{barrier}, records...),
		"alone":  records[:1], // no record has the signal that the fill waits for
	} {
		for _, e := range written(t, list...) {
			if e.Phase == traceformat.FlowBegin || e.Cat == traceformat.CatArrows {
				t.Errorf("the record of the barrier %s: %+v", name, e)
			}
		}
	}
}

// TestLosses checks that losses of devices and of communicators have different names.
func TestLosses(t *testing.T) {
	var names []string
	for _, e := range written(t,
		Record{Kind: KindLost, Err: io.EOF},
		Record{Kind: KindLost, Err: &collective.Error{Name: "gradients", Err: io.EOF}},
	) {
		if e.Cat == traceformat.CatLoss {
			names = append(names, e.Name)
		}
	}
	if !slices.Equal(names, []string{"device lost", "communicator lost"}) {
		t.Errorf("%q", names)
	}
}

// TestPageListsCalls checks that docs/trace-format.md lists the names of the host's calls, and no
// others.
func TestPageListsCalls(t *testing.T) {
	page, err := os.ReadFile("../../docs/trace-format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, ok := strings.Cut(string(page), "\n| `call` | ")
	if !ok {
		t.Fatal("the page has no calls")
	}
	row, _, _ = strings.Cut(row, "|")
	// Remove explanations in parentheses.
	row = regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(row, "")
	var listed []string
	for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(row, -1) {
		listed = append(listed, m[1])
	}
	want := append(slices.Collect(maps.Values(callNames)), failName, "function", "notified function") // package gpu uses the last two
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("the page lists %q, and %q are written", listed, want)
	}
	for _, name := range []string{"device lost", "communicator lost", "records are missing", "arrows are missing", "clock fit"} {
		if !strings.Contains(string(page), "` | `"+name+"` | ") {
			t.Errorf("the page lacks %q", name)
		}
	}
}

// TestNames checks that a writer keeps the names of the semaphores that were used last, however
// long ago they were named.
func TestNames(t *testing.T) {
	tracer, err := NewTracer(TracerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := newWriter(tracer, Options{})
	named := func(semaphore uint64) string {
		return w.points(new([]traceformat.Point), []Point{{Semaphore: semaphore, Value: 1}})[0].Name
	}
	for i := range uint64(5 * remembered) {
		w.add(&Record{Kind: KindName, Label: strconv.FormatUint(i, 10), Signals: []Point{{Semaphore: i}}})
		if named(0) != "0" || named(i) != strconv.FormatUint(i, 10) || i > remembered/4 && named(i-remembered/4) == "" {
			t.Fatalf("with %d names: %q, %q", i+1, named(0), named(i))
		}
		if n := w.names.Len(); n > 2*remembered {
			t.Fatalf("it keeps %d names", n)
		}
	}
}
