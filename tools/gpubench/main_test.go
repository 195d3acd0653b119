package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/version"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// runBench runs the program and returns its output.
func runBench(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

// runJSON runs the program and returns its rows, by name. It allows missed goals, because the
// machine may be busy.
func runJSON(t *testing.T, args ...string) map[string]result {
	t.Helper()
	code, stdout, stderr := runBench(t, append(args, "-json")...)
	if code > 1 || stderr != "" {
		t.Fatalf("exit status %d, %s", code, stderr)
	}
	var doc struct{ Rows []result }
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	rows := map[string]result{}
	missed := false
	for _, r := range doc.Rows {
		switch {
		case r.Error != "":
			t.Errorf("%s failed: %s", r.Row, r.Error)
		case r.NotRun == "" && (r.Puregpu == nil || *r.Puregpu < 0):
			t.Errorf("%s has no figure", r.Row)
		}
		missed = missed || r.bad()
		rows[r.Row] = r
	}
	if missed != (code == 1) {
		t.Errorf("exit status %d, and that something was missed is %v", code, missed)
	}
	return rows
}

func TestSim(t *testing.T) {
	groups := "latency|chain|pool|graph|parked|semaphore"
	// The race detector reports that the group "wake" polls memory while a simulated device fills
	// it.
	if !race {
		groups += "|wake"
		if !testing.Short() {
			groups += "|calls|hop|unrelated|future|devices|hip"
		}
	}
	rows := runJSON(t, "-sim", "-rounds", "1", "-run", "^("+groups+")/")
	if len(rows) < 10 {
		t.Errorf("%d rows", len(rows))
	}
	for name, r := range rows {
		if r.Goal != nil && (strings.HasPrefix(name, "latency/") || strings.HasPrefix(name, "chain/")) {
			t.Errorf("%s has a goal on a simulated device", name)
		}
	}
	for _, name := range []string{"latency/fill 4 KiB, p50", "pool/alloca and dealloca of 1 MiB", "pool/alloca, fill, dealloca: total",
		"graph/1,000 kernels: until done", "graph/10 kernels, each bound anew: submitting",
		"graph/82 kernels, a scalar of 48 changed: submitting", "graph/10 kernels, launched one by one: submitting"} {
		if r := rows[name]; r.Raw == nil || r.Ratio == nil {
			t.Errorf("%s has no raw side", name)
		}
	}
}

// TestLacks checks that benches that a device cannot run say so, and are no failure.
func TestLacks(t *testing.T) {
	caps := simdriver.CUDACaps()
	caps.Pools, caps.HostPools, caps.Graphs = false, false, false
	e, err := newEnv(options{sim: true, device: "0", caps: &caps})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	ran := map[string]bool{}
	for _, b := range append(poolBenches(), graphBenches()...) {
		for _, r := range b.measure(e, 1, &progress{}) {
			if r.Error != "" || (r.NotRun == "") != (r.Puregpu != nil) || r.NotRun != "" && !strings.HasPrefix(r.NotRun, "not run: the device has no ") {
				t.Errorf("%s: %+v", r.Row, r)
			}
			if r.NotRun == "" {
				ran[r.Row] = true
			}
		}
	}
	if len(ran) != 5 || !ran["pool/portable: alloca of 1 MiB that it has"] || !ran["graph/recording a kernel"] ||
		!ran["graph/10 kernels, launched one by one: until done"] {
		t.Errorf("ran %v", ran)
	}
}

// runDevices runs the benches for two devices once.
func runDevices(t *testing.T, opt options) (results []result) {
	t.Helper()
	e, err := newEnv(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, b := range deviceBenches(e) {
		results = append(results, b.measure(e, 1, &progress{})...)
	}
	if len(results) != 5 {
		t.Errorf("%d rows", len(results))
	}
	return results
}

func TestDevices(t *testing.T) {
	for _, r := range runDevices(t, options{sim: true, device: "1", copySize: 1 << 20}) {
		if r.NotRun != "" || r.Error != "" || r.Raw == nil || r.Ratio == nil || r.Goal != nil {
			t.Errorf("%s on two devices: %+v", r.Row, r)
		}
	}
	for _, r := range runDevices(t, options{sim: true, device: "0", devices: 1}) {
		if r.NotRun != "not run: two devices are needed, and there is one" || r.Error != "" || r.Puregpu != nil {
			t.Errorf("%s on one device: %+v", r.Row, r)
		}
	}
}

// TestModule checks that a module has its kernels, and that no two modules are the same.
func TestModule(t *testing.T) {
	const n = 20
	a, b := module(n), module(n)
	if bytes.Equal(a, b) {
		t.Error("two modules are the same")
	}
	if i := bytes.IndexByte(a, 0); i != len(a)-1 || bytes.Count(a, []byte{'{'}) != bytes.Count(a, []byte{'}'}) {
		t.Errorf("the first NUL is at %d of %d bytes, or the braces do not match", i, len(a))
	}
	kernels := map[string]simdriver.Kernel{}
	for i := range n {
		kernels[fmt.Sprint("k", i)] = simKernels["empty"]
	}
	dev, err := gpu.Open(simdriver.New(simdriver.Config{Kernels: kernels}), 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	x, err := dev.Load(a)
	if err != nil {
		t.Fatal(err)
	}
	for name := range kernels {
		if _, err := x.Kernel(name); err != nil {
			t.Error(err)
		}
	}
}

func TestTable(t *testing.T) {
	code, stdout, stderr := runBench(t, "-sim", "-rounds", "1", "-run", "semaphore/query")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code > 1 || stderr != "" || len(lines) != 3 || !regexp.MustCompile(`^semaphore/query +- +\S+ (ns|µs|ms|s) +- +≤ 2.7 ns +(ok|MISS)$`).MatchString(lines[2]) {
		t.Errorf("exit status %d, printed\n%s%s", code, stdout, stderr)
	}
}

func TestArguments(t *testing.T) {
	t.Setenv("PUREGPU_CUDA_LIBRARY", t.TempDir()+"/absent.so")
	for _, test := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"-h", 0, "Usage of gpubench"},
		{"-nonsense", 2, "flag provided but not defined"},
		{"-sim more", 2, `no row was run: groups ["more"]`},
		{"-sim -rounds -1", 2, "at least one is needed"},
		{"-sim -run (", 2, "-run: "},
		{"-sim -run no.such", 2, "no row was run"},
		{"-sim -device 7", 2, "no such device"},
		{"-sim -hip lib.so -run ^hip/", 2, "no row was run"}, // needs a CUDA driver to compare with
		{"", 2, "use -sim without a GPU"},
	} {
		code, stdout, stderr := runBench(t, strings.Fields(test.args)...)
		if code != test.code || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%s: exit status %d, printed %q and %q; want %d, %q", test.args, code, stdout, stderr, test.code, test.stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := runBench(t, "-version")
	if want := "gpubench: " + version.Read().String() + "\n"; code != 0 || stdout != want || stderr != "" {
		t.Errorf("exit status %d, printed %q and %q, want %q", code, stdout, stderr, want)
	}
}

func TestGoal(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		row       int
		goal      goal
		raw, pure [][]float64
		sim       bool
		bad       bool
	}{
		{0, goal{max: 2}, [][]float64{{nan}}, [][]float64{{2}}, false, false},
		{0, goal{max: 2}, [][]float64{{nan}}, [][]float64{{2.1}}, false, true},
		{0, goal{max: 2, device: true}, [][]float64{{nan}}, [][]float64{{2.1}}, true, false},
		{0, goal{max: 1.5, of: ofRaw}, [][]float64{{10, 100, 10}}, [][]float64{{15, 150, 90}}, false, false},
		{0, goal{max: 1.5, of: ofRaw}, [][]float64{{10, 100, 10}}, [][]float64{{16, 160, 10}}, false, true},
		// Nothing to compare with.
		{0, goal{max: 1.5, of: ofRaw}, [][]float64{{nan}}, [][]float64{{1}}, false, true},
		{0, goal{max: 1.3, of: ofBase}, [][]float64{{nan}, {nan}}, [][]float64{{1}, {9}}, false, false},
		{1, goal{max: 1.3, of: ofBase}, [][]float64{{nan}, {nan}}, [][]float64{{1}, {9}}, false, true},
		{1, goal{max: 1.3, of: ofBase}, [][]float64{{nan}, {nan}}, [][]float64{{7}, {9}}, false, false},
		{0, goal{}, [][]float64{{nan}}, [][]float64{{9}}, false, false},
		{0, goal{min: 0.99, of: ofRaw}, [][]float64{{100, 10, 100}}, [][]float64{{99, 1, 200}}, false, false},
		{0, goal{min: 0.99, of: ofRaw}, [][]float64{{100, 10, 100}}, [][]float64{{98, 1, 200}}, false, true},
		{0, goal{min: 0.99, of: ofRaw, device: true}, [][]float64{{nan}}, [][]float64{{1}}, true, false},
	} {
		var r result
		(&turns{raw: test.raw, pure: test.pure}).sum(&r, row{goal: test.goal}, test.row, test.sim)
		if r.bad() != test.bad {
			t.Errorf("row %d of %v and %v, goal %+v: missed is %v", test.row, test.raw, test.pure, test.goal, r.bad())
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
}

// TestLone checks that goals relative to the raw side do not apply if the machine lacks the raw
// side.
func TestLone(t *testing.T) {
	turns := &turns{raw: [][]float64{{math.NaN()}, {math.NaN()}}, pure: [][]float64{{1}, {1}}, lone: true}
	var r result
	if turns.sum(&r, row{goal: goal{max: 1, of: ofRaw}}, 0, false); r.Goal != nil {
		t.Errorf("measured by nothing: %+v", r.Goal)
	}
	if turns.sum(&r, row{goal: goal{max: 0.5, of: ofBase}}, 1, false); !r.bad() {
		t.Errorf("measured by another row: %+v", r)
	}
}

func TestText(t *testing.T) {
	for want, got := range map[string]string{
		"2.7 ns":       ns.text(2.7),
		"44 ns":        ns.text(44.1),
		"1.47 µs":      ns.text(1472),
		"3 ms":         ns.text(3e6),
		"0.0123 %":     percent.text(0.01234),
		"≤ 3 µs":       goal{max: 3000}.text(ns),
		"≤ 1.25×":      goal{max: 1.25, of: ofRaw}.text(ns),
		"-":            goal{}.text(ns),
		"0":            thousands(0),
		"1,000":        thousands(1000),
		"1,234,567":    thousands(1234567),
		"no figure: -": "no figure: " + figure(ns, nil),
		"1 GiB":        sizeText(1 << 30),
		"64 MiB":       sizeText(64 << 20),
		"4 KiB":        sizeText(4096),
		"4097 bytes":   sizeText(4097),
		"0.982 GB/s":   gigabytes.text(0.9824),
		"351 GB/s":     gigabytes.text(351.4),
		"1351 GB/s":    gigabytes.text(1351.4),
		"≥ 0.99×":      goal{min: 0.99, of: ofRaw}.text(gigabytes),
		"≥ 5 GB/s":     goal{min: 5}.text(gigabytes),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
