//go:build linux && (amd64 || arm64) && !nogpu

package cuptitrace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/trace"
)

// spinPTX is a kernel that keeps the device busy for a number of nanoseconds.
const spinPTX = `
.version 6.4
.target sm_52
.address_size 64

.visible .entry spin(.param .u64 spin_ns)
{
	.reg .pred %p<2>;
	.reg .b64 %rd<5>;

	ld.param.u64 %rd1, [spin_ns];
	mov.u64 %rd2, %globaltimer;
$again:
	mov.u64 %rd3, %globaltimer;
	sub.u64 %rd4, %rd3, %rd2;
	setp.lt.u64 %p1, %rd4, %rd1;
	@%p1 bra $again;
	ret;
}
`

// TestGPUGraphs traces graphs on a GPU with CUPTI. The test runs in a process of its own, because a
// process can use CUPTI for one purpose only. Each command must have a time in each execution, and
// the times of kernels that spin must be right. The test prints the times of each command. If OUT
// names a folder, the trace stays there, as cupti-trace.json.
func TestGPUGraphs(t *testing.T) {
	const child = "PUREGPU_CUPTITRACE_CHILD"
	if name := os.Getenv(child); name != "" {
		graphs(t, name)
		return
	}
	drv, err := cudadriver.Open(cuda.Options{})
	if err == nil {
		_, err = drv.Devices()
	}
	if err != nil {
		if os.Getenv("PUREGPU_TEST_REQUIRE_GPU") != "" {
			t.Fatalf("no GPU: %v", err)
		}
		t.Skipf("no GPU: %v", err)
	}
	name := filepath.Join(cmp.Or(os.Getenv("OUT"), t.TempDir()), "cupti-trace.json")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGPUGraphs$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), child+"="+name)
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	}
	t.Logf("%s", out)
}

// graphs does the work of TestGPUGraphs, and writes the trace to the named file.
func graphs(t *testing.T, name string) {
	if err := Start(); errors.Is(err, dl.ErrNotFound) {
		t.Skip(err)
	} else {
		testkit.Must(t, err)
	}
	tr, err := trace.Create(name, trace.Options{Times: trace.CommandTimes})
	testkit.Must(t, err)
	drv, err := cudadriver.Open(cuda.Options{})
	testkit.Must(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{Tracer: tr.Tracer()})
	testkit.Must(t, err)
	module, err := dev.Load([]byte(spinPTX))
	testkit.Must(t, err)
	spin, err := module.Kernel("spin")
	testkit.Must(t, err)
	mem, err := dev.Alloc(gpu.DeviceMem, 2<<20)
	testkit.Must(t, err)
	lib, err := cuda.Open(cuda.Options{})
	testkit.Must(t, err)
	add := func(c *gpu.CommandBuffer, op gpu.Op) {
		t.Helper()
		_, err := c.Add(op)
		testkit.Must(t, err)
	}

	// Record one chain, and one recording whose kernels run concurrently.
	chain, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode, InOrder: true})
	testkit.Must(t, err)
	long, err := gpu.NewParam(chain, uint64(200_000))
	testkit.Must(t, err)
	add(chain, gpu.Launch(spin, gpu.Grid{}, uint64(50_000)).Label("short"))
	add(chain, gpu.Launch(spin, gpu.Grid{}, long).Label("long, by a parameter"))
	add(chain, gpu.Fill(mem.Range(0, 1<<20), []byte{1}).Label("zero"))
	add(chain, gpu.Copy(mem.Range(1<<20, 1<<20), mem.Range(0, 1<<20)))
	add(chain, gpu.Native("of a library", func(n gpu.NativeCall) error {
		return lib.MemsetD8Async(cuda.DevicePtr(n.Ptrs[0]), 3, 1<<20, cuda.Stream(n.Stream))
	}, mem.Range(0, 1<<20)))
	add(chain, gpu.Launch(spin, gpu.Grid{}, uint64(50_000)).Label("between"))
	add(chain, gpu.Native("of two calls", func(n gpu.NativeCall) error {
		return errors.Join(lib.MemsetD8Async(cuda.DevicePtr(n.Ptrs[0]), 4, 1<<20, cuda.Stream(n.Stream)),
			lib.MemsetD8Async(cuda.DevicePtr(n.Ptrs[0]), 5, 1<<19, cuda.Stream(n.Stream)))
	}, mem.Range(0, 1<<20)))
	testkit.Must(t, chain.End())
	side, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	testkit.Must(t, err)
	for i := range 3 {
		add(side, gpu.Launch(spin, gpu.Grid{}, uint64(100_000)).Label(fmt.Sprintf("side %d", i)))
	}
	testkit.Must(t, side.End())

	const executions = 50
	s := dev.Queue(0).NewStream()
	for i := range executions {
		testkit.Must(t, s.Do(gpu.Execute(chain).With(long.Value(200_000+100_000*uint64(i%2))).Label("chain"), gpu.Execute(side).Label("side by side")))
	}
	testkit.Must(t, s.Wait(context.Background()))
	testkit.Must(t, dev.Close())
	testkit.Must(t, tr.Close())

	data, err := os.ReadFile(name)
	testkit.Must(t, err)
	rep, err := traceformat.Check(bytes.NewReader(data))
	testkit.Must(t, err)
	for _, p := range rep.Problems {
		t.Errorf("the trace: %v", p)
	}
	type command struct {
		recording uint64
		index     int
	}
	type execution struct{ submitted, done traceformat.Time }
	listed, ran, submissions := map[command]traceformat.Args{}, map[command][]traceformat.Event{}, map[uint64]execution{}
	r := traceformat.NewReader(bytes.NewReader(data))
	var e traceformat.Event
	source := ""
	for err = r.Next(&e); err == nil; err = r.Next(&e) {
		at := command{e.Args.Recording, e.Args.Command}
		switch {
		case e.Name == traceformat.MetaNodes:
			source = e.Args.NodeTimes + e.Args.Error
		case e.Name == traceformat.MetaCommand:
			listed[at] = e.Args
		case e.Cat == traceformat.CatCommand:
			ran[at] = append(ran[at], e)
		case e.Cat == traceformat.CatSubmission && e.Phase == traceformat.AsyncBegin:
			submissions[e.ID] = execution{submitted: e.Time}
		case e.Cat == traceformat.CatSubmission && e.Phase == traceformat.AsyncEnd:
			submissions[e.ID] = execution{submissions[e.ID].submitted, e.Time}
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	if len(listed) != 10 {
		t.Errorf("the trace lists %d commands, want 10", len(listed))
	}
	var all []command
	for at := range listed {
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b command) int {
		return cmp.Or(cmp.Compare(a.recording, b.recording), cmp.Compare(a.index, b.index))
	})
	var text strings.Builder
	fmt.Fprintf(&text, "%s, timed by %s\n", dev.Info().Name, source)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "command\tlabel\tcount\tmean\tleast\tmost\twithout its launch\toutside its launch by up to")
	for _, at := range all {
		a, list := listed[at], ran[at]
		want := map[string][2]time.Duration{"short": {50e3, 50e3}, "long, by a parameter": {200e3, 300e3}, "side 0": {100e3, 100e3}, "side 1": {100e3, 100e3}, "side 2": {100e3, 100e3}, "between": {50e3, 50e3}}[a.Label]
		each := executions
		if a.Label == "of two calls" {
			each *= 2
		}
		if len(list) != each {
			t.Errorf("command %d of recording %d (%s, %q) has %d times, want %d", at.index, at.recording, a.Op, a.Label, len(list), each)
		}
		var sum, most, out traceformat.Time
		least, lost := traceformat.Time(1<<62), 0
		for _, e := range list {
			sum, least, most = sum+e.Dur, min(least, e.Dur), max(most, e.Dur)
			if x, ok := submissions[e.Args.Sub]; ok {
				out = max(out, x.submitted-e.Time, e.Time+e.Dur-x.done)
			} else {
				lost++
			}
		}
		if n := traceformat.Time(len(list)); n > 0 {
			fmt.Fprintf(w, "%s\t%s\t%d\t%v\t%v\t%v\t%d\t%v\n", cmp.Or(a.Kernel, a.Op), a.Label, n, time.Duration(sum/n), time.Duration(least), time.Duration(most), lost, time.Duration(out))
		}
		if lost > 0 {
			t.Errorf("%s, %q: %d times without their launch", a.Op, a.Label, lost)
		}
		if want[0] > 0 && len(list) > 0 && (time.Duration(least) < want[0]-5*time.Microsecond || time.Duration(most) > want[1]+50*time.Microsecond) {
			t.Errorf("%q took %v to %v, want %v to %v", a.Label, time.Duration(least), time.Duration(most), want[0], want[1])
		}
		if out > traceformat.Time(time.Millisecond) {
			t.Errorf("%q ran %v outside of its launch", a.Label, time.Duration(out))
		}
	}
	w.Flush()
	t.Logf("\n%s", text.String())
}
