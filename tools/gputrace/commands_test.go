package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/internal/tracetest"
)

// decoder is a program that executes a recording of two layers three times, as a graph. The
// argument source names what timed the commands of the first two executions. The commands of the
// third have no times. decoder also executes another recording as calls, and launches one kernel
// without a recording. If source is "", no command of a graph has times, and the argument why is
// the reason.
func decoder(source, why string) *tracetest.Builder {
	b := tracetest.New("decoder", 0, 1, time.Unix(1700000000, 0))
	dev := b.Device(0, "NVIDIA H200")
	b.NodeTimes(dev, source, why)
	q, s := b.Queue(dev, 0, "queue 0"), b.Stream(dev, 1)
	grid, block := [3]uint32{8, 1, 1}, [3]uint32{256, 1, 1}
	launch := func(kernel, label string) traceformat.Args {
		return traceformat.Args{Op: "launch", Kernel: kernel, Label: label, Grid: grid, Block: block}
	}
	r := b.Recording(dev, launch("matmul", "attention"), launch("matmul", "ffn"), launch("norm", ""), traceformat.Args{Op: "barrier"},
		launch("matmul", "attention"), launch("matmul", "ffn"), launch("norm", ""), traceformat.Args{Op: "native", Label: "sample"})
	other := b.Recording(dev, traceformat.Args{Op: "fill", Bytes: 1 << 20}, traceformat.Args{Op: "copy", Bytes: 1 << 20})
	at := ms
	submit := func(a traceformat.Args, took traceformat.Time, commands ...tracetest.Command) uint64 {
		sub := b.Submit(q, s, tracetest.Submission{Args: a, Submitted: at, Issued: at + 2*µs, Begun: at + 5*µs, Ended: at + 5*µs + took, Done: at + 9*µs + took, Commands: commands})
		at += took + 20*µs
		return sub
	}
	step := traceformat.Args{Op: "execute", Label: "step", Recording: r, Commands: 8, Graph: true}
	took := []traceformat.Time{100 * µs, 300 * µs, 10 * µs, 0, 100 * µs, 280 * µs, 12 * µs, 20 * µs}
	var tracks []tracetest.Track
	if source != "" {
		tracks = []tracetest.Track{b.Nodes(dev, "commands of graphs"), b.Nodes(dev, "commands of graphs, 2")}
	}
	for range 2 {
		begun := at + 6*µs
		sub := submit(step, 830*µs)
		if source == "" {
			continue
		}
		for i, d := range took {
			switch i {
			case 3: // a barrier
				continue
			case 7: // of two kernels, of which the second overlaps the first
				b.Node(tracks[0], "topk", begun, begun+d, traceformat.Args{Sub: sub, Recording: r, Command: i, Kernel: "topk"})
				b.Node(tracks[1], "random", begun+5*µs, begun+8*µs, traceformat.Args{Sub: sub, Recording: r, Command: i, Kernel: "random"})
			default:
				b.Node(tracks[0], []string{"matmul", "matmul", "norm", "", "matmul", "matmul", "norm"}[i], begun, begun+d, traceformat.Args{Sub: sub, Recording: r, Command: i})
			}
			begun += d
		}
	}
	begun := at + 5*µs
	submit(traceformat.Args{Op: "execute", Recording: other, Commands: 2}, 40*µs,
		tracetest.Command{Args: traceformat.Args{Recording: other}, Begun: begun, Ended: begun + 10*µs},
		tracetest.Command{Args: traceformat.Args{Recording: other}, Begun: begun + 10*µs, Ended: begun + 40*µs})
	submit(launch("embed", "first token"), 50*µs)
	submit(step, 840*µs)
	return b
}

// summaryOf returns the summary in a page.
func summaryOf(t *testing.T, page []byte) []byte {
	t.Helper()
	var in struct {
		Summary struct {
			Commands     json.RawMessage `json:"commands"`
			CommandTimes json.RawMessage `json:"command_times"`
		} `json:"summary"`
	}
	readPage(t, string(page), &in)
	out, err := json.MarshalIndent(in.Summary, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// TestKernels compares the output of gputrace kernels, as text, as JSON and on the page, with
// golden files. Some of the traces are of programs whose graphs have no times.
func TestKernels(t *testing.T) {
	const golden = "testdata/kernels.txtar"
	got := &txtar.Archive{Comment: []byte("What gputrace kernels prints. Written by go test ./tools/gputrace -update.\n")}
	add := func(name string, data []byte) { got.Files = append(got.Files, txtar.File{Name: name, Data: data}) }
	dir := t.TempDir()
	for _, x := range []struct {
		name  string
		trace []byte
	}{
		{"timed", decoder("CUPTI 13.0.1", "").JSON()},
		{"without a profiler", decoder("", "").JSON()},
		{"with a profiler that fails", decoder("", "cuptitrace: subscribe to CUPTI: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED").JSON()},
		{"without times of commands", bytes.Replace(decoder("", "").JSON(), []byte(`"level":"commands"`), []byte(`"level":"submissions"`), 1)},
		{"version 1", versionOne(t)},
	} {
		rep, err := traceformat.Check(bytes.NewReader(x.trace))
		if err != nil || len(rep.Problems) > 0 {
			t.Errorf("%s: %v, %v", x.name, rep, err)
		}
		name := filepath.Join(dir, "trace.json")
		if err := os.WriteFile(name, x.trace, 0o600); err != nil {
			t.Fatal(err)
		}
		page := filepath.Join(dir, "trace.html")
		var text, errs bytes.Buffer
		if code := run([]string{"kernels", "-html", page, name}, &text, &errs); code != 0 {
			t.Fatalf("%s: exit status %d: %s", x.name, code, errs.String())
		}
		add(x.name, text.Bytes())
		if x.name != "timed" {
			continue
		}
		var out bytes.Buffer
		if code := run([]string{"kernels", "-json", name}, &out, &errs); code != 0 {
			t.Fatalf("exit status %d: %s", code, errs.String())
		}
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(out.Bytes(), &whole); err != nil {
			t.Fatal(err)
		}
		some, err := json.MarshalIndent(map[string]json.RawMessage{"kernels": whole["kernels"], "command_times": whole["command_times"]}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		add(x.name+", JSON", append(some, '\n'))
		html, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		add(x.name+", page", summaryOf(t, html))
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
	if g, w := string(txtar.Format(got)), string(txtar.Format(want)); g != w {
		t.Errorf("it prints\n%s\n(go test ./tools/gputrace -update writes it, if it is right)", g)
	}
}

// versionOne returns a trace in the first version of the format: the slice of each command has all
// known facts, and no recording is listed.
func versionOne(t *testing.T) []byte {
	t.Helper()
	b := tracetest.New("old", 0, 1, time.Unix(1700000000, 0))
	b.Events[0].Args.Format = 1
	dev := b.Device(0, "NVIDIA H100")
	q, s := b.Queue(dev, 0, "queue 0"), b.Stream(dev, 1)
	b.Submit(q, s, tracetest.Submission{
		Args: traceformat.Args{Op: "execute", Label: "step", Commands: 2}, Submitted: ms, Issued: ms, Begun: 2 * ms, Ended: 6 * ms, Done: 7 * ms,
		Commands: []tracetest.Command{
			{Args: traceformat.Args{Op: "launch", Kernel: "forward"}, Begun: 2 * ms, Ended: 3 * ms},
			{Args: traceformat.Args{Op: "launch", Kernel: "backward"}, Begun: 3 * ms, Ended: 6 * ms},
		},
	})
	b.Submit(q, s, tracetest.Submission{Args: traceformat.Args{Op: "execute", Commands: 2, Graph: true}, Submitted: 8 * ms, Issued: 8 * ms, Begun: 8 * ms, Ended: 9 * ms, Done: 9 * ms})
	data := b.JSON()
	for _, name := range []string{`"recording"`, `"first"`} {
		if bytes.Contains(data, []byte(name)) {
			t.Fatalf("version 1 has no %s", name)
		}
	}
	return data
}

// TestMergedRecordings checks that recordings of two programs are not mixed up in their merged
// trace, although they have the same numbers.
func TestMergedRecordings(t *testing.T) {
	dir := t.TempDir()
	one, two := decoder("CUPTI 13.0.1", "").JSON(), bytes.ReplaceAll(decoder("CUPTI 13.0.1", "").JSON(), []byte("matmul"), []byte("gemm"))
	var files []string
	for i, data := range [][]byte{one, two} {
		files = append(files, filepath.Join(dir, []string{"one.json", "two.json"}[i]))
		if err := os.WriteFile(files[i], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	if code := run(append([]string{"kernels", "-top", "50"}, files...), &out, &errs); code != 0 {
		t.Fatalf("exit status %d: %s", code, errs.String())
	}
	for _, kernel := range []string{"matmul ", "gemm "} {
		if n := strings.Count(out.String(), "\n"+kernel); n != 2 {
			t.Errorf("%d rows of %s, want 2", n, kernel)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// TestKernelsRunsPrograms checks that run -kernels asks the program for times of commands, unless
// the environment says otherwise.
func TestKernelsRunsPrograms(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip(err)
	}
	script := `echo times "$PUREGPU_TRACE_TIMES"`
	for _, x := range []struct{ set, want string }{{"", "times commands\n"}, {"none", "times none\n"}} {
		t.Setenv(timesVariable, x.set)
		var out, errs bytes.Buffer
		run([]string{"run", "-kernels", "--", "/bin/sh", "-c", script}, &out, &errs)
		if out.String() != x.want {
			t.Errorf("with %q the program has %q, want %q", x.set, out.String(), x.want)
		}
	}
}
