package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReduceSizes(t *testing.T) {
	for _, test := range []struct {
		devices     int
		opt         options
		n           int
		first, last uint64
	}{
		{1, options{}, 2, 1 << 10, 1 << 20},
		{1, options{long: true}, 2, 1 << 10, 1 << 20},
		{2, options{}, 11, 1 << 10, 1 << 30},
		{8, options{long: true}, 21, 1 << 10, 1 << 30},
		{2, options{sim: true}, 5, 1 << 10, 256 << 10},
	} {
		sizes := reduceSizes(test.devices, test.opt)
		if len(sizes) != test.n || sizes[0] != test.first || sizes[len(sizes)-1] != test.last {
			t.Errorf("%d devices, %+v: %v", test.devices, test.opt, sizes)
		}
	}
}

// TestReduceCounts checks that all rows of all-reduces take at most 70 seconds on a machine whose
// devices move 200 GB a second.
func TestReduceCounts(t *testing.T) {
	total := 0.0
	last := 1 << 30
	for _, size := range reduceSizes(2, options{}) {
		c, rounds := reduceCounts(size, false)
		if c.Warm < 1 || c.Timed < 1 || c.Ahead < 1 || c.Timed > last || rounds < 3 {
			t.Errorf("%s: %+v, %d rounds", sizeText(size), c, rounds)
		}
		last = c.Timed
		each := 30e-6 + float64(size)/200e9
		const ways, sides, more = 2, 2, 20e-3
		total += ways * sides * float64(rounds+1) * (float64(2*c.Warm+c.Timed+c.Ahead)*each + more)
	}
	if total > 70 {
		t.Errorf("it takes %.0f seconds", total)
	}
	if c, rounds := reduceCounts(1<<10, true); c.Timed > 20 || rounds > 3 {
		t.Errorf("on a simulated device: %+v, %d rounds", c, rounds)
	}
}

// TestCollectives checks that on simulated devices the rows of one process run, and that the rows
// of several processes say why they cannot run.
func TestCollectives(t *testing.T) {
	if race && testing.Short() {
		t.Skip("takes long")
	}
	file := filepath.Join(t.TempDir(), "c.svg")
	rows := runJSON(t, "-sim", "-rounds", "1", "-run", "^collectives/", "-svg", file)
	if len(rows) != 2*5*8+4 {
		t.Errorf("%d rows", len(rows))
	}
	for name, r := range rows {
		many := strings.Contains(name, ", processes")
		if many != strings.Contains(r.NotRun, "several processes") || many != (r.Puregpu == nil) || r.Goal != nil || r.Raw != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := rows["collectives/all-reduce 64 KiB, one process: busbw"]; r.Of == nil || *r.Of != (allReduce{64 << 10, 2, inOne, busBandwidth}) || r.Unit != gigabytes {
		t.Errorf("what the bandwidth is of: %+v", r)
	}
	if r := rows["collectives/100 × 4 KiB recorded, one process"]; r.Ratio == nil {
		t.Errorf("a recorded group was not compared: %+v", r)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := wellFormed(t, string(svg)); n["polyline"] != 1 || !strings.Contains(string(svg), "256 KiB") {
		t.Errorf("the picture has %v", n)
	}
}

// TestAlone checks that with one device all-reduces are timed in one process, without bandwidths.
func TestAlone(t *testing.T) {
	e, err := newEnv(options{sim: true, device: "0", devices: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, w := range []way{inOne, inMany} {
		b := reduceBench(e, w, 1<<10)
		for _, r := range b.measure(e, 1, &progress{}) {
			if r.Error != "" || (w == inOne) != (r.Puregpu != nil) || strings.Contains(r.Row, "bw") {
				t.Errorf("%+v", r)
			}
		}
	}
}

func TestRemarkNCCL(t *testing.T) {
	ours := answer{NCCL: "2.28.3", Library: "/here/libnccl.so.2"}
	for want, torch := range map[string]answer{
		"NCCL 2.28.3, NCCL_NVLS_ENABLE=0\nNCCL is /here/libnccl.so.2":                                               {},
		"NCCL 2.28.3 of puregpu and 2.28.3 of PyTorch 2.9, NCCL_NVLS_ENABLE=0 for both\nNCCL is /here/libnccl.so.2": {NCCL: "2.28.3", Library: "/here/libnccl.so.2", Torch: "2.9"},
		"NCCL 2.28.3 of puregpu and 2.27.5 of PyTorch 2.8, NCCL_NVLS_ENABLE=0 for both\n" +
			"puregpu's NCCL is /here/libnccl.so.2, PyTorch's unknown\n" +
			"warning: the two sides are not the same NCCL: compare them with care, or name PyTorch's in PUREGPU_NCCL_LIBRARY": {NCCL: "2.27.5", Torch: "2.8"},
	} {
		e := &env{teams: teams{torch: torch}}
		e.remarkNCCL(ours)
		if got := strings.Join(e.remarks, "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestPrinters(t *testing.T) {
	var b strings.Builder
	tab := printers{&table{w: &b}}
	tab.remark("two\nlines")
	figure := 1234.5
	tab.print(result{Row: "of no interest", detail: true})
	tab.print(result{Row: "fast", Unit: gigabytes, Puregpu: &figure, Raw: &figure, Ratio: new(float64), Goal: &goalResult{Min: 0.99, Of: ofRaw}})
	if want := fmt.Sprintf("two\n\tlines\n%-52s %10s %10s %8s %10s %4s\n", "fast", "1234 GB/s", "1234 GB/s", "0.000", "≥ 0.99×", "MISS"); b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}
