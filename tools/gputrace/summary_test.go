package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/internal/tracetest"
)

var (
	update = flag.Bool("update", false, "write the golden files")
	write  = flag.String("traces", "", "write the scenarios' traces into this `folder`, to be looked at")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *write != "" {
		for _, s := range scenarios {
			if err := os.WriteFile(filepath.Join(*write, strings.ReplaceAll(s.name, " ", "-")+".json"), s.trace(), 0o644); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		for _, n := range []int{3000, 100_000} {
			if err := os.WriteFile(filepath.Join(*write, fmt.Sprintf("server-%d.json", n)), busyServer(n).JSON(), 0o644); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

func loaded(t *testing.T, data []byte) *trace {
	t.Helper()
	tr, err := load(bytes.NewReader(data), everything)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestSummaryAsText compares the printed summaries of the scenarios with a golden file. It checks
// that each scenario obeys the format.
func TestSummaryAsText(t *testing.T) {
	const golden = "testdata/summary.txtar"
	got := &txtar.Archive{Comment: []byte("What gputrace prints of the traces of scenarios_test.go. Written by go test ./tools/gputrace -update.\n")}
	for _, s := range scenarios {
		data := s.trace()
		rep, err := traceformat.Check(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range rep.Problems {
			t.Errorf("%s: %v", s.name, p)
		}
		var out bytes.Buffer
		if err := summarize(loaded(t, data)).print(&out, 10); err != nil {
			t.Fatal(err)
		}
		got.Files = append(got.Files, txtar.File{Name: s.name, Data: out.Bytes()})
	}
	if *update {
		if err := os.WriteFile(golden, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(txtar.Format(got), txtar.Format(want)) {
		t.Errorf("printed:\n%s\nwant:\n%s\n(go test ./tools/gputrace -update writes it, if it is right)", txtar.Format(got), txtar.Format(want))
	}
}

func TestIntervals(t *testing.T) {
	type list = []interval
	for _, c := range []struct {
		name      string
		in, union list
		overlap   traceformat.Time
		gaps      list
	}{
		{"none", nil, nil, 0, list{{0, 100}}},
		{"empty ones", list{{5, 5}, {7, 7}}, nil, 0, list{{0, 100}}},
		{"apart", list{{20, 30}, {10, 15}}, list{{10, 15}, {20, 30}}, 0, list{{0, 10}, {15, 20}, {30, 100}}},
		{"touching", list{{10, 20}, {20, 30}}, list{{10, 30}}, 0, list{{0, 10}, {30, 100}}},
		{"overlapping", list{{10, 20}, {15, 30}}, list{{10, 30}}, 5, list{{0, 10}, {30, 100}}},
		{"inside", list{{10, 50}, {15, 30}, {16, 20}}, list{{10, 50}}, 15, list{{0, 10}, {50, 100}}},
		{"all of it", list{{0, 60}, {40, 120}}, list{{0, 120}}, 20, nil},
		{"beyond", list{{-5, -1}, {90, 120}}, list{{-5, -1}, {90, 120}}, 0, list{{0, 90}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if n := overlap(c.in); n != c.overlap {
				t.Errorf("overlap %d, want %d", n, c.overlap)
			}
			u := union(c.in)
			if !reflect.DeepEqual(u, c.union) {
				t.Errorf("union %v, want %v", u, c.union)
			}
			if g := gaps(u, interval{0, 100}); !reflect.DeepEqual(g, c.gaps) {
				t.Errorf("gaps %v, want %v", g, c.gaps)
			}
		})
	}
}

// TestBusyAndIdleMakeTheWindow checks, for every scenario and a random trace, that busy and idle
// time add up to the window, and the critical path to the time of all submissions.
func TestBusyAndIdleMakeTheWindow(t *testing.T) {
	random := busyServer(3000).JSON()
	for _, data := range append([][]byte{random}, all()...) {
		tr := loaded(t, data)
		s := summarize(tr)
		for _, d := range s.Devices {
			if d.Busy+d.Idle != d.Window || d.Overlap > d.Busy {
				t.Errorf("device %+v", d)
			}
			var starved traceformat.Time
			for _, x := range s.Starved {
				starved += x.Total
			}
			if d.Operations > 0 && len(s.Devices) == 1 && starved != d.Idle {
				t.Errorf("idle for %d ns, of which %d are explained", d.Idle, starved)
			}
		}
		for _, q := range s.Queues {
			if q.Busy+q.Idle != q.Window {
				t.Errorf("queue %+v", q)
			}
		}
		var sum traceformat.Time
		for i, x := range s.Critical {
			sum += x.End - x.Begin
			if i > 0 && x.Begin != s.Critical[i-1].End {
				t.Errorf("the critical path has a hole before %+v", x)
			}
		}
		last := traceformat.Time(0)
		for i := range tr.subs {
			last = max(last, tr.subs[i].finish())
		}
		if len(tr.subs) > 0 && sum != last-s.Begin {
			t.Errorf("the critical path is %d ns of %d", sum, last-s.Begin)
		}
	}
}

func all() (list [][]byte) {
	for _, s := range scenarios {
		list = append(list, s.trace())
	}
	return list
}

func TestWaitsAreLinkedToTheLowestSignalThatIsEnough(t *testing.T) {
	tr := loaded(t, steps(2).JSON())
	var got []edge
	got = append(got, tr.edges...)
	n := func(i int) node { return node{false, i} }
	want := []edge{{n(0), n(1)}, {n(1), n(2)}, {n(2), n(3)}, {n(3), n(4)}, {n(4), n(5)}}
	for i := range tr.slices {
		if tr.slices[i].cat == traceformat.CatWait {
			want = append(want, edge{n(2 + 3*(len(want)-5)), node{true, i}})
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

func TestAWaitForZeroWaitsForNothing(t *testing.T) {
	b := tracetest.New("zero", 0, 1, start2026)
	dev := b.Device(0, "GPU")
	q, s, sem := b.Queue(dev, 0, "queue 0"), b.Stream(dev, 1), b.Semaphore("")
	for i := range uint64(2) {
		at := traceformat.Time(10*i+1) * µs
		b.Submit(q, s, tracetest.Submission{Args: args{Op: "fill", Waits: pts{sem(i)}, Signals: pts{sem(i + 1)}}, Submitted: at, Issued: at + 1, Begun: at + 2, Ended: at + 3, Done: at + 4})
	}
	if tr := loaded(t, b.JSON()); len(tr.edges) != 1 || tr.edges[0] != (edge{node{false, 0}, node{false, 1}}) {
		t.Errorf("%v", tr.edges)
	}
}

func TestDuration(t *testing.T) {
	for in, want := range map[traceformat.Time]string{
		0: "0", 1: "1 ns", 999: "999 ns", 1000: "1.00 µs", 9994: "9.99 µs", 9996: "10.0 µs", 99949: "99.9 µs", 99951: "100 µs", 999499: "999 µs", 999500: "1.00 ms", 1234567: "1.23 ms",
		61_000_000_000: "61.0 s", 5_000_000_000_000: "5000 s", -1500: "-1.50 µs",
	} {
		if got := duration(in); got != want {
			t.Errorf("%d ns: %q, want %q", in, got, want)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	big := busyServer(500).JSON()
	for _, c := range []struct {
		name, in string
		win      window
		want     string
	}{
		{"an empty file", "", everything, "it is empty"},
		{"a trace of another program", `[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]`, everything, "puregpu did not write it"},
		{"more events than allowed", string(big), window{0, everything.to, 100}, "more than 100 of this part of the trace: read a part of it (-from, -to)"},
		{"a part beyond the end", string(big), window{3600e9, everything.to, everything.maxEvents}, "the trace has nothing in the part that -from and -to name: it goes from 10.0 µs to "},
		{"a part before the beginning", string(big), window{-2, -1, everything.maxEvents}, "nothing in the part that -from and -to name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := load(strings.NewReader(c.in), c.win); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := load(bytes.NewReader(big), window{0, 100 * µs, 100}); err != nil {
		t.Errorf("a part of it: %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range scenarios {
		f.Add(s.trace())
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		tr, err := load(bytes.NewReader(in), everything)
		if err != nil {
			return
		}
		s := summarize(tr)
		var out bytes.Buffer
		if err := s.print(&out, 3); err != nil {
			t.Fatal(err)
		}
		if err := writePage(&out, tr, s); err != nil {
			t.Fatal(err)
		}
	})
}
