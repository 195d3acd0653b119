package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/trace"
)

// timesNodes returns the capabilities of a device that times the nodes of graphs.
func timesNodes() driver.Caps {
	caps := simdriver.CUDACaps()
	caps.NodeTimes = true
	return caps
}

// nodes returns the records of kind KindNode.
func nodes(records []trace.Record) []trace.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r trace.Record) bool { return r.Kind != trace.KindNode })
}

// sleepy records two kernels that may run at the same time, and a third kernel behind both. In a
// bubble of package synctest their durations are exact, because the kernels only sleep.
func sleepy(t *testing.T, dev *gpu.Device, k *gpu.TypedKernel[sleepArgs], mode gpu.Mode) *gpu.CommandBuffer {
	t.Helper()
	c := testkit.CommandBuffer(t, dev, mode)
	for _, op := range []gpu.Op{
		k.Launch(gpu.GridFor(1, 1), sleepArgs{Nanoseconds: 3e6}).Label("left"),
		k.Launch(gpu.GridFor(1, 1), sleepArgs{Nanoseconds: 5e6}).Label("right"),
		gpu.Barrier(),
		k.Launch(gpu.GridFor(1, 1), sleepArgs{Nanoseconds: 2e6}),
	} {
		_, err := c.Add(op)
		must(t, err)
	}
	must(t, c.End())
	return c
}

// TestGraphsHaveNodeTimes checks that the commands of graphs have exact times on a device that
// times nodes, also in AutoMode. The records of these commands must name the submission and the
// recording.
func TestGraphsHaveNodeTimes(t *testing.T) {
	for _, mode := range []gpu.Mode{gpu.AutoMode, gpu.GraphMode} {
		synctest.Test(t, func(t *testing.T) {
			tracer := newTracer(t, trace.TracerOptions{Times: trace.CommandTimes})
			_, dev, sleep := sleeper(t, timesNodes(), gpu.Options{Tracer: tracer})
			s := semaphores(t, 1)[0]
			c := sleepy(t, dev, sleep, mode)
			time.Sleep(time.Second) // time of the bubble: a time of 0 would mean "no time"
			for i := range 3 {
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, uint64(i)+1)}, gpu.Execute(c)))
			}
			must(t, s.Wait(context.Background(), 3))
			must(t, dev.Close())
			all := taken(tracer)
			subs := submissions(all)
			if len(subs) != 3 {
				t.Fatalf("%d submissions", len(subs))
			}
			got := nodes(all)
			if len(got) != 9 {
				t.Fatalf("%d records of nodes, want 9", len(got))
			}
			for i, sub := range subs {
				if !sub.Graph || sub.Recording == 0 || sub.First != 0 || sub.Commands != 4 {
					t.Errorf("submission %d: %+v", i, sub)
				}
				var begun time.Duration
				for _, want := range []struct {
					command int
					label   string
					after   time.Duration
					took    time.Duration
				}{{0, "left", 0, 3 * time.Millisecond}, {1, "right", 0, 5 * time.Millisecond}, {3, "", 5 * time.Millisecond, 2 * time.Millisecond}} {
					at := slices.IndexFunc(got, func(r trace.Record) bool { return r.ID == sub.ID && r.Command == want.command })
					if at < 0 {
						t.Fatalf("execution %d: command %d has no record", i, want.command)
					}
					r := got[at]
					if want.command == 0 {
						begun = r.Begun
					}
					if r.Begun-begun != want.after || r.Ended-r.Begun != want.took || r.Label != want.label || r.Kernel != "sleep" || r.Op != "launch" ||
						r.Timed != trace.DeviceTime || r.Recording != sub.Recording || r.Device != dev {
						t.Errorf("execution %d, command %d: %+v", i, want.command, r)
					}
				}
			}
		})
	}
}

// TestOnlyCommandTimesTimesNodes checks that the nodes of graphs are not timed with SubmissionTimes
// or NoTimes.
func TestOnlyCommandTimesTimesNodes(t *testing.T) {
	for _, times := range []trace.Times{trace.SubmissionTimes, trace.NoTimes} {
		synctest.Test(t, func(t *testing.T) {
			tracer := newTracer(t, trace.TracerOptions{Times: times})
			_, dev, sleep := sleeper(t, timesNodes(), gpu.Options{Tracer: tracer})
			s := semaphores(t, 1)[0]
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(sleepy(t, dev, sleep, gpu.GraphMode))))
			must(t, s.Wait(context.Background(), 1))
			must(t, dev.Close())
			if n := len(nodes(taken(tracer))); n != 0 {
				t.Errorf("%v: %d records of nodes", times, n)
			}
		})
	}
}

// TestCommandsThatOverlapHaveTracks checks that commands that overlap have separate tracks in the
// file, and that the file lists the commands of a recording once.
func TestCommandsThatOverlapHaveTracks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f file
		tr, err := trace.Start(&f, trace.Options{Times: trace.CommandTimes})
		must(t, err)
		_, dev, sleep := sleeper(t, timesNodes(), gpu.Options{Tracer: tr.Tracer()})
		s := semaphores(t, 1)[0]
		c := sleepy(t, dev, sleep, gpu.GraphMode)
		for i := range 3 {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, uint64(i)+1)}, gpu.Execute(c)))
		}
		must(t, s.Wait(context.Background(), 3))
		must(t, dev.Close())
		must(t, tr.Close())
		events := check(t, f.b.Bytes())
		tracks := map[int64]int{}
		for _, e := range of(events, traceformat.CatCommand, traceformat.Complete) {
			tracks[e.TID]++
		}
		listed, source := 0, ""
		for _, e := range events {
			switch e.Name {
			case traceformat.MetaCommand:
				listed++
			case traceformat.MetaNodes:
				source = e.Args.NodeTimes
			}
		}
		if len(tracks) != 2 || listed != 4 || source != "sim" {
			t.Errorf("the commands are on tracks %v; %d commands are listed, and timed by %q", tracks, listed, source)
		}
	})
}

// A profiler is a driver.NodeTimer for a driver that has none. NodeIDs returns ids only if
// profiler.knows is true. NodeTimes calls the test's function profiler.times.
type profiler struct {
	knows    bool
	nodes    []driver.Node
	launches []uint64
	streams  map[driver.Stream]bool // streams between BeginLaunch and EndLaunch
	times    func(p *profiler, last bool) []driver.NodeTime
}

func (p *profiler) NodeIDs(to []uint64, n driver.Node) []uint64 {
	p.nodes = append(p.nodes, n)
	if p.knows {
		to = append(to, 1000+uint64(len(p.nodes)))
	}
	return to
}

func (p *profiler) BeginLaunch(s driver.Stream, launch uint64) {
	p.launches, p.streams[s] = append(p.launches, launch), true
}

func (p *profiler) EndLaunch(s driver.Stream) { delete(p.streams, s) }

func (p *profiler) NodeTimes(to []driver.NodeTime, last bool) []driver.NodeTime {
	return append(to, p.times(p, last)...)
}

// TestProfilerTimesNodes checks that times from a profiler go to the right commands. The number of a
// node tells which command a time belongs to. If the profiler gives nodes no numbers, a time belongs
// to the launch's next command with the same kernel. A time of another kernel belongs to no command.
func TestProfilerTimesNodes(t *testing.T) {
	for _, x := range []struct {
		name  string
		knows bool
		time  func(i int, launch uint64) driver.NodeTime
		want  []string // "command label submission"
	}{
		{"by number", true, func(i int, launch uint64) driver.NodeTime {
			return driver.NodeTime{Node: 1003 - uint64(i), Launch: launch}
		},
			[]string{"3  1", "1 right 1", "0 left 1"}},
		{"by number, without the launch", true, func(i int, _ uint64) driver.NodeTime { return driver.NodeTime{Node: 1001 + uint64(i)} },
			[]string{"0 left 0", "1 right 0", "3  0"}},
		{"by the kernel's name", false, func(i int, launch uint64) driver.NodeTime {
			return driver.NodeTime{Node: 77, Launch: launch, Kernel: "sleep"}
		}, []string{"0 left 1", "1 right 1", "3  1"}},
		{"of other kernels", false, func(i int, launch uint64) driver.NodeTime {
			return driver.NodeTime{Node: 77, Launch: launch, Kernel: "other"}
		}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &profiler{knows: x.knows, streams: map[driver.Stream]bool{}}
				begun := time.Now().Add(time.Millisecond)
				p.times = func(p *profiler, last bool) (list []driver.NodeTime) {
					if !last { // the profiler has the times only at the end
						return nil
					}
					for i := range 3 {
						n := x.time(i, p.launches[0])
						n.Begun, n.Ended = begun.Add(time.Duration(i)*time.Millisecond), begun.Add(time.Duration(i+1)*time.Millisecond)
						list = append(list, n)
					}
					return list
				}
				testkit.Profile(t, nil, func() driver.NodeTimer { return p })
				tracer := newTracer(t, trace.TracerOptions{Times: trace.CommandTimes})
				_, dev, sleep := sleeper(t, simdriver.CUDACaps(), gpu.Options{Tracer: tracer})
				s := semaphores(t, 1)[0]
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(sleepy(t, dev, sleep, gpu.AutoMode))))
				must(t, s.Wait(context.Background(), 1))
				if early := nodes(taken(tracer)); len(early) != 0 {
					t.Errorf("records before the times: %v", early)
				}
				must(t, dev.Close())
				var got []string
				for _, r := range nodes(taken(tracer)) {
					got = append(got, fmt.Sprint(r.Command, " ", r.Label, " ", r.ID))
				}
				if !slices.Equal(got, x.want) {
					t.Errorf("commands %q, want %q", got, x.want)
				}
				if len(p.nodes) != 3 || len(p.launches) != 1 || len(p.streams) != 0 {
					t.Errorf("the profiler got %d nodes and %d launches, of which %d did not end", len(p.nodes), len(p.launches), len(p.streams))
				}
			})
		})
	}
}

// TestProfilerFails checks that the file says why graphs have no times of commands if the profiler
// cannot be opened. Recordings of AutoMode must then run as calls, with times.
func TestProfilerFails(t *testing.T) {
	testkit.Profile(t, fmt.Errorf("there is no profiler here"), nil)
	var f file
	tr, err := trace.Start(&f, trace.Options{Times: trace.CommandTimes})
	must(t, err)
	caps := simdriver.CUDACaps()
	_, dev, sleep := sleeper(t, caps, gpu.Options{Tracer: tr.Tracer()})
	s := semaphores(t, 1)[0]
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(sleepy(t, dev, sleep, gpu.AutoMode))))
	must(t, s.Wait(minute(t), 1))
	must(t, dev.Close())
	must(t, tr.Close())
	events := check(t, f.b.Bytes())
	if n := len(of(events, traceformat.CatCommand, traceformat.Complete)); n != 3 {
		t.Errorf("%d slices of commands, want 3", n)
	}
	if !bytes.Contains(f.b.Bytes(), []byte(`"name":"puregpu_node_times","pid":2,"tid":0,"args":{"error":"there is no profiler here"}`)) {
		t.Errorf("the file does not say why there are no times of nodes")
	}
}
