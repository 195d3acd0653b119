package nvtxtrace_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/nvtxtest"
	"github.com/puregpu/puregpu/nvtx"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/trace"
	"github.com/puregpu/puregpu/runtime/trace/nvtxtrace"
)

var numbers = regexp.MustCompile(` on \d+ `)

// wrote checks the calls that the tool has recorded. Calls that create a domain or name a category
// are ignored.
func wrote(t *testing.T, tool *nvtxtest.Tool, want ...string) {
	t.Helper()
	var got []string
	for _, line := range tool.Wrote() {
		if !strings.HasPrefix(line, "category ") && !strings.HasPrefix(line, "create ") {
			got = append(got, numbers.ReplaceAllString(line, " "))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the tool got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// marks returns a native operation that calls nvtx.Mark when it is issued.
func marks(b *gpu.Buffer) gpu.Op {
	return gpu.Native("", func(gpu.NativeCall) error { nvtx.Mark("issued"); return nil }, b.All())
}

func TestLabelsAreRanges(t *testing.T) {
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	dev := testkit.OpenDevice(t, testkit.NewSim(t, simdriver.Config{}), 0, gpu.Options{Tracer: nvtxtrace.Tracer{}})
	names := tool.Wrote()
	for _, want := range []string{"create puregpu", "category puregpu 4 copy", "category puregpu 8 launch"} {
		if !slices.Contains(names, want) {
			t.Errorf("the tool did not get %q, but %q", want, names)
		}
	}
	b, q, s := testkit.Alloc(t, dev, 64), dev.Queue(0), testkit.Semaphores(t, 1)[0]
	value := uint64(0)
	do := func(op gpu.Op) {
		t.Helper()
		value++
		testkit.Must(t, q.Submit(gpu.Order{Signal: testkit.Points(s, value)}, op))
		testkit.Must(t, s.Wait(testkit.Minute(t), value))
	}

	do(marks(b))
	do(gpu.Fill(b.All(), []byte{1}))
	wrote(t, tool, "mark - good 1:issued")

	do(marks(b).Label("layer 3"))
	wrote(t, tool, "push 0 puregpu good 1:layer 3 category 19", "mark - good 1:issued", "pop 0 puregpu")

	do(gpu.Copy(b.Range(0, 8), b.Range(8, 8)).Label("halo"))
	wrote(t, tool, "push 0 puregpu good 1:halo category 4 payload 1:8", "pop 0 puregpu")

	do(gpu.HostCall(func() error { nvtx.Mark("called"); return nil }).Label("host"))
	wrote(t, tool, "push 0 puregpu good 1:host category 20", "mark - good 1:called", "pop 0 puregpu")
}

func TestLabelsOfCommandsAreRanges(t *testing.T) {
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	dev := testkit.OpenDevice(t, testkit.NewSim(t, simdriver.Config{}), 0, gpu.Options{Tracer: nvtxtrace.Tracer{}})
	b, q, s := testkit.Alloc(t, dev, 64), dev.Queue(0), testkit.Semaphores(t, 1)[0]
	c := testkit.CommandBuffer(t, dev, gpu.StreamMode)
	for _, op := range []gpu.Op{marks(b).Label("first"), marks(b), marks(b).Label("third")} {
		_, err := c.Add(op)
		testkit.Must(t, err)
	}
	testkit.Must(t, c.End())
	tool.Wrote()
	for i, label := range []string{"", "all"} {
		testkit.Must(t, q.Submit(gpu.Order{Signal: testkit.Points(s, uint64(i+1))}, gpu.Execute(c).Label(label)))
		testkit.Must(t, s.Wait(testkit.Minute(t), uint64(i+1)))
	}
	const issued = "mark - good 1:issued"
	wrote(t, tool, "push 0 puregpu good 1:first category 19", issued, "pop 0 puregpu", issued, "push 0 puregpu good 1:third category 19", issued, "pop 0 puregpu",
		"push 0 puregpu good 1:all category 17", "push 1 puregpu good 1:first category 19", issued, "pop 1 puregpu", issued,
		"push 1 puregpu good 1:third category 19", issued, "pop 1 puregpu", "pop 0 puregpu")
}

// TestDriversShowLabels checks that the tool gets labels if a program opens its driver by package
// drivers and sets no tracer.
func TestDriversShowLabels(t *testing.T) {
	t.Setenv("PUREGPU_DRIVER", drivers.Sim)
	t.Setenv(trace.Variable, "")
	tool := nvtxtest.Attach(t)
	if tool == nil {
		return
	}
	d, err := drivers.Best()
	testkit.Must(t, err)
	dev := testkit.OpenDevice(t, d, 0, gpu.Options{})
	tool.Wrote()
	b, s := testkit.Alloc(t, dev, 64), testkit.Semaphores(t, 1)[0]
	testkit.Must(t, dev.Queue(0).Submit(gpu.Order{Signal: testkit.Points(s, 1)}, gpu.Fill(b.All(), []byte{1}).Label("zero")))
	testkit.Must(t, s.Wait(testkit.Minute(t), 1))
	wrote(t, tool, "push 0 puregpu good 1:zero category 2 payload 1:64", "pop 0 puregpu")
}

// TestWithoutToolNothingIsObserved checks that the tracer's observer is nil without a tool, and
// that submissions to a device with the tracer allocate nothing.
func TestWithoutToolNothingIsObserved(t *testing.T) {
	if nvtx.Enabled() {
		t.Skipf("%s is set", nvtx.Variable)
	}
	if o, err := (nvtxtrace.Tracer{}).Observe(nil, nil, nil); o != nil || err != nil {
		t.Errorf("observer %v, error %v", o, err)
	}
	if d := nvtxtrace.Driver(nil); d != nil {
		t.Errorf("a driver around nil: %v", d)
	}
	dev, err := gpu.Open(nvtxtrace.Driver(testkit.IdleDriver{}), 0, gpu.Options{})
	testkit.Must(t, err)
	defer dev.Close()
	b, q := testkit.Alloc(t, dev, 64), dev.Queue(0)
	op := gpu.Fill(b.All(), []byte{1}).Label("zero")
	if n := testing.AllocsPerRun(200, func() { testkit.Must(t, q.Submit(gpu.Order{}, op)) }); n != 0 && !testkit.RaceEnabled {
		t.Errorf("%v allocations a submission", n)
	}
}
