//go:build linux && (amd64 || arm64) && !nogpu

package cuptitrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cupti"
	"github.com/puregpu/puregpu/internal/toolkittest"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/trace"
)

// fakes makes the environment name a fake CUPTI (testdata/fakes/cuptigraphs.c) and a fake driver.
func fakes(t *testing.T, defines ...string) {
	t.Helper()
	lib := toolkittest.Case{Library: "cupti", Release: "13.0.1", File: "libcupti.so.13", Source: "cuptigraphs.c", Defines: defines}
	t.Setenv("PUREGPU_CUPTI_LIBRARY", lib.Build(t))
	drv := toolkittest.Case{Library: "cuda", Release: "13.0", File: "libcuda.so.1", Source: "cuda.c"}
	t.Setenv("PUREGPU_CUDA_LIBRARY", drv.Build(t, "cuGetProcAddress", "cuGetProcAddress_v2"))
}

// TestRecordsOfGraphs runs the graphs of two recordings, each on a simulated GPU of its own. A fake
// CUPTI tells when the nodes ran. The records of the trace must name the right commands, launches
// and devices.
func TestRecordsOfGraphs(t *testing.T) {
	for _, x := range []struct {
		name    string
		defines []string
	}{{"at once", nil}, {"the launch later", []string{"LATE=1"}}} {
		t.Run(x.name, func(t *testing.T) {
			fakes(t, x.defines...)
			c, err := open()
			testkit.Must(t, err)
			testkit.Profile(t, nil, func() driver.NodeTimer { return &timer{c: c} })
			tracer, err := trace.NewTracer(trace.TracerOptions{Times: trace.CommandTimes})
			testkit.Must(t, err)
			caps := simdriver.CUDACaps()
			sim := testkit.NewSim(t, simdriver.Config{Devices: 2, Caps: &caps})
			var all []trace.Record
			take := func() {
				some := make([]trace.Record, 1000)
				all = append(all, some[:tracer.Take(some)]...)
			}
			want := map[string]int{}
			s := testkit.Semaphores(t, 1)[0]
			var value uint64
			for i := range 2 {
				dev := testkit.OpenDevice(t, sim, i, gpu.Options{Tracer: tracer})
				b := testkit.Alloc(t, dev, 64)
				r := testkit.CommandBuffer(t, dev, gpu.GraphMode)
				for k := range 3 {
					_, err := r.Add(gpu.Fill(b.Range(uint64(k), 1), []byte{1}).Label(fmt.Sprintf("fill %d of %d", k, i)))
					testkit.Must(t, err)
				}
				testkit.Must(t, r.End())
				for range 2 {
					value++
					testkit.Must(t, dev.Queue(0).Submit(gpu.Order{Signal: testkit.Points(s, value)}, gpu.Execute(r)))
					testkit.Must(t, s.Wait(context.Background(), value))
					// The fake CUPTI runs all nodes in each launch, so the second device's launches
					// run the first one's nodes, too.
					for of := range i + 1 {
						for k := range 3 {
							want[fmt.Sprintf("GPU %d, launch %d, fill %d of %d", i, value, k, of)]++
						}
					}
					take()
				}
			}
			for range mostAge + 1 {
				take()
			}
			got := map[string]int{}
			for _, r := range all {
				if r.Kind != trace.KindNode {
					continue
				}
				got[fmt.Sprintf("GPU %d, launch %d, %s", r.Device.Info().Index, r.ID, r.Label)]++
				if r.Ended-r.Begun != 7 || r.Op != "fill" {
					t.Errorf("a record: %+v", r)
				}
			}
			// A device knows only its own nodes.
			for name := range want {
				if i, of := name[4], name[len(name)-1]; i != of {
					delete(want, name)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the records are of\n\t%v\nwant\n\t%v", got, want)
			}
		})
	}
}

// TestNodesWithoutNumbers checks that a node without a number has no times, and does no harm.
func TestNodesWithoutNumbers(t *testing.T) {
	fakes(t, "NONE")
	c, err := open()
	testkit.Must(t, err)
	x := &timer{c: c}
	if ids := x.NodeIDs(nil, 5); len(ids) != 0 {
		t.Errorf("numbers %v", ids)
	}
	x.BeginLaunch(1, 9)
	x.EndLaunch(1)
	if got := x.NodeTimes(nil, true); len(got) != 0 {
		t.Errorf("times %v", got)
	}
}

// TestTimes compares the times of a timer with the host's clock.
func TestTimes(t *testing.T) {
	fakes(t)
	c, err := open()
	testkit.Must(t, err)
	x := &timer{c: c}
	ids := x.NodeIDs(nil, 5)
	if !slices.Equal(ids, []uint64{1005}) {
		t.Fatalf("numbers %v", ids)
	}
	x.BeginLaunch(1, 9)
	x.EndLaunch(1)
	before := time.Now()
	got := x.NodeTimes(nil, false)
	after := time.Now()
	const ago = 1000000 - 1000 // time from the kernel's beginning to now, on the fake's clock
	if len(got) != 1 || got[0].Node != 1005 || got[0].Launch != 9 || got[0].Kernel != "kernel" || got[0].Ended.Sub(got[0].Begun) != 7 ||
		got[0].Begun.Before(before.Add(-ago)) || got[0].Begun.After(after.Add(-ago)) {
		t.Errorf("times %+v; the host's are %v to %v", got, before, after)
	}
	if got := x.NodeTimes(nil, true); len(got) != 0 {
		t.Errorf("the same times come again: %+v", got)
	}
}

// TestCUPTIIsBusyOrMissing checks the errors that a trace has if CUPTI cannot be used.
func TestCUPTIIsBusyOrMissing(t *testing.T) {
	fakes(t, "BUSY")
	if _, err := open(); !errors.Is(err, cupti.ErrorMultipleSubscribersNotSupported) {
		t.Errorf("under another profiler: %v", err)
	}
	t.Setenv("PUREGPU_CUPTI_LIBRARY", "/no/such/libcupti.so.13")
	if _, err := open(); !errors.Is(err, dl.ErrNotFound) {
		t.Errorf("without CUPTI: %v", err)
	}
}

// TestNodesOfChildren finds the originals of the nodes of an instance. The originals of nodes 0 to
// 3 are known. Nodes 1 and 3 are child graphs. The numbers from 4 on belong to the nodes inside the
// child graphs: first the node inside node 1, then the nodes inside node 3.
func TestNodesOfChildren(t *testing.T) {
	const at = 7 << 32 // the instance
	var c collecting
	for i, from := range []uint64{100, 101, 102, 103} {
		c.origins.Set(at+uint64(i), from)
	}
	c.inside.Set(instance(at), []child{{at + 3, []uint64{300, 301}}, {at + 1, []uint64{200}}})
	for node, want := range map[uint64]uint64{at: 100, at + 3: 103, at + 4: 200, at + 5: 300, at + 6: 301, at + 7: at + 7, 8 << 32: 8 << 32} {
		if got := c.first(node); got != want {
			t.Errorf("node %#x is a clone of %d, want %d", node, got, want)
		}
	}
}
