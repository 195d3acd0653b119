package trace_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A file is what a trace is written to.
type file struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (f *file) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.b.Write(p)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check reads a trace, which must break no rule, and returns its events.
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

// TestTrace runs a small program, and finds in its trace what it did.
func TestTrace(t *testing.T) {
	var f file
	tr, err := trace.Start(&f, trace.Options{Times: gpu.CommandTimes})
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
	at := func(wait, signal uint64, label string) gpu.Order {
		return gpu.Order{Wait: []gpu.Point{s.At(wait)}, Signal: []gpu.Point{s.At(signal)}, Label: label}
	}
	must(t, dev.Queue(1).Copy(at(2, 3, "late"), b.Range(0, 1<<19), b.Range(1<<19, 1<<19))) // parked
	must(t, dev.Queue(0).Fill(at(0, 1, "zero"), b.All(), []byte{0}))
	must(t, dev.Queue(0).Dispatch(at(1, 2, ""), gpu.Dispatch{Kernel: k, Grid: [3]uint32{4, 2, 1}, Block: [3]uint32{32, 1, 1}, Args: args(uint64(7))}))
	must(t, dev.Queue(0).HostCall(at(3, 4, "on the host"), func() error { return nil }))
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	must(t, err)
	for range 5 {
		_, err := c.Dispatch(gpu.Dispatch{Kernel: k, Grid: [3]uint32{1, 1, 1}, Args: args(uint64(7))})
		must(t, err)
	}
	must(t, c.End())
	must(t, dev.Queue(0).Execute(at(4, 5, "step"), c))
	broken := errors.New("broken")
	failing, err := gpu.NewSemaphore(0)
	must(t, err)
	must(t, dev.Queue(0).HostCall(gpu.Order{Signal: []gpu.Point{failing.At(1)}}, func() error { return broken }))
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
	launch := byLabel["/dispatch"]
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
	if len(commands) != 5 || commands[4].Args.Command != 4 || commands[4].Args.Kernel != "nothing" || commands[0].Args.Sub != byLabel["step/execute"].Args.Sub {
		t.Errorf("commands: %+v", commands)
	}
	if n := len(of(events, traceformat.CatSignal, traceformat.FlowEnd)); n != 6 { // four in the chain, of the wait, and of the function
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
