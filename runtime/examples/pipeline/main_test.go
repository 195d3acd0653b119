package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// run runs the pipeline on a simulated GPU with 6 batches of 1000 floats, and reports wrong results
// and leaks.
func run(t *testing.T, ctx context.Context, c simdriver.Config) error {
	t.Helper()
	c.Kernels = kernels
	d := simdriver.New(c)
	dev, err := gpu.Open(d, 0, gpu.Options{Queues: 3})
	if err != nil {
		t.Fatal(err)
	}
	in := make([][]float32, 6)
	for i := range in {
		in[i] = make([]float32, 1000)
		for k := range in[i] {
			in[i][k] = float32(1000*i + k)
		}
	}
	out, failure := pipeline(ctx, dev, in, 3, 5)
	if err := dev.Close(); err != nil && failure == nil {
		t.Error(err)
	}
	if left := d.Leaks(); len(left) > 0 {
		t.Errorf("leaked: %v", left)
	}
	if failure != nil {
		return failure
	}
	for i := range in {
		for k, x := range in[i] {
			if out[i][k] != 3*x+5 {
				t.Fatalf("batch %d: element %d is %v, want %v", i, k, out[i][k], 3*x+5)
			}
		}
	}
	return nil
}

func TestResults(t *testing.T) {
	hip := simdriver.HIPCaps()
	for name, c := range map[string]simdriver.Config{"like CUDA": {}, "like HIP": {Caps: &hip}, "strict": {Strict: true}} {
		t.Run(name, func(t *testing.T) {
			if err := run(t, t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOverlap checks that the three stages overlap: if each operation takes a second, 6 batches
// take 8 seconds, and not 18.
func TestOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := simdriver.Config{Latency: map[simdriver.Op]time.Duration{
			simdriver.OpUpload: time.Second, simdriver.OpLaunch: time.Second, simdriver.OpDownload: time.Second,
		}}
		if err := run(t, t.Context(), c); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 8*time.Second || took > 9*time.Second {
			t.Errorf("took %v, want 8 s", took)
		}
	})
}

// TestFaults checks that a failure of one stage also ends the other stages.
func TestFaults(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		config simdriver.Config
		want   error
	}{
		"upload":      {simdriver.Config{Faults: []simdriver.Fault{{Op: simdriver.OpUpload, N: 3, Err: broken}}}, broken},
		"kernel":      {simdriver.Config{Faults: []simdriver.Fault{{Op: simdriver.OpLaunch, N: 3, Err: broken}}}, broken},
		"lost device": {simdriver.Config{Faults: []simdriver.Fault{{Op: simdriver.OpLaunch, N: 3, Err: broken, AtExecution: true}}}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t, t.Context(), test.config); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(t, ctx, simdriver.Config{Latency: map[simdriver.Op]time.Duration{simdriver.OpLaunch: 10 * time.Millisecond}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
