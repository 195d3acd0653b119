package gpu_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestLaunchAttrs launches a kernel with attributes in queues, streams and recordings, parked
// behind a semaphore. The kernel must see the attributes. If the device does not support them, the
// call must return an error, and must park nothing.
func TestLaunchAttrs(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		x, k := kernelOf(t, dev, "attrs")
		type args struct{ Out gpu.Slice[launched] }
		typed, err := gpu.Typed[args](k)
		must(t, err)
		out, err := gpu.AllocSlice[launched](dev, gpu.DeviceMem, 1)
		must(t, err)
		for _, c := range testkit.Launches {
			if c.Cluster == [3]uint32{} {
				c.Cluster = [3]uint32{1, 1, 1}
			}
			g := gpu.Grid{Blocks: [3]uint32{4, 2, 2}, Threads: [3]uint32{32}, Attrs: c.Attrs}
			op := gpu.Launch(k, g, out)
			ways := map[string]func(s *gpu.Stream) error{
				"a queue":  func(s *gpu.Stream) error { return inStream(s, dev.Queue(0), op) },
				"a stream": func(s *gpu.Stream) error { return s.Do(op) },
				"a struct": func(s *gpu.Stream) error { return s.Do(typed.Launch(g, args{out})) },
			}
			modes := []gpu.Mode{gpu.StreamMode, gpu.AutoMode}
			if caps.Graphs {
				modes = append(modes, gpu.GraphMode)
			}
			for _, mode := range modes {
				for how, record := range map[string]func(c *gpu.CommandBuffer) error{
					"":                func(c *gpu.CommandBuffer) error { _, err := c.Add(op); return err },
					", with a struct": func(c *gpu.CommandBuffer) error { _, err := c.Add(typed.Launch(g, args{out})); return err },
				} {
					ways[fmt.Sprintf("a command buffer of mode %d%s", mode, how)] = func(s *gpu.Stream) error {
						c := commandBuffer(t, dev, mode)
						defer c.Close()
						if err := record(c); err != nil {
							return err
						}
						must(t, c.End())
						return s.Do(gpu.Execute(c))
					}
				}
			}
			for way, launch := range ways {
				s, host := dev.Queue(0).NewStream(), semaphores(t, 1)[0]
				must(t, s.Do(out.Fill(launched{})))
				must(t, s.After(host.At(1)))
				err := launch(s)
				if !testkit.CanLaunch(caps, c.Attrs) {
					if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "Simulated GPU 0 has no ") {
						t.Errorf("%s, %+v: %v", way, c.Attrs, err)
					}
					synctest.Wait() // until the device is idle
					if n := dev.Stats().Parked; n != 0 {
						t.Errorf("%s, %+v: %d parked", way, c.Attrs, n)
					}
					continue
				}
				must(t, err)
				must(t, host.Signal(1))
				want := launched{Times: 1, Cluster: c.Cluster, Cooperative: testkit.OneIf(c.Attrs.Cooperative), Dependent: testkit.OneIf(c.Attrs.Dependent),
					Priority: int32(caps.ClampPriority(c.Attrs.Priority)), Carveout: int32(c.Attrs.Carveout)}
				got := elementsOf(t, s, out)
				if strings.HasPrefix(way, "a command buffer") && !strings.HasPrefix(way, fmt.Sprintf("a command buffer of mode %d", gpu.StreamMode)) && got[0].Priority == 0 {
					want.Priority = 0 // a launch in a graph has the priority of the queue
				}
				if got[0] != want {
					t.Errorf("%s, %+v: the kernel sees %+v, want %+v", way, c.Attrs, got[0], want)
				}
			}
		}
		must(t, out.Close())
		must(t, x.Close())
	})
}

// TestLaunchAttrsRefused passes attributes that a launch cannot have. The call must return an
// error, and must not park the launch.
func TestLaunchAttrsRefused(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	x, err := dev.Load([]byte(".visible .entry attrs(.param .u64 out) .reqnctapercluster 2, 1, 1 {}\n.visible .entry nothing(.param .u64 n) {}\n"))
	must(t, err)
	defer x.Close()
	paired, err := x.Kernel("attrs")
	must(t, err)
	k, err := x.Kernel("nothing")
	must(t, err)
	never := semaphores(t, 1)[0]
	for _, c := range []struct {
		kernel *gpu.Kernel
		grid   gpu.Grid
		says   string
	}{
		{k, gpu.Grid{Blocks: [3]uint32{8, 3, 1}, Attrs: gpu.LaunchAttrs{Cluster: [3]uint32{4, 2, 1}}}, "a grid of [8 3 1] blocks for kernel nothing, which is no multiple of clusters of [4 2 1]"},
		{k, gpu.Grid{Blocks: [3]uint32{8, 3, 1}, Attrs: gpu.LaunchAttrs{Cluster: [3]uint32{0, 0, 2}}}, "clusters of [1 1 2]"},
		{k, gpu.Grid{Blocks: [3]uint32{32, 1, 1}, Attrs: gpu.LaunchAttrs{Cluster: [3]uint32{32, 1, 1}}}, "clusters of [32 1 1] blocks; of kernel nothing they can have 16"},
		{paired, gpu.Grid{Blocks: [3]uint32{8, 1, 1}, Attrs: gpu.LaunchAttrs{Cluster: [3]uint32{4, 1, 1}}}, "clusters of [4 1 1] blocks; kernel attrs was compiled for [2 1 1]"},
		{paired, gpu.Grid{Blocks: [3]uint32{3, 1, 1}, Attrs: gpu.LaunchAttrs{Dependent: true}}, "a grid of [3 1 1] blocks; kernel attrs has clusters of [2 1 1]"},
		{k, gpu.Grid{Blocks: [3]uint32{8, 1, 1}, Attrs: gpu.LaunchAttrs{Carveout: 101}}, "a carve-out of 101 percent"},
		{k, gpu.Grid{Blocks: [3]uint32{129, 1, 1}, Threads: [3]uint32{256}, Attrs: gpu.LaunchAttrs{Cooperative: true}}, "a cooperative grid of 129 blocks of 256 threads and 0 bytes of dynamic shared memory; of kernel nothing Simulated GPU 0 runs 128 at once"},
		{k, gpu.Grid{Blocks: [3]uint32{5, 5, 2}, SharedMem: 40 << 10, Attrs: gpu.LaunchAttrs{Cooperative: true}}, "a cooperative grid of 50 blocks of 1 threads"},
	} {
		err := dev.Queue(0).Submit(order(never, 1, never, 2), gpu.Launch(c.kernel, c.grid, uint64(1)))
		if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want it to say %s", c.grid, err, c.says)
		}
		typed, err := gpu.Typed[struct{ N uint64 }](c.kernel)
		must(t, err)
		b := commandBuffer(t, dev, gpu.GraphMode)
		if _, err := b.Add(typed.Launch(c.grid, struct{ N uint64 }{})); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v, recorded: %v, want it to say %s", c.grid, err, c.says)
		}
		must(t, b.Close())
		if n := dev.Stats().Parked; n != 0 {
			t.Errorf("%+v: %d parked", c.grid, n)
		}
	}
	// A grid for no elements launches nothing, whatever its other dimensions and attributes are.
	empty := gpu.GridFor(0, 1)
	empty.Blocks[1], empty.Blocks[2], empty.Attrs = 8, 8, gpu.LaunchAttrs{Cluster: [3]uint32{3, 2, 1}, Cooperative: true}
	s := dev.Queue(0).NewStream()
	typed, err := gpu.Typed[struct{ N uint64 }](k)
	must(t, err)
	must(t, s.Do(typed.Launch(empty, struct{ N uint64 }{})))
	must(t, s.Wait(minute(t)))
	if calls(d, 0, simdriver.OpLaunch) != 0 {
		t.Error("a grid without blocks is launched")
	}
}

// TestLaunchesBetweenGraphs records cooperative launches between other launches. If the device
// supports cooperative launches in graphs, the recording must become one graph. Otherwise GraphMode
// must make several graphs, with launches between them.
func TestLaunchesBetweenGraphs(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Graphs || !caps.Cooperative {
			return
		}
		dev := openDevice(t, d, 0, gpu.Options{})
		x, k := kernelOf(t, dev, "saxpy")
		typed, err := gpu.Typed[saxpySlices](k)
		must(t, err)
		s := dev.Queue(0).NewStream()
		xs, ys := sliceOf[float32](t, s, 1, 2, 3, 4), sliceOf[float32](t, s, 0, 0, 0, 0)
		for _, mode := range []gpu.Mode{gpu.AutoMode, gpu.GraphMode} {
			c := commandBuffer(t, dev, mode)
			last := gpu.Command(-1)
			for i := range 9 {
				g := gpu.GridFor(4, 4)
				g.Attrs.Cooperative = i%3 == 2
				var after []gpu.Command
				if last >= 0 {
					after = append(after, last)
				}
				last, err = c.Add(typed.Launch(g, saxpySlices{4, float32(i + 1), xs, ys}), after...)
				must(t, err)
			}
			must(t, c.End())
			launches, graphs := calls(d, 0, simdriver.OpLaunch), calls(d, 0, simdriver.OpLaunchGraph)
			must(t, s.Do(ys.Fill(0)))
			must(t, s.Do(gpu.Execute(c)))
			if got := elementsOf(t, s, ys); !slices.Equal(got, []float32{45, 90, 135, 180}) {
				t.Errorf("mode %d: %v", mode, got)
			}
			launches, graphs = calls(d, 0, simdriver.OpLaunch)-launches, calls(d, 0, simdriver.OpLaunchGraph)-graphs
			switch {
			case caps.NodeAttrs && (launches != 0 || graphs != 1):
				t.Errorf("mode %d: %d launches and %d graphs, want one graph", mode, launches, graphs)
			case !caps.NodeAttrs && mode == gpu.GraphMode && (launches != 3 || graphs != 3):
				t.Errorf("mode %d: %d launches and %d graphs, want three of each", mode, launches, graphs)
			}
			must(t, c.Close())
		}
		must(t, xs.Close())
		must(t, ys.Close())
		must(t, x.Close())
	})
}

// TestAttrsOfMovedNodes executes a graph of a launch with clusters, each time with another range
// for its binding. The kernel must see the clusters in each execution.
func TestAttrsOfMovedNodes(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	_, k := kernelOf(t, dev, "attrs")
	typed, err := gpu.Typed[struct{ Out gpu.Range }](k)
	must(t, err)
	c := commandBuffer(t, dev, gpu.GraphMode)
	b, err := c.Binding()
	must(t, err)
	_, err = c.Add(typed.Launch(gpu.Grid{Blocks: [3]uint32{4, 1, 1}, Attrs: gpu.LaunchAttrs{Cluster: [3]uint32{2}}}, struct{ Out gpu.Range }{b.All()}))
	must(t, err)
	must(t, c.End())
	s := dev.Queue(0).NewStream()
	out, err := gpu.AllocSlice[launched](dev, gpu.DeviceMem, 5)
	must(t, err)
	must(t, s.Do(out.Fill(launched{})))
	for i := range 5 {
		must(t, s.Do(gpu.Execute(c, out.Slice(i, i+1).Range())))
	}
	for i, got := range elementsOf(t, s, out) {
		if want := (launched{Times: 1, Cluster: [3]uint32{2, 1, 1}}); got != want {
			t.Errorf("launch %d: %+v, want %+v", i, got, want)
		}
	}
}

// TestCooperativeFits checks that the runtime queries the occupancy of a cooperative launch once
// for repeated launches of the same shape. If the query fails, the driver must get the launch: a
// grid that fits runs, and one that does not fit fails with the error of the driver.
func TestCooperativeFits(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Cooperative {
			return
		}
		dev := openDevice(t, d, 0, gpu.Options{})
		x, typed := bind[struct{ N uint64 }](t, dev, "nothing")
		defer x.Close()
		s := dev.Queue(0).NewStream()
		asked := calls(d, 0, simdriver.OpOccupancy)
		g := gpu.Grid{Blocks: [3]uint32{100, 1, 1}, Threads: [3]uint32{256}, Attrs: gpu.LaunchAttrs{Cooperative: true}}
		for range 10 {
			must(t, s.Do(typed.Launch(g, struct{ N uint64 }{})))
		}
		must(t, s.Wait(minute(t)))
		if n := calls(d, 0, simdriver.OpOccupancy) - asked; n != 1 {
			t.Errorf("the driver was queried %d times for ten launches", n)
		}
		d.Inject(simdriver.Fault{Op: simdriver.OpOccupancy})
		g.Threads[0] = 128
		must(t, s.Do(typed.Launch(g, struct{ N uint64 }{})))
		must(t, s.Wait(minute(t)))
		g.Blocks[0], g.Threads[0] = 1000, 64
		must(t, s.Do(typed.Launch(g, struct{ N uint64 }{})))
		if err := s.Wait(minute(t)); !errors.Is(err, simdriver.ErrInvalidValue) {
			t.Errorf("a cooperative grid that does not fit: %v", err)
		}
	})
}

// TestQueuePriorities checks that each queue, and the stream that runs its work, has the priority
// that Options.Priorities gives the queue, clamped to the range of the device.
func TestQueuePriorities(t *testing.T) {
	for _, set := range capabilitySets() {
		t.Run(set.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := make(chan int, 1)
				d := newSim(t, simdriver.Config{Caps: &set.Caps, OnExecute: func(x simdriver.Executed) {
					if x.Op == simdriver.OpFill {
						seen <- x.Priority
					}
				}})
				given := []int{0, -3, 7, -9}
				dev := openDevice(t, d, 0, gpu.Options{Queues: 5, Priorities: given})
				least, most := dev.PriorityRange()
				b := allocate(t, dev, 64)
				for i := range dev.Queues() {
					q, s, want := dev.Queue(i), semaphores(t, 1)[0], 0
					if i < len(given) {
						want = min(max(given[i], most), least)
					}
					must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
					if got := <-seen; got != want || q.Priority() != want {
						t.Errorf("queue %d has priority %d, and its stream %d; want %d", i, q.Priority(), got, want)
					}
					must(t, s.Wait(minute(t), 1))
				}
				must(t, b.Close())
			})
		})
	}
	d := newSim(t, simdriver.Config{})
	for _, o := range []gpu.Options{{Priorities: []int{0, 0}}, {Queues: 2, Priorities: []int{1, 2, 3}}} {
		if _, err := gpu.Open(d, 0, o); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "priorities for") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	d.Inject(simdriver.Fault{Op: simdriver.OpNewStream, N: 2})
	if _, err := gpu.Open(d, 0, gpu.Options{Queues: 2, Priorities: []int{0, -1}}); !errors.Is(err, simdriver.ErrInjected) {
		t.Errorf("a stream that cannot be made: %v", err)
	}
}
