package recording_test

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestGraphConcurrency executes a graph with two kernels that end only when both have begun, and
// with a kernel that comes after them and must run last.
func TestGraphConcurrency(t *testing.T) {
	t.Run("B103 unordered commands run concurrently, ordered ones do not", func(t *testing.T) {
		left, right := make(chan struct{}), make(chan struct{})
		var mu sync.Mutex
		var order []string
		note := func(s string) { mu.Lock(); order = append(order, s); mu.Unlock() }
		meet := func(name string, mine, other chan struct{}) simdriver.Kernel {
			return simdriver.MustKernel(func(g *simdriver.Grid) {
				note(name + " begins")
				close(mine)
				<-other
				note(name + " ends")
			})
		}
		d := simdriver.New(simdriver.Config{Kernels: map[string]simdriver.Kernel{
			"left": meet("left", left, right), "right": meet("right", right, left),
			"last": simdriver.MustKernel(func(g *simdriver.Grid) { note("last") }),
		}})
		dev := openDevice(t, d, 0, gpu.Options{})
		x, err := dev.Load(simdriver.Image("left", "right", "last"))
		must(t, err)
		c, s := commandBuffer(t, dev, gpu.GraphMode), semaphores(t, 1)[0]
		var after []gpu.Command
		for _, name := range []string{"left", "right", "last"} {
			k, err := x.Kernel(name)
			must(t, err)
			at, err := c.Add(gpu.Launch(k, gpu.Grid{}), after...)
			must(t, err)
			if name == "right" {
				after = []gpu.Command{0, at}
			}
		}
		must(t, c.End())
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c)))
		must(t, s.Wait(minute(t), 1))
		mu.Lock()
		defer mu.Unlock()
		if len(order) != 5 || order[4] != "last" {
			t.Errorf("%v", order)
		}
		must(t, dev.Close())
	})
}

// TestGraphFaults makes driver calls fail: calls that make, update or launch a graph, and calls
// that replay a command. It also checks that unchanged nodes are not updated.
func TestGraphFaults(t *testing.T) {
	broken := errors.New("broken")
	t.Run("B105 End says that a graph cannot be made", func(t *testing.T) {
		for _, op := range []simdriver.Op{simdriver.OpNewGraph, simdriver.OpAddNode, simdriver.OpInstantiate} {
			d := newSim(t, simdriver.Config{})
			dev := openDevice(t, d, 0, gpu.Options{})
			b, c := allocate(t, dev, 64), commandBuffer(t, dev, gpu.GraphMode)
			x, err := c.Binding()
			must(t, err)
			// The fill is larger than the memory that the graph uses in place of the binding (see
			// standInSize), so the fill's node first gets only a part of the range.
			recorded(t)(c.Add(gpu.Fill(x.Range(0, 1<<20), []byte{1})))
			recorded(t)(c.Add(gpu.Barrier()))
			recorded(t)(c.Add(gpu.Fill(b.All(), []byte{2})))
			d.Inject(simdriver.Fault{Op: op, N: 1, Err: broken})
			err = c.End()
			if !errors.Is(err, broken) {
				t.Errorf("%s: End = %v", op, err)
			}
			if op == simdriver.OpAddNode && !strings.Contains(err.Error(), "command 0, fill") {
				t.Errorf("%v", err)
			}
			if g := d.Counters().Devices[0]; g.Graphs+g.Execs != 0 {
				t.Errorf("%s: %d graphs, %d execs", op, g.Graphs, g.Execs)
			}
			if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Execute(c, b.All())); !errors.Is(err, broken) {
				t.Errorf("%s: Execute = %v", op, err)
			}
			if _, err := commandBuffer(t, dev, gpu.AutoMode).Add(gpu.Execute(c, b.All())); !errors.Is(err, broken) {
				t.Errorf("%s: Execute in another recording = %v", op, err)
			}
			must(t, c.Close())
			must(t, dev.Close())
		}
	})
	t.Run("B105 a graph made at execution fails", func(t *testing.T) {
		for _, op := range []simdriver.Op{simdriver.OpNewGraph, simdriver.OpAddNode, simdriver.OpInstantiate, simdriver.OpLaunchGraph} {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 2)
			// End makes no graph for a fill of 8-byte values that is larger than the memory that a
			// graph uses in place of the binding (see standInSize).
			const n = 1 << 20
			b, c := allocate(t, dev, n), commandBuffer(t, dev, gpu.GraphMode)
			x, err := c.Binding()
			must(t, err)
			recorded(t)(c.Add(gpu.Fill(x.Range(0, n), []byte{1, 2, 3, 4, 5, 6, 7, 8})))
			must(t, c.End())
			d.Inject(simdriver.Fault{Op: op, N: 1, Err: broken})
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(c, b.All())))
			if err := s[0].Wait(minute(t), 1); !errors.Is(err, broken) {
				t.Errorf("%s: %v", op, err)
			}
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(c, b.All())))
			must(t, s[1].Wait(minute(t), 1))
			if got := bytesOf(t, dev.Queue(0), b); got[7] != 8 || got[n-1] != 8 {
				t.Errorf("%s: %x", op, got[:8])
			}
			must(t, dev.Close())
		}
	})
	t.Run("B102 an update that the driver refuses makes a new graph", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
		from, to, c := allocate(t, dev, 256), allocate(t, dev, 256), commandBuffer(t, dev, gpu.GraphMode)
		x, err := c.Binding()
		must(t, err)
		y, err := c.Binding()
		must(t, err)
		f := recorded(t)(c.Add(gpu.Fill(x.Range(0, 8), []byte{1, 2, 3, 4, 5, 6, 7, 8})))
		recorded(t)(c.Add(gpu.Copy(y.Range(0, 8), x.Range(0, 8)), f))
		must(t, c.End())
		run := func(i uint64) { // does not wait: executions on a stalled device stay in flight
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, i+1)}, gpu.Execute(c, from.Range(8*i, 8), to.Range(8*i, 8))))
		}
		d.StallDevice(0)
		run(0)
		for i := range uint64(12) {
			switch i % 3 {
			case 0: // the first node that is updated, or the last
				d.Inject(simdriver.Fault{Op: simdriver.OpSetNode, N: 1 + i%2*2, Err: broken})
			case 1: // the graph cannot be updated or made again: only this execution fails
				bad := semaphores(t, 1)[0]
				d.Inject(simdriver.Fault{Op: simdriver.OpSetNode, N: 2, Err: broken})
				d.Inject(simdriver.Fault{Op: simdriver.OpInstantiate, N: 1, Err: broken})
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(bad, 1)}, gpu.Execute(c, from.Range(8*(i+1), 8), to.Range(8*(i+1), 8))))
				if err := bad.Wait(minute(t), 1); !errors.Is(err, broken) {
					t.Errorf("%v", err)
				}
			}
			run(i + 1)
		}
		d.ResumeDevice(0)
		got := bytesOf(t, dev.Queue(0), to, gpu.Point{Semaphore: s, Value: 13})
		for i := range 13 * 8 {
			if got[i] != byte(i%8+1) {
				t.Fatalf("%x", got)
			}
		}
		must(t, c.Close())
		must(t, dev.Close())
	})
	t.Run("B87 replaced graphs are destroyed after their last use", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
		b, c := allocate(t, dev, 512), commandBuffer(t, dev, gpu.GraphMode)
		x, err := c.Binding()
		must(t, err)
		recorded(t)(c.Add(gpu.Fill(x.Range(0, 8), []byte{1})))
		must(t, c.End())
		d.Inject(simdriver.Fault{Op: simdriver.OpSetNode, Err: broken})
		for i := range uint64(40) {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, i+1)}, gpu.Execute(c, b.Range(8*i, 8))))
			must(t, s.Wait(minute(t), i+1))
			must(t, dev.Queue(0).Flush())
		}
		if n := d.Counters().Devices[0]; n.Graphs > 4 || n.Execs > 4 {
			t.Errorf("%d graphs, %d execs", n.Graphs, n.Execs)
		}
		must(t, dev.Close())
	})
	t.Run("B102 unchanged nodes are not updated", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
		b, c := allocate(t, dev, 256), commandBuffer(t, dev, gpu.GraphMode)
		x, err := c.Binding()
		must(t, err)
		for i := range uint64(8) {
			recorded(t)(c.Add(gpu.Fill(b.Range(8*i, 8), []byte{1})))
		}
		recorded(t)(c.Add(gpu.Fill(x.Range(0, 8), []byte{2})))
		must(t, c.End())
		for i, at := range []uint64{128, 128, 136, 136, 128} {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, uint64(i+1))}, gpu.Execute(c, b.Range(at, 8))))
		}
		must(t, s.Wait(minute(t), 5))
		if n := calls(d, 0, simdriver.OpSetNode); n != 3 { // including the first execution's
			t.Errorf("%d nodes were set", n)
		}
		if n := calls(d, 0, simdriver.OpInstantiate); n != 1 {
			t.Errorf("%d graphs were made", n)
		}
		must(t, dev.Close())
	})
	t.Run("B80 the driver refuses a command in the middle", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 2)
		b, c := allocate(t, dev, 64), commandBuffer(t, dev, gpu.StreamMode)
		for i := range uint64(4) {
			recorded(t)(c.Add(gpu.Fill(b.Range(8*i, 8), []byte{byte(i + 1)})))
		}
		must(t, c.End())
		d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 3, Err: broken})
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(c)))
		err := s[0].Wait(minute(t), 1)
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "command 2, fill") {
			t.Errorf("%v", err)
		}
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(c)))
		must(t, s[1].Wait(minute(t), 1))
		must(t, dev.Close())
	})
}

// TestTimestampsOverlap executes a recording with a timestamp while an earlier execution is in
// flight. The driver lets an event be recorded again only after the host has seen it complete. The
// runtime must obey this rule, also if earlier executions fail.
func TestTimestampsOverlap(t *testing.T) {
	hip := simdriver.HIPCaps()
	d := newSim(t, simdriver.Config{Caps: &hip})
	dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
	s, host, outs := semaphores(t, 3), semaphores(t, 1)[0], [2]gpu.Range{allocate(t, dev, 64).All(), allocate(t, dev, 64).All()}
	c := commandBuffer(t, dev, gpu.StreamMode)
	b, err := c.Binding()
	must(t, err)
	recorded(t)(c.Timestamp())
	recorded(t)(c.Add(gpu.Fill(b.Range(0, 64), []byte{1})))
	must(t, c.End())
	timers := func() uint64 { return calls(d, 0, simdriver.OpNewTimer) }
	for round := range uint64(2) { // the second round needs no new events
		d.StallDevice(0)
		for i := range s {
			must(t, dev.Queue(i%2).Submit(gpu.Order{Wait: pts(host, 3*round+uint64(i)), Signal: pts(s[i], round+1)}, gpu.Execute(c, outs[i%2])))
			must(t, host.Signal(3*round+uint64(i)+1))
		}
		eventually(t, "each has an event of its own", func() bool { return timers() == 3 })
		d.ResumeDevice(0)
		for _, x := range s {
			must(t, x.Wait(minute(t), round+1))
		}
		if _, err := c.Elapsed(0, 0); err != nil {
			t.Error(err)
		}
	}
	if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Execute(c, outs[:]...)); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("with a binding too many: %v", err)
	}
	failed := semaphores(t, 1)[0]
	failed.Fail(io.EOF)
	for range 10 {
		must(t, dev.Queue(0).Submit(gpu.Order{Wait: pts(failed, 1)}, gpu.Execute(c, outs[0])))
	}
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 3)}, gpu.Execute(c, outs[0])))
	must(t, s[0].Wait(minute(t), 3)) // the failed executions do not delay it
	if n := timers(); n != 3 {
		t.Errorf("%d events", n)
	}
}

// TestInstanceAfterFailure executes a recording with a timestamp again, after an execution that has
// failed and that its stream has not passed. The second execution must have an instance of its own.
func TestInstanceAfterFailure(t *testing.T) {
	hip := simdriver.HIPCaps()
	for what, groups := range map[string]bool{"a command that the driver refuses": false, "a communicator that is closed": true} {
		t.Run(what, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Caps: &hip})
			g, comms := openCommunicators(t, d, 1, collective.Options{})
			dev := g.Devices()[0]
			b, s, c := allocate(t, dev, 64), semaphores(t, 3), commandBuffer(t, dev, gpu.StreamMode)
			recorded(t)(c.Timestamp())
			if groups {
				recorded(t)(c.Add(comms[0].Group(sum(b))))
				must(t, comms[0].Close())
			} else {
				recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
				d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 1, Err: io.ErrShortWrite})
			}
			must(t, c.End())
			d.StallDevice(0)
			timers := func() uint64 { return calls(d, 0, simdriver.OpNewTimer) }
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(c)))
			if err := s[0].Wait(minute(t), 1); err == nil {
				t.Fatal("it did not fail")
			}
			must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(c)))
			eventually(t, "the second has an event of its own", func() bool { return timers() == 2 })
			d.ResumeDevice(0)
			if err := s[1].Wait(minute(t), 1); groups != errors.Is(err, gpu.ErrClosed) || !groups && err != nil {
				t.Error(err)
			}
			// The fill runs after the remaining work of the failed execution.
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, s[2].Wait(minute(t), 1))
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 2)}, gpu.Execute(c)))
			if err := s[2].Wait(minute(t), 2); groups != errors.Is(err, gpu.ErrClosed) || !groups && err != nil {
				t.Error(err)
			}
			if n := timers(); n != 2 {
				t.Errorf("%d events", n)
			}
		})
	}
}

// TestNestedTimestamps nests a recording with a timestamp twice, and executes the outer and the
// nested recording at the same time.
func TestNestedTimestamps(t *testing.T) {
	for _, caps := range []driver.Caps{simdriver.CUDACaps(), simdriver.HIPCaps()} {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		a, b, s := allocate(t, dev, 64), allocate(t, dev, 64), semaphores(t, 2)
		child, parent := commandBuffer(t, dev, gpu.StreamMode), commandBuffer(t, dev, gpu.StreamMode)
		to, err := child.Binding()
		must(t, err)
		recorded(t)(child.Timestamp())
		recorded(t)(child.Add(gpu.Fill(to.Range(0, 64), []byte{1})))
		must(t, child.End())
		first := recorded(t)(parent.Add(gpu.Execute(child, b.All())))
		recorded(t)(parent.Add(gpu.Execute(child, b.All())))
		must(t, parent.End())
		d.StallDevice(0)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(child, a.All())))
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(parent)))
		d.ResumeDevice(0)
		must(t, s[0].Wait(minute(t), 1))
		must(t, s[1].Wait(minute(t), 1))
		if _, err := parent.Elapsed(0, first+1); err != nil {
			t.Error(err)
		}
	}
}

// TestNestWhileExecuted nests a recording in other recordings while another goroutine executes the
// nested recording with bindings.
func TestNestWhileExecuted(t *testing.T) {
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{Queues: 2})
	x, err := dev.Load(simdriver.Image("words"))
	must(t, err)
	k, err := x.Kernel("words")
	must(t, err)
	child := commandBuffer(t, dev, gpu.StreamMode)
	in, err1 := child.Binding()
	out, err2 := child.Binding()
	must(t, errors.Join(err1, err2))
	recorded(t)(child.Add(gpu.Launch(k, gpu.Grid{Threads: [3]uint32{4}}, uint64(4), out.Range(0, 16), in.Range(0, 16))))
	must(t, child.End())
	a, b, s := allocate(t, dev, 64), allocate(t, dev, 64), semaphores(t, 1)[0]
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range uint64(100) {
			if err := dev.Queue(0).Submit(order(s, i, s, i+1), gpu.Execute(child, a.All(), b.All())); err != nil {
				t.Error(err)
			}
		}
	})
	for range 100 {
		parent := commandBuffer(t, dev, gpu.StreamMode)
		recorded(t)(parent.Add(gpu.Execute(child, b.All(), a.All())))
		must(t, parent.End())
		must(t, parent.Close())
	}
	wg.Wait()
	must(t, s.Wait(minute(t), 100))
}

// TestNestErrors checks that the error for a recording that cannot be nested has the number that
// its first command would have had.
func TestNestErrors(t *testing.T) {
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
	b, c, child := allocate(t, dev, 64), commandBuffer(t, dev, gpu.StreamMode), commandBuffer(t, dev, gpu.StreamMode)
	must(t, child.End())
	first, err := c.Add(gpu.Fill(b.All(), []byte{1}))
	must(t, err)
	for i := range 2 {
		if _, err := c.Add(gpu.Execute(child, b.All()), []gpu.Command{first}[i:]...); err == nil || !strings.HasPrefix(err.Error(), "gpu: command 1, execute: 1 bindings") {
			t.Error(err)
		}
	}
	if _, err := c.Add(gpu.Execute(child, b.All())); err == nil || !strings.HasPrefix(err.Error(), "gpu: command 1, execute: 1 bindings") {
		t.Error(err)
	}
	must(t, c.End())
}

// TestHostCallHolds closes a recording and its buffer during a host call of an execution. The
// memory must not be freed before the execution ends.
func TestHostCallHolds(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		b, err := dev.Alloc(gpu.HostMem, 64)
		must(t, err)
		c, s := commandBuffer(t, dev, gpu.StreamMode), semaphores(t, 2)
		recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
		begun := make(chan bool)
		recorded(t)(c.Add(gpu.HostCall(func() error {
			begun <- true
			return s[1].Wait(minute(t), 1)
		})))
		must(t, c.End())
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(c)))
		<-begun
		must(t, c.Close())
		must(t, b.Close())
		synctest.Wait() // gives other goroutines the time to free the memory
		if n := dev.Stats().Buffers; n != 1 {
			t.Errorf("%d buffers are left in a host call of an execution, want 1", n)
		}
		must(t, s[1].Signal(1))
		must(t, s[0].Wait(minute(t), 1))
		eventually(t, "all is let go of", func() bool { return dev.Stats().Buffers == 0 })
	})
}

// TestExecuteClosing executes a recording of two parts again and again, while the recording or its
// device is being closed. In the end Submit must return ErrClosed. If the device was closed, the
// signals given to that Submit must fail too.
func TestExecuteClosing(t *testing.T) {
	for round := range 200 {
		dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
		b, c := allocate(t, dev, 64), commandBuffer(t, dev, gpu.StreamMode)
		recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
		recorded(t)(c.Add(gpu.HostCall(func() error { return nil })))
		must(t, c.End())
		closing := dev.Close
		if round%2 == 0 {
			closing = c.Close
		}
		go func() {
			for range round % 50 {
				runtime.Gosched()
			}
			closing()
		}()
		for {
			s := semaphores(t, 1)[0]
			err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c))
			if err == nil {
				continue
			}
			if !errors.Is(err, gpu.ErrClosed) {
				t.Error(err)
			}
			if round%2 == 1 {
				if err := s.Wait(minute(t), 1); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("round %d: work that waits for the failed execution: %v", round, err)
				}
			}
			break
		}
		must(t, dev.Close())
	}
}

func TestExecuteLost(t *testing.T) {
	t.Run("B81 a device is lost while recordings are executed", func(t *testing.T) {
		for _, caps := range []driver.Caps{simdriver.CUDACaps(), simdriver.HIPCaps()} {
			for _, m := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
				d := newSim(t, simdriver.Config{Caps: &caps})
				dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 5)
				b, c := allocate(t, dev, 64), commandBuffer(t, dev, m)
				recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
				recorded(t)(c.Add(gpu.HostCall(func() error { t.Error("called"); return nil })))
				recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
				must(t, c.End())
				d.StallDevice(0)
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(c)))
				must(t, dev.Queue(1).Submit(order(s[3], 1, s[1], 1), gpu.Execute(c)))
				d.LoseDevice(0, io.ErrClosedPipe)
				for i := range 2 {
					if err := s[i].Wait(minute(t), 1); !errors.Is(err, io.ErrClosedPipe) {
						t.Errorf("%d: %v", i, err)
					}
					must(t, s[3].Signal(uint64(i+1)))
				}
				if err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Execute(c)); !errors.Is(err, driver.ErrLost) {
					t.Errorf("Execute = %v", err)
				}
				if err := s[2].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
					t.Errorf("%v", err)
				}
				must(t, c.Close())
				if err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s[4], 1)}, gpu.Execute(c)); !errors.Is(err, driver.ErrLost) {
					t.Errorf("Execute = %v", err)
				}
				dev.Close()
			}
		}
	})
}

// TestMemoryAllocs tests B142: in steady state an execution allocates nothing on the Go heap, an
// Alloc with its Free at most one object, and recording 1,000 commands at most 80 objects.
func TestMemoryAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
	b, s, v := allocate(t, dev, 1024), semaphores(t, 1)[0], uint64(0)
	x, err := dev.Load(simdriver.Image("words"))
	must(t, err)
	k, err := x.Kernel("words")
	must(t, err)
	record := func(m gpu.Mode) *gpu.CommandBuffer {
		c := commandBuffer(t, dev, m)
		x, err := c.Binding()
		must(t, err)
		f := recorded(t)(c.Add(gpu.Fill(x.Range(0, 64), []byte{1, 2, 3, 4, 5, 6, 7, 8})))
		recorded(t)(c.Add(gpu.Copy(x.Range(64, 64), x.Range(0, 64)), f))
		recorded(t)(c.Add(gpu.Barrier()))
		recorded(t)(c.Add(gpu.Launch(k, gpu.Grid{Threads: [3]uint32{16}}, uint64(16), x.Range(128, 64), x.Range(0, 64))))
		must(t, c.End())
		return c
	}
	withScratch := func(m gpu.Mode) *gpu.CommandBuffer {
		c := commandBuffer(t, dev, m)
		x, err := c.Binding()
		must(t, err)
		var after []gpu.Command
		for i := range uint64(4) {
			b, err := c.Scratch(1024)
			must(t, err)
			f := recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1}), after...))
			after = []gpu.Command{recorded(t)(c.Add(gpu.Copy(x.Range(64*i, 64), b.Range(0, 64)), f))}
		}
		must(t, c.End())
		return c
	}
	scratchStream, scratchGraph := withScratch(gpu.StreamMode), withScratch(gpu.GraphMode)
	stream, graph := record(gpu.StreamMode), record(gpu.GraphMode)
	p := newPool(t, dev, gpu.PoolOptions{Portable: true})
	wait, sig, other := pts(s, 0), pts(s, 0), allocate(t, dev, 4)
	next := func() gpu.Order {
		wait[0].Value, sig[0].Value = v, v+1
		v++
		return gpu.Order{Wait: wait, Signal: sig}
	}
	memory := func(p *gpu.Pool, lists bool) func() error {
		return func() error {
			var o gpu.Order
			if lists {
				o = next()
			}
			b, err := testkit.AllocIn(dev.Queue(0), o, p, 4096)
			if err != nil {
				return err
			}
			if lists {
				return dev.Queue(0).Submit(next(), gpu.Free(b))
			}
			if err := dev.Queue(0).Submit(o, gpu.Free(b)); err != nil {
				return err
			}
			// Below, the function run waits for the signal of this fill, so that the host does not
			// get ahead of the device.
			return dev.Queue(0).Submit(next(), gpu.Fill(other.All(), []byte{1}))
		}
	}
	// The slice data is allocated here, once, because UploadCopy makes it escape to the heap.
	bind, data := []gpu.Range{b.Range(0, 256)}, []byte{1, 2, 3, 4}
	for _, c := range []struct {
		name string
		most float64
		run  func() error
	}{
		{"a stream's execution", 0, func() error { return dev.Queue(0).Submit(next(), gpu.Execute(stream, bind...)) }},
		{"a graph's execution", 0, func() error { return dev.Queue(0).Submit(next(), gpu.Execute(graph, bind...)) }},
		{"a stream's execution with scratch memory", 0, func() error { return dev.Queue(0).Submit(next(), gpu.Execute(scratchStream, bind...)) }},
		{"a graph's execution with scratch memory", 0, func() error { return dev.Queue(int(v)).Submit(next(), gpu.Execute(scratchGraph, bind...)) }},
		{"a pair of a driver's pool", 1, memory(nil, true)},
		{"a pair of a driver's pool, without lists", 1, memory(nil, false)},
		{"a pair of a portable pool", 1, memory(p, true)},
		{"a pair of a portable pool, without lists", 1, memory(p, false)},
		{"a recording of 1,000 commands", 80, func() error { // allocates while its slices grow
			c := commandBuffer(t, dev, gpu.StreamMode)
			for i := range uint64(250) {
				c.Add(gpu.Fill(b.Range(4*i, 4), []byte{1, 2}))
				c.Add(gpu.Copy(b.Range(4*i, 4), b.Range(1020, 4)), gpu.Command(4*i))
				c.Add(gpu.UploadCopy(b.Range(0, 4), data))
				c.Add(gpu.Barrier())
			}
			return c.Close()
		}},
	} {
		run := func() {
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
			for {
				if got, err := s.Query(); err != nil || got >= v {
					break
				}
				runtime.Gosched()
			}
		}
		for range 300 {
			run()
		}
		if n := testing.AllocsPerRun(500, run); n > c.most {
			t.Errorf("%s allocates %v times, not %v", c.name, n, c.most)
		}
	}
}

// TestTimedInstances executes a recording with timestamps several times. An execution may wait for
// another one only if its Order says so, whichever of the two is submitted first.
func TestTimedInstances(t *testing.T) {
	timed := func(t *testing.T, dev *gpu.Device, mode gpu.Mode, split bool) *gpu.CommandBuffer {
		t.Helper()
		c := commandBuffer(t, dev, mode)
		b, err := c.Binding()
		must(t, err)
		recorded(t)(c.Timestamp())
		recorded(t)(c.Add(gpu.Fill(b.Range(0, 64), []byte{1})))
		recorded(t)(c.Add(gpu.Barrier()))
		if split {
			recorded(t)(c.Add(gpu.HostCall(func() error { return nil })))
		}
		recorded(t)(c.Timestamp())
		must(t, c.End())
		return c
	}
	// own returns memory for one execution: executions that nothing orders must not write to the
	// same memory.
	own := func(t *testing.T, dev *gpu.Device) gpu.Range { return allocate(t, dev, 64).All() }
	for name, mode := range map[string]gpu.Mode{"stream": gpu.StreamMode, "graph": gpu.GraphMode} {
		for how, split := range map[string]bool{"one part": false, "two parts": true} {
			each := func(t *testing.T, test func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer)) {
				onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
					if !caps.Timers {
						return // without timers a recording has no timestamps
					}
					dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
					test(t, d, dev, timed(t, dev, mode, split))
				})
			}
			t.Run(name+", "+how+", the first waits for the second", func(t *testing.T) {
				each(t, func(t *testing.T, _ *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer) {
					s := semaphores(t, 3)
					must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Execute(c, own(t, dev))))
					must(t, dev.Queue(1).Submit(gpu.Order{Wait: pts(s[2], 1), Signal: pts(s[0], 1)}, gpu.Execute(c, own(t, dev))))
					must(t, s[2].Signal(1))
					for i, x := range s[:2] {
						if err := x.Wait(minute(t), 1); err != nil {
							t.Errorf("%d: %v", i, err)
						}
					}
				})
			})
			t.Run(name+", "+how+", one that fails holds up no other", func(t *testing.T) {
				each(t, func(t *testing.T, _ *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer) {
					s := semaphores(t, 4)
					must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Execute(c, own(t, dev))))
					must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Execute(c, own(t, dev))))
					must(t, dev.Queue(0).Submit(order(s[0], 2, s[3], 1), gpu.Execute(c, own(t, dev))))
					s[0].Fail(errHostCall)
					must(t, s[2].Wait(minute(t), 1))
					for _, i := range []int{1, 3} {
						if err := s[i].Wait(minute(t), 1); !errors.Is(err, errHostCall) {
							t.Errorf("%d: %v", i, err)
						}
					}
					must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[2], 2)}, gpu.Execute(c, own(t, dev))))
					must(t, s[2].Wait(minute(t), 2))
				})
			})
			t.Run(name+", "+how+", many at once", func(t *testing.T) {
				each(t, func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer) {
					s := semaphores(t, 20)
					d.StallDevice(0)
					for i, x := range s {
						o := gpu.Order{Signal: pts(x, 1)}
						if i > 0 && i%3 == 0 {
							o.Wait = pts(s[i-1], 1)
						}
						must(t, dev.Queue(i).Submit(o, gpu.Execute(c, own(t, dev))))
					}
					d.ResumeDevice(0)
					for i, x := range s {
						if err := x.Wait(minute(t), 1); err != nil {
							t.Errorf("%d: %v", i, err)
						}
					}
				})
			})
			t.Run(name+", "+how+", as much a time however many there are", func(t *testing.T) {
				each(t, func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, c *gpu.CommandBuffer) {
					const n = 100
					s := semaphores(t, n)
					d.StallDevice(0)
					for i, x := range s {
						must(t, dev.Queue(i).Submit(gpu.Order{Signal: pts(x, 1)}, gpu.Execute(c, own(t, dev))))
					}
					d.ResumeDevice(0)
					for _, x := range s {
						must(t, x.Wait(minute(t), 1))
					}
					if made := dev.Stats().Timepoints.Made; made > 4*n {
						t.Errorf("%d timepoints for %d executions", made, n)
					}
				})
			})
		}
	}
}
