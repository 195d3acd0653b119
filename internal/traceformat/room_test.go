package traceformat_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/internal/tracetest"
)

// readBack writes an event into a trace, reads the trace, and returns the event. It fails if the
// reader or Check refuses the file, or if the event changes when it is written again.
func readBack(t *testing.T, e Event) (got Event) {
	t.Helper()
	b := tracetest.New("program", 0, 1, time.Unix(1000, 0))
	stream := b.Stream(b.Device(0, "Model"), 0)
	e.PID, e.TID = stream.PID, stream.TID
	b.Events = append(b.Events, e)
	data := b.JSON()
	rep, err := Check(bytes.NewReader(data))
	if err != nil || len(rep.Problems) > 0 || rep.Events != len(b.Events) {
		t.Fatalf("a file of %d events is read as %+v, %v", len(b.Events), rep, err)
	}
	r := NewReader(bytes.NewReader(data))
	for range b.Events {
		if err := r.Next(&got); err != nil {
			t.Fatal(err)
		}
	}
	var merged bytes.Buffer
	if err := Merge(&merged, []Source{{Name: "file", Reader: bytes.NewReader(data)}}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(merged.Bytes(), data) {
		t.Fatalf("an event of %d bytes is not the same when it is written again", len(e.Append(nil)))
	}
	return got
}

// readAgain writes an event, reads it and returns it. It fails if the event changes when it is
// written again. Unlike readBack, it does not call Check.
func readAgain(t *testing.T, e Event) (got Event) {
	t.Helper()
	data := e.Append(nil)
	if err := NewReader(io.MultiReader(strings.NewReader("["), bytes.NewReader(data))).Next(&got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Append(nil), data) {
		t.Fatalf("an event of %d bytes is not the same when it is written again", len(data))
	}
	return got
}

// TestLongTexts checks that an event with texts and lists of any length can be read. A cut text
// must end with the number of missing bytes, and a cut list be followed by the number of missing
// points.
func TestLongTexts(t *testing.T) {
	const long = MaxEvent + 1<<20
	t.Run("texts", func(t *testing.T) {
		part := "letters<\xff€"
		text := strings.Repeat(part, long/len(part)+1)
		e := Event{Phase: Complete, Cat: CatCall, Name: text, Args: Args{Op: text, Label: text, Kernel: text, Error: text, Channel: text,
			Waits: []Point{{Semaphore: 1, Name: text, Value: 2}, {Semaphore: 2, Name: text, Value: 3}}}}
		got := readAgain(t, e)
		for _, s := range []string{got.Name, got.Args.Op, got.Args.Label, got.Args.Kernel, got.Args.Error, got.Args.Channel, got.Args.Waits[0].Name} {
			kept, mark, ok := strings.Cut(s, "… (")
			var left int
			if _, err := fmt.Sscanf(mark, "%d bytes are left out)", &left); !ok || err != nil {
				t.Fatalf("the end of a text that is cut is %q: %v", s[len(s)-60:], err)
			}
			if want := valid(text[:len(text)-left]); kept != want || len(kept) < 1<<20 {
				t.Errorf("of %d bytes %d are kept, and %d are said to be missing", len(text), len(kept), left)
			}
		}
	})
	t.Run("points", func(t *testing.T) {
		points := make([]Point, 1<<18)
		for i := range points {
			points[i] = Point{Semaphore: math.MaxUint64 - uint64(i), Name: "a name that is rather long, as that of a request may be", Value: math.MaxUint64}
		}
		got := readAgain(t, Event{Phase: Complete, Cat: CatWait, Name: "wait", Args: Args{Waits: points, Signals: points}}).Args
		if len(got.Waits)+int(got.MoreWaits) != len(points) || len(got.Signals)+int(got.MoreSignals) != len(points) || len(got.Signals) < 50_000 {
			t.Errorf("of %d points there are %d and %d more, and %d and %d more", len(points), len(got.Waits), got.MoreWaits, len(got.Signals), got.MoreSignals)
		}
	})
}

// valid returns a text as the reader does: each byte that is not UTF-8 becomes U+FFFD.
func valid(s string) string { return string([]rune(s)) }

// FuzzAppend checks that the reader accepts every written event and returns it unchanged.
func FuzzAppend(f *testing.F) {
	f.Add("label", "kernel", "error", "semaphore", uint64(1), int64(1000), uint16(1), 1.0)
	f.Add("\xff<\"\\\u2028", "}{][", "\x00\n\x7f", "", uint64(math.MaxUint64), int64(math.MaxInt64), uint16(300), math.Inf(1))
	f.Fuzz(func(t *testing.T, label, kernel, text, semaphore string, number uint64, at int64, n uint16, rate float64) {
		at &= 1<<59 - 1 // 18 years, in nanoseconds
		points := make([]Point, n)
		for i := range points {
			points[i] = Point{Semaphore: number - uint64(i), Name: semaphore, Value: number}
		}
		wait := Event{Phase: Complete, Cat: CatWait, Name: "wait " + label, Time: Time(at), Dur: Time(at), Args: Args{Label: label, Kernel: kernel,
			Error: text, Op: text, Bytes: number, Waits: points}}
		got := readBack(t, wait)
		if got.Name != valid(wait.Name) || got.Args.Label != valid(label) || got.Args.Kernel != valid(kernel) || got.Args.Error != valid(text) ||
			got.Time != wait.Time || got.Dur != wait.Dur || got.Args.Bytes != number || len(got.Args.Waits) != len(points) {
			t.Errorf("read %+v\nwrote %+v", got, wait)
		}
		for i, p := range got.Args.Waits {
			if want := (Point{points[i].Semaphore, valid(semaphore), number}); !reflect.DeepEqual(p, want) {
				t.Errorf("point %d: read %+v, wrote %+v", i, p, want)
			}
		}
		clock := readBack(t, Event{Phase: Instant, Cat: CatClock, Name: "clock fit", Scope: 'p', Time: Time(at), Args: Args{Rate: rate, Margin: Time(at)}})
		if finite := !math.IsNaN(rate) && !math.IsInf(rate, 0); finite && clock.Args.Rate != rate || clock.Args.Margin != Time(at) {
			t.Errorf("a rate of %v and a margin of %d are read as %v and %d", rate, at, clock.Args.Rate, clock.Args.Margin)
		}
	})
}
