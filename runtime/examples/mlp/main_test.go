package main

import (
	"bytes"
	"context"
	"math"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

var result = regexp.MustCompile(`^mlp: 12 layers of 128, batch of 8, 8 executions on sim \(.+\): largest error \S+ \(1e-05 allowed\): ok\n$`)

// TestSim checks the program on simulated GPUs with different features, and that nothing leaks. If
// the device has graphs, the layers must be nodes of a graph.
func TestSim(t *testing.T) {
	plain := simdriver.CUDACaps()
	plain.Graphs, plain.Pools, plain.HostPools = false, false, false
	bound := simdriver.HIPCaps()
	for name, test := range map[string]struct {
		caps  *driver.Caps
		nodes int64
	}{
		"like CUDA":                     {nil, layers * executions},
		"like HIP":                      {&bound, layers * executions},
		"with neither pools nor graphs": {&plain, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var launches, nodes atomic.Int64
			d := simdriver.New(simdriver.Config{Kernels: kernels, Caps: test.caps, Strict: true, OnExecute: func(x simdriver.Executed) {
				if x.Op == simdriver.OpLaunch {
					launches.Add(1)
					if x.Node != 0 {
						nodes.Add(1)
					}
				}
			}})
			var out bytes.Buffer
			if err := mlp(t.Context(), d, &out); err != nil || !result.MatchString(out.String()) {
				t.Errorf("%v, printed %q", err, &out)
			}
			if launches.Load() != layers*executions || nodes.Load() != test.nodes {
				t.Errorf("%d launches, %d of them of graphs' nodes; want %d and %d", launches.Load(), nodes.Load(), layers*executions, test.nodes)
			}
			graphs := uint64(0) // one per execution
			if test.nodes > 0 {
				graphs = executions
			}
			if n := d.Counters().Devices[0].Calls[simdriver.OpLaunchGraph]; n != graphs {
				t.Errorf("%d graphs were launched, want %d", n, graphs)
			}
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("leaked: %v", left)
			}
		})
	}
}

// TestFaults checks that failures of the device are reported and do not hang the program.
func TestFaults(t *testing.T) {
	negative := simdriver.MustKernel(func(g *simdriver.Grid, in, out, batch uint64, w, b, x, y driver.Ptr) error {
		err := twins{}.Dense(g, in, out, batch, w, b, x, y)
		if ys, e := simdriver.View[float32](g, y, 1); e == nil {
			ys[0] -= 0.01
		}
		return err
	})
	for name, test := range map[string]struct {
		config simdriver.Config
		ctx    func(context.Context) context.Context
		want   string
	}{
		"wrong kernel":  {config: simdriver.Config{Kernels: map[string]simdriver.Kernel{"dense": negative}}, want: "on sim (Simulated GPU 0): execution 0: output 0 of sample 0 is "},
		"no kernel":     {want: "dense"},
		"little memory": {config: simdriver.Config{Kernels: kernels, Memory: 1 << 19}, want: "memory"},
		"canceled": {
			config: simdriver.Config{Kernels: kernels, Latency: map[simdriver.Op]time.Duration{simdriver.OpLaunch: 2 * time.Millisecond}},
			ctx: func(ctx context.Context) context.Context {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return ctx
			},
			want: context.Canceled.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if test.ctx != nil {
				ctx = test.ctx(ctx)
			}
			var out bytes.Buffer
			if err := mlp(ctx, simdriver.New(test.config), &out); err == nil || !strings.Contains(err.Error(), test.want) || out.Len() > 0 {
				t.Errorf("%v, printed %q; want %q", err, &out, test.want)
			}
		})
	}
}

// TestCompare checks that compare accepts the host's own outputs, and refuses a NaN and outputs
// that are all 0 on the host.
func TestCompare(t *testing.T) {
	n, inputs := newNetwork(), newInputs(1)
	outputs := [][]float32{n.forward(inputs[0])}
	if worst, err := n.compare(inputs, outputs); worst != 0 || err != nil {
		t.Errorf("the host's own outputs: %v, %v", worst, err)
	}
	outputs[0][5*width+7] = float32(math.NaN())
	if _, err := n.compare(inputs, outputs); err == nil || !strings.Contains(err.Error(), "output 7 of sample 5 is NaN") {
		t.Errorf("an output that is no number: %v", err)
	}
	zero := &network{params: make([]float32, len(n.params))}
	if _, err := zero.compare(inputs, inputs); err == nil {
		t.Error("nothing to compare with, and no error")
	}
}
