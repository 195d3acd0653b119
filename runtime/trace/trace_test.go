package trace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
	"github.com/puregpu/puregpu/runtime/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A file is a trace's destination in memory.
type file struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (f *file) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.b.Write(p)
}

// check reads a trace, which must be valid, and returns its events.
func check(t testing.TB, data []byte) (events []traceformat.Event) {
	t.Helper()
	rep, err := traceformat.Check(bytes.NewReader(data))
	must(t, err)
	for _, p := range rep.Problems {
		t.Error(p)
	}
	r := traceformat.NewReader(bytes.NewReader(data))
	for {
		var e traceformat.Event
		if r.Next(&e) != nil {
			return events
		}
		events = append(events, e)
	}
}

// of returns the events of a category and a phase.
func of(events []traceformat.Event, cat string, phase traceformat.Phase) (some []traceformat.Event) {
	for _, e := range events {
		if e.Cat == cat && e.Phase == phase {
			some = append(some, e)
		}
	}
	return some
}

// TestTrace runs a small program and compares the trace with the program's operations.
func TestTrace(t *testing.T) {
	var f file
	tr, err := trace.Start(&f, trace.Options{Times: trace.CommandTimes})
	must(t, err)
	sim := simdriver.New(simdriver.Config{Kernels: map[string]simdriver.Kernel{"nothing": simdriver.MustKernel(func(*simdriver.Grid, uint64) {})}})
	dev, err := gpu.Open(tr.Driver(sim), 0, gpu.Options{Queues: 2})
	must(t, err)
	dev.Queue(1).SetName("copies")
	b, err := dev.Alloc(gpu.DeviceMem, 1<<20)
	must(t, err)
	x, err := dev.Load(simdriver.Image("nothing"))
	must(t, err)
	k, err := x.Kernel("nothing")
	must(t, err)
	s, err := gpu.NewSemaphore(0)
	must(t, err)
	s.SetName("steps")
	at := func(wait, signal uint64) gpu.Order {
		return gpu.Order{Wait: []gpu.Point{s.At(wait)}, Signal: []gpu.Point{s.At(signal)}}
	}
	// The copy is parked, because no work yet signals 2.
	must(t, dev.Queue(1).Submit(at(2, 3), gpu.Copy(b.Range(0, 1<<19), b.Range(1<<19, 1<<19)).Label("late")))
	must(t, dev.Queue(0).Submit(at(0, 1), gpu.Fill(b.All(), []byte{0}).Label("zero")))
	must(t, dev.Queue(0).Submit(at(1, 2), gpu.Launch(k, gpu.Grid{Blocks: [3]uint32{4, 2}, Threads: [3]uint32{32}}, uint64(7))))
	must(t, dev.Queue(0).Submit(at(3, 4), gpu.HostCall(func() error { return nil }).Label("on the host")))
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	must(t, err)
	for range 5 {
		_, err := c.Add(gpu.Launch(k, gpu.Grid{}, uint64(7)))
		must(t, err)
	}
	must(t, c.End())
	must(t, dev.Queue(0).Submit(at(4, 5), gpu.Execute(c).Label("step")))
	broken := errors.New("broken")
	failing, err := gpu.NewSemaphore(0)
	must(t, err)
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{failing.At(1)}}, gpu.HostCall(func() error { return broken })))
	failing.Wait(context.Background(), 1)
	called := make(chan struct{})
	s.OnReached(6, func(error) { close(called) })
	must(t, s.Wait(context.Background(), 5))
	must(t, s.Signal(6))
	<-called
	must(t, c.Close())
	must(t, dev.Close())
	must(t, tr.Close())
	events := check(t, f.b.Bytes())

	subs := of(events, traceformat.CatSubmission, traceformat.AsyncBegin)
	subs = slices.DeleteFunc(subs, func(e traceformat.Event) bool { return e.Name == traceformat.NameParked })
	if len(subs) != 6 {
		t.Errorf("%d submissions", len(subs))
	}
	byLabel := map[string]traceformat.Event{}
	for _, e := range subs {
		byLabel[e.Args.Label+"/"+e.Args.Op] = e
	}
	launch := byLabel["/launch"]
	if launch.Args.Kernel != "nothing" || launch.Args.Grid != [3]uint32{4, 2, 1} || launch.Args.Block != [3]uint32{32, 1, 1} ||
		len(launch.Args.Waits) != 1 || launch.Args.Waits[0].Value != 1 || launch.Args.Waits[0].Name != "steps" {
		t.Errorf("the launch: %+v", launch.Args)
	}
	if e := byLabel["late/copy"]; e.Args.Bytes != 1<<19 || e.Name != `queue "copies"` {
		t.Errorf("the copy: %q %+v", e.Name, e.Args)
	}
	if n := len(of(events, traceformat.CatDevice, traceformat.Complete)); n != 4 {
		t.Errorf("%d slices on the device", n)
	}
	commands := of(events, traceformat.CatCommand, traceformat.Complete)
	step := byLabel["step/execute"].Args
	if len(commands) != 5 || step.Recording == 0 || !step.Graph {
		t.Errorf("%d commands of recording %d, which is a graph: %v", len(commands), step.Recording, step.Graph)
	}
	for _, e := range commands {
		if e.Args.Sub != step.Sub || e.Args.Recording != step.Recording || e.Name != "nothing" || e.Args.Kernel != "" {
			t.Errorf("a command: %+v", e)
		}
	}
	var listed []int
	for _, e := range events {
		if e.Name != traceformat.MetaCommand {
			continue
		}
		if listed = append(listed, e.Args.Command); e.Args.Recording != step.Recording || e.Args.Kernel != "nothing" || e.Args.Op != "launch" {
			t.Errorf("a listed command: %+v", e.Args)
		}
	}
	if !slices.Equal(listed, []int{0, 1, 2, 3, 4}) {
		t.Errorf("the file lists the commands %v", listed)
	}
	// The chain has four arrows. One more leads to the wait, and one to the function of OnReached.
	if n := len(of(events, traceformat.CatSignal, traceformat.FlowEnd)); n != 6 {
		t.Errorf("%d arrows", n)
	}
	names := map[string]int{}
	for _, e := range of(events, traceformat.CatCall, traceformat.Complete) {
		names[e.Name]++
	}
	for _, name := range []string{"open", "allocate", "load", "on the host", "host call", "function", "signal", "close"} {
		if names[name] != 1 {
			t.Errorf("%d calls %q, of %v", names[name], name, names)
		}
	}
	failed := 0
	for _, e := range of(events, traceformat.CatSubmission, traceformat.AsyncEnd) {
		if e.Args.Error != "" {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d submissions failed", failed)
	}
	if t.Failed() {
		t.Logf("%s", f.b.Bytes())
	}
}

// TestKilled kills a process that is writing a trace. What the file has then must be valid.
func TestKilled(t *testing.T) {
	if file := os.Getenv("PUREGPU_TRACE_TEST_FILE"); file != "" {
		busy(t, file)
	}
	// The folder is created here, because the killed process could not remove it.
	name := filepath.Join(t.TempDir(), "killed.json")
	exe, err := os.Executable()
	must(t, err)
	for i := range 3 {
		os.Remove(name)
		cmd := exec.Command(exe, "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "PUREGPU_TRACE_TEST_FILE="+name)
		must(t, cmd.Start())
		written := func() *traceformat.Report {
			data, _ := os.ReadFile(name)
			if len(data) < (i+1)<<16 {
				return &traceformat.Report{}
			}
			rep, err := traceformat.Check(bytes.NewReader(data))
			must(t, err)
			return rep
		}
		// Device times, and therefore arrows, are missing until the clocks have been compared.
		for end := time.Now().Add(time.Minute); written().Arrows == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				cmd.Process.Kill()
				t.Fatal("nothing is written")
			}
		}
		must(t, cmd.Process.Kill())
		cmd.Wait()
		rep := written()
		for _, p := range rep.Problems {
			t.Error(p)
		}
		if !rep.Cut || rep.Submissions == 0 || rep.Arrows == 0 {
			t.Errorf("%+v", rep)
		}
	}
}

// busy submits work until the process is killed.
func busy(t *testing.T, file string) {
	tr, err := trace.Create(file, trace.Options{})
	must(t, err)
	dev, err := gpu.Open(tr.Driver(simdriver.New(simdriver.Config{})), 0, gpu.Options{})
	must(t, err)
	b, err := dev.Alloc(gpu.DeviceMem, 1<<10)
	must(t, err)
	s, err := gpu.NewSemaphore(0)
	must(t, err)
	for i := uint64(0); ; i++ {
		must(t, dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{s.At(i)}, Signal: []gpu.Point{s.At(i + 1)}}, gpu.Fill(b.All(), []byte{1})))
		if i%64 == 0 {
			must(t, s.Wait(context.Background(), i+1))
		}
	}
}

// TestFromEnv starts traces by environment variables. Traces of one process, and of several ranks,
// must get separate files.
func TestFromEnv(t *testing.T) {
	dir := t.TempDir()
	env := func(pairs ...string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1], true
				}
			}
			return "", false
		}
	}
	if tr, err := trace.FromEnv(env()); tr != nil || err != nil {
		t.Errorf("a trace without PUREGPU_TRACE: %v, %v", tr, err)
	}
	file := filepath.Join(dir, "a.json")
	var all []*trace.Trace
	for _, e := range [][]string{
		{trace.Variable, file},
		{trace.Variable, file, trace.TimesVariable, "commands"},
		{trace.Variable, file, trace.TimesVariable, "none", "RANK", "3", "WORLD_SIZE", "8", trace.SlowVariable, "1s"},
		{trace.Variable, filepath.Join(dir, "b-%r-%p.json"), trace.TimesVariable, "submissions", "PUREGPU_RANK", "2", "PUREGPU_WORLD_SIZE", "4"},
	} {
		tr, err := trace.FromEnv(env(e...))
		must(t, err)
		all = append(all, tr)
	}
	pid := strconv.Itoa(os.Getpid())
	for i, name := range []string{"a.json", "a." + pid + ".json", "a.rank3.json", "b-2-" + pid + ".json"} {
		must(t, all[i].Close())
		must(t, all[i].Close())
		data, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		events := check(t, data)
		want := []string{"submissions", "commands", "none", "submissions"}[i]
		if m := events[0].Args; m.Level != want || m.Rank != []int{0, 0, 3, 2}[i] || m.World != []int{0, 0, 8, 4}[i] || m.OSPID != os.Getpid() {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for _, e := range [][]string{
		{trace.Variable, file, trace.TimesVariable, "all"},
		{trace.Variable, file, trace.SlowVariable, "5"},
		{trace.Variable, filepath.Join(dir, "not", "there.json")},
	} {
		if tr, err := trace.FromEnv(env(e...)); tr != nil || err == nil || !strings.Contains(err.Error(), "environment variable "+e[len(e)-2]) {
			t.Errorf("%v: %v, %v", e, tr, err)
		}
	}
}

// TestRanks checks that an impossible rank is an error and that no file is created.
func TestRanks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	for _, o := range []trace.Options{{Rank: 2, World: 2}, {Rank: -1, World: 2}, {World: -1}} {
		if tr, err := trace.Create(file, o); tr != nil || !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: %v, %v", o, tr, err)
		}
		if tr, err := trace.Start(io.Discard, o); tr != nil || !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: %v, %v", o, tr, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
}

// TestFileEnds checks that the file is complete when all devices have been closed, although the
// trace is open. The file must grow when another device is opened.
func TestFileEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	tr, err := trace.Create(file, trace.Options{})
	must(t, err)
	for i := range 3 {
		dev, err := gpu.Open(tr.Driver(simdriver.New(simdriver.Config{})), 0, gpu.Options{})
		must(t, err)
		must(t, dev.Close())
		data, err := os.ReadFile(file)
		must(t, err)
		if n := len(of(check(t, data), traceformat.CatCall, traceformat.Complete)); n != 2*i+2 || !json.Valid(data) {
			t.Errorf("%d calls, in\n%s", n, data)
		}
	}
	must(t, tr.Close())
	data, err := os.ReadFile(file)
	must(t, err)
	if check(t, data); !json.Valid(data) {
		t.Errorf("it is not whole:\n%s", data)
	}
}

// TestFileEndsLate checks that the file is complete after Flush if the host signals after the
// device was closed.
func TestFileEndsLate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	tr, err := trace.Create(file, trace.Options{})
	must(t, err)
	dev, err := gpu.Open(tr.Driver(simdriver.New(simdriver.Config{})), 0, gpu.Options{})
	must(t, err)
	var s gpu.Semaphore
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{s.At(1)}}, gpu.HostCall(func() error { return nil })))
	must(t, s.Wait(context.Background(), 1))
	must(t, dev.Close())
	for v := range uint64(3) {
		must(t, s.Signal(v+2))
		must(t, tr.Flush())
		data, err := os.ReadFile(file)
		must(t, err)
		if n := len(of(check(t, data), traceformat.CatCall, traceformat.Complete)); n != int(v)+4 || !json.Valid(data) {
			t.Errorf("%d calls, in\n%s", n, data)
		}
	}
	must(t, tr.Close())
}

// TestLongEvents traces a wait for very many semaphores, and a very long label. Both must be
// readable.
func TestLongEvents(t *testing.T) {
	var f file
	tr, err := trace.Start(&f, trace.Options{Records: 1 << 16})
	must(t, err)
	dev, err := gpu.Open(tr.Driver(simdriver.New(simdriver.Config{})), 0, gpu.Options{})
	must(t, err)
	long := 30_000
	if testing.Short() {
		long = 3000
	}
	var done gpu.Semaphore
	many := make([]gpu.Semaphore, long)
	o, label := gpu.Order{Signal: []gpu.Point{done.At(1)}}, strings.Repeat("</script>\xff\"\n", 7*long)
	for i := range many {
		many[i].SetName("request " + strconv.Itoa(i))
		must(t, many[i].Signal(1))
		o.Wait = append(o.Wait, many[i].At(1))
	}
	must(t, dev.Queue(0).Submit(o, gpu.HostCall(func() error { return nil }).Label(label)))
	must(t, done.Wait(context.Background(), 1))
	must(t, dev.Close())
	must(t, tr.Close())
	for _, e := range of(check(t, f.b.Bytes()), traceformat.CatSubmission, traceformat.AsyncBegin) {
		if len(e.Args.Waits) != len(many) || e.Args.Label != strings.ToValidUTF8(label, "\ufffd") {
			t.Errorf("%d waits, and a label of %d bytes", len(e.Args.Waits), len(e.Args.Label))
		}
	}
}

// TestReopened opens a device again and again. The device must keep its track in the trace. While
// it is open twice, it must have two tracks.
func TestReopened(t *testing.T) {
	var f file
	tr, err := trace.Start(&f, trace.Options{})
	must(t, err)
	d := tr.Driver(simdriver.New(simdriver.Config{}))
	for i := range 20 {
		devs := make([]*gpu.Device, 1+min(i, 1))
		for k := range devs {
			devs[k], err = gpu.Open(d, 0, gpu.Options{})
			must(t, err)
			s := devs[k].Queue(0).NewStream()
			must(t, s.Do(gpu.HostCall(func() error { return nil })))
			must(t, s.Wait(context.Background()))
		}
		for _, dev := range devs {
			must(t, dev.Close())
		}
	}
	must(t, tr.Close())
	used := map[[2]int64]int{}
	for _, e := range of(check(t, f.b.Bytes()), traceformat.CatSubmission, traceformat.AsyncBegin) {
		used[[2]int64{e.PID, e.TID}]++
	}
	if len(used) != 2 {
		t.Errorf("submissions are on %d tracks: %v", len(used), used)
	}
}

// TestFileEndsDropped checks that the file is complete when the device has been closed, even if the
// record of the close was dropped.
func TestFileEndsDropped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	busy := &busyHandler{Handler: slog.DiscardHandler, entered: make(chan struct{})}
	tr, err := trace.Create(file, trace.Options{Records: 16, Slow: 1, Logger: slog.New(busy)})
	must(t, err)
	busy.until = func() bool { return tr.Tracer().Stats().Devices == 0 }
	dev, err := gpu.Open(tr.Driver(simdriver.New(simdriver.Config{})), 0, gpu.Options{})
	must(t, err)
	s := dev.Queue(0).NewStream()
	must(t, s.Do(gpu.HostCall(func() error {
		for began := time.Now(); time.Since(began) <= 1; { // a clock may tick rarely
		}
		return nil
	})))
	must(t, s.Wait(context.Background()))
	<-busy.entered // the logger blocks the writer, which takes no records until the device has been closed
	var never gpu.Semaphore
	for range 50 {
		must(t, dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{never.At(1)}}, gpu.Barrier()))
	}
	must(t, dev.Close())
	data, err := os.ReadFile(file)
	must(t, err)
	check(t, data)
	if stats := tr.Tracer().Stats(); !json.Valid(data) || stats.Dropped == 0 {
		t.Errorf("%+v, in\n%s", stats, data)
	}
	must(t, tr.Close())
}

// A busyHandler blocks the first call of Handle until a condition holds.
type busyHandler struct {
	slog.Handler
	once    sync.Once
	entered chan struct{}
	until   func() bool
}

func (h *busyHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *busyHandler) Handle(context.Context, slog.Record) error {
	h.once.Do(func() {
		close(h.entered)
		for !h.until() {
			time.Sleep(time.Millisecond)
		}
	})
	return nil
}

// TestSlow checks that each slow submission is logged on one line.
func TestSlow(t *testing.T) {
	var out bytes.Buffer
	tr, err := trace.Start(io.Discard, trace.Options{Slow: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	must(t, err)
	dev, err := gpu.Open(tr.Driver(simdriver.New(simdriver.Config{})), 0, gpu.Options{})
	must(t, err)
	for _, d := range []time.Duration{0, 20 * time.Millisecond} {
		s := dev.Queue(0).NewStream()
		must(t, s.Do(gpu.HostCall(func() error { time.Sleep(d); return nil })))
		must(t, s.Wait(context.Background()))
	}
	must(t, dev.Close())
	must(t, tr.Close())
	if text := out.String(); strings.Count(text, "\n") > 2 || !strings.Contains(text, `op="host call"`) || !strings.Contains(text, "ran for") {
		t.Errorf("%s", text)
	}
}

// TestGraphsHaveNoCommandTimes traces recordings on a device that cannot time the nodes of graphs.
// The trace must say which executions ran as graphs. With CommandTimes, recordings of AutoMode must
// run as calls, with command times, and the log must say once that GraphMode has none.
func TestGraphsHaveNoCommandTimes(t *testing.T) {
	for _, times := range []trace.Times{trace.SubmissionTimes, trace.CommandTimes} {
		var f file
		var out bytes.Buffer
		tr, err := trace.Start(&f, trace.Options{Times: times, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		must(t, err)
		caps := simdriver.CUDACaps()
		dev, err := gpu.Open(tr.Driver(simdriver.New(simdriver.Config{Caps: &caps})), 0, gpu.Options{})
		must(t, err)
		b, err := dev.Alloc(gpu.DeviceMem, 64)
		must(t, err)
		var done gpu.Semaphore
		for i, mode := range []gpu.Mode{gpu.GraphMode, gpu.AutoMode, gpu.GraphMode} {
			c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode})
			must(t, err)
			for j := range 20 {
				_, err := c.Add(gpu.Fill(b.Range(uint64(j), 1), []byte{1}))
				must(t, err)
			}
			must(t, c.End())
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{done.At(uint64(i) + 1)}}, gpu.Execute(c)))
			must(t, done.Wait(context.Background(), uint64(i)+1))
			must(t, c.Close())
		}
		must(t, dev.Close())
		must(t, tr.Close())
		events := check(t, f.b.Bytes())
		want := times == trace.CommandTimes
		for i, e := range of(events, traceformat.CatSubmission, traceformat.AsyncBegin) {
			if e.Args.Graph != (!want || i != 1) || e.Args.Recording == 0 {
				t.Errorf("%v: execution %d of recording %d ran as a graph: %v", times, i, e.Args.Recording, e.Args.Graph)
			}
		}
		if n := len(of(events, traceformat.CatCommand, traceformat.Complete)); n > 20 || (n > 0) != want {
			t.Errorf("%v: %d slices of commands", times, n)
		}
		if n := strings.Count(out.String(), "GraphMode"); n != int(times) { // CommandTimes is 1
			t.Errorf("%v: the log is %q", times, out.String())
		}
	}
}

// TestWriteFails makes writes fail. Close of the trace must return the error, and the program must
// continue.
func TestWriteFails(t *testing.T) {
	if tr, err := trace.Start(nil, trace.Options{}); tr != nil || !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("%v, %v", tr, err)
	}
	w := &full{}
	tr, err := trace.Start(w, trace.Options{})
	must(t, err)
	w.now.Store(true)
	dev, err := gpu.Open(tr.Driver(simdriver.New(simdriver.Config{})), 0, gpu.Options{})
	must(t, err)
	b, err := dev.Alloc(gpu.DeviceMem, 1<<10)
	must(t, err)
	s := dev.Queue(0).NewStream()
	must(t, s.Fill(b.All(), []byte{1}))
	must(t, s.Wait(context.Background()))
	must(t, dev.Close())
	if err := tr.Close(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%v", err)
	}
}

// A full stands for a file on a disk. Once full.now is set, the disk is full.
type full struct{ now atomic.Bool }

func (f *full) Write(p []byte) (int, error) {
	if f.now.Load() {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// TestDropped traces with too small a buffer. The trace must say how many records are missing, and
// must be valid.
func TestDropped(t *testing.T) {
	var f file
	tr, err := trace.Start(&f, trace.Options{Records: 16})
	must(t, err)
	dev, err := gpu.Open(tr.Driver(simdriver.New(simdriver.Config{})), 0, gpu.Options{})
	must(t, err)
	b, err := dev.Alloc(gpu.DeviceMem, 1<<10)
	must(t, err)
	s := dev.Queue(0).NewStream()
	for range 5000 {
		must(t, s.Fill(b.All(), []byte{1}))
	}
	must(t, s.Wait(context.Background()))
	must(t, dev.Close())
	must(t, tr.Close())
	events := check(t, f.b.Bytes())
	total := uint64(0)
	for _, e := range of(events, traceformat.CatDrop, traceformat.Instant) {
		total += e.Args.Dropped
	}
	if want := tr.Tracer().Stats().Dropped; total != want || total == 0 {
		t.Errorf("the trace says that %d records are missing, want %d", total, want)
	}
}

// A sink calls a function for each Write.
type sink func()

func (f sink) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// TestBusyProgram checks that Flush, Close of a device and Close of the trace return while the
// program adds records faster than they can be written.
func TestBusyProgram(t *testing.T) {
	const room = 256
	var s, first gpu.Semaphore
	var busy atomic.Bool
	value := uint64(1)
	tr, err := trace.Start(sink(func() {
		// Add more records than the writer takes at a time.
		for n := 0; busy.Load() && n < 2*room; n++ {
			value++
			s.Signal(value)
		}
	}), trace.Options{Records: room})
	must(t, err)
	dev, err := gpu.Open(tr.Driver(simdriver.New(simdriver.Config{})), 0, gpu.Options{})
	must(t, err)
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{s.At(1), first.At(1)}}, gpu.HostCall(func() error { return nil })))
	must(t, s.Wait(context.Background(), 1))
	must(t, first.Wait(context.Background(), 1))
	busy.Store(true)
	must(t, first.Signal(2)) // starts the loop in the sink
	done := make(chan error, 1)
	go func() { done <- errors.Join(tr.Flush(), dev.Close(), tr.Close()) }()
	select {
	case err = <-done:
	case <-time.After(20 * time.Second):
		t.Error("it goes on as long as the program does")
		busy.Store(false)
		err = <-done
	}
	must(t, err)
}

// TestAdoptedQueues checks that a trace does not keep all adopted queues that the program has
// closed.
func TestAdoptedQueues(t *testing.T) {
	const many = 1000
	tr, err := trace.Start(io.Discard, trace.Options{Times: trace.NoTimes})
	must(t, err)
	sim := simdriver.New(simdriver.Config{})
	dev, err := gpu.Open(tr.Driver(sim), 0, gpu.Options{})
	must(t, err)
	v, err := sim.Open(0)
	must(t, err)
	h, err := v.NewStream()
	must(t, err)
	b, err := dev.Alloc(gpu.DeviceMem, 64)
	must(t, err)
	var queues [many]weak.Pointer[gpu.Queue]
	for i := range queues {
		q, err := interop.AdoptStream(dev, h)
		must(t, err)
		s := q.NewStream()
		must(t, s.Fill(b.All(), []byte{1}))
		must(t, s.Wait(context.Background()))
		must(t, q.Close())
		queues[i] = weak.Make(q)
	}
	must(t, tr.Flush())
	runtime.GC()
	left := 0
	for _, q := range queues {
		if q.Value() != nil {
			left++
		}
	}
	if left > many/2 { // records that are not overwritten yet refer to some queues
		t.Errorf("%d of %d queues are kept", left, many)
	}
	must(t, dev.Close())
	must(t, v.DestroyStream(h))
	must(t, v.Close())
	must(t, tr.Close())
}
