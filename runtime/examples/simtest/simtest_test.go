package simtest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// twins has the Go functions that the simulated GPU runs as kernels.
type twins struct{}

func (twins) Scale(g *simdriver.Grid, n uint64, a, b float32, x, y driver.Ptr) error {
	xs, err1 := simdriver.View[float32](g, x, int(n))
	ys, err2 := simdriver.View[float32](g, y, int(n))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for i := range min(n, g.Size()) {
		ys[i] = a*xs[i] + b
	}
	return nil
}

// simulate runs a test on a simulated GPU, in a synctest bubble. At the end nothing may have
// leaked, and every goroutine must have ended.
func simulate(t *testing.T, c simdriver.Config, test func(t *testing.T, d *simdriver.Driver, s *Scaler)) {
	synctest.Test(t, func(t *testing.T) {
		c.Kernels = SimScale(twins{})
		d := simdriver.New(c)
		dev, err := gpu.Open(d, 0, gpu.Options{Leaks: slog.Default()}) // logs objects that are dropped without Close
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			dev.Close() // its error tells of a lost device
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("leaked: %v", left)
			}
		}()
		s, err := New(dev)
		if err != nil {
			t.Fatal(err)
		}
		test(t, d, s)
	})
}

func TestScale(t *testing.T) {
	simulate(t, simdriver.Config{}, func(t *testing.T, _ *simdriver.Driver, s *Scaler) {
		got, err := s.Scale(t.Context(), 2, 1, []float32{1, 2, 3})
		if want := []float32{3, 5, 7}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	})
}

// TestLittleMemory checks that Scale splits numbers that do not fit into the device's memory at
// once.
func TestLittleMemory(t *testing.T) {
	simulate(t, simdriver.Config{Memory: 1 << 20}, func(t *testing.T, d *simdriver.Driver, s *Scaler) {
		xs := make([]float32, 1<<18+1)
		for i := range xs {
			xs[i] = float32(i)
		}
		got, err := s.Scale(t.Context(), 2, 1, xs)
		if err != nil {
			t.Fatal(err)
		}
		for i, y := range got {
			if y != 2*xs[i]+1 {
				t.Fatalf("element %d is %v, want %v", i, y, 2*xs[i]+1)
			}
		}
		if n := d.Counters().Devices[0].Calls[simdriver.OpLaunch]; n != 2 {
			t.Errorf("%d launches, want 2", n)
		}
	})
}

// TestFault checks that only the call of Scale whose launch fails returns an error.
func TestFault(t *testing.T) {
	broken := errors.New("broken")
	simulate(t, simdriver.Config{Faults: []simdriver.Fault{{Op: simdriver.OpLaunch, N: 2, Err: broken}}}, func(t *testing.T, _ *simdriver.Driver, s *Scaler) {
		for i, want := range []error{nil, broken, nil} {
			if _, err := s.Scale(t.Context(), 2, 1, []float32{1}); !errors.Is(err, want) {
				t.Errorf("call %d: %v, want %v", i, err, want)
			}
		}
	})
}

// TestLost checks the errors of Scale if the device is lost during the first call.
func TestLost(t *testing.T) {
	fault := simdriver.Fault{Op: simdriver.OpLaunch, N: 1, AtExecution: true}
	simulate(t, simdriver.Config{Faults: []simdriver.Fault{fault}}, func(t *testing.T, _ *simdriver.Driver, s *Scaler) {
		for range 2 {
			if _, err := s.Scale(t.Context(), 2, 1, []float32{1}); !errors.Is(err, driver.ErrLost) {
				t.Errorf("got %v, want %v", err, driver.ErrLost)
			}
		}
	})
}

// TestDeadline checks that Scale returns at its context's deadline if the kernel takes an hour, and
// that the next call runs when that kernel has ended.
func TestDeadline(t *testing.T) {
	slow := map[simdriver.Op]time.Duration{simdriver.OpLaunch: time.Hour}
	simulate(t, simdriver.Config{Latency: slow}, func(t *testing.T, d *simdriver.Driver, s *Scaler) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if _, err := s.Scale(ctx, 2, 1, []float32{1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("took %v, want a minute", took)
		}
		d.SetLatency(simdriver.OpLaunch, 0)
		if _, err := s.Scale(t.Context(), 2, 1, []float32{1}); err != nil { // runs only when the abandoned kernel has ended
			t.Error(err)
		}
		if took := time.Since(start); took < time.Hour {
			t.Errorf("took %v, want an hour", took)
		}
	})
}
