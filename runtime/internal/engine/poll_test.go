package engine_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// TestCrowded checks when a goroutine that polls without a pause skips a timeline, because other
// goroutines issue work to it.
func TestCrowded(t *testing.T) {
	checkLeaks(t)
	sim := simdriver.New(simdriver.Config{})
	d, err := gpu.Open(sim, 0, gpu.Options{Events: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b, err := d.Alloc(gpu.DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	q, s := d.Queue(0), newSemaphore(t, 0)
	tl := timeline(q)
	v := uint64(0)
	fill := func() {
		v++
		if err := q.Submit(gpu.Order{Signal: []gpu.Point{s.At(v)}}, gpu.Fill(b.All(), []byte{1})); err != nil {
			t.Fatal(err)
		}
	}
	asked := func(rounds int, each func()) (n int) {
		for range rounds {
			each()
			if !tl.Crowded(true, wake.WaiterSkips) {
				n++
			}
		}
		return n
	}
	nothing := func() {}
	sim.StallDevice(0)
	fill()
	if tl.Crowded(false, wake.WaiterSkips) {
		t.Error("the first poll of a waiter is skipped")
	}
	if n := asked(100, nothing); n != 100 {
		t.Errorf("while nobody issued work, %d of 100 rounds queried the driver", n)
	}
	if n := asked(10*wake.WaiterSkips, fill); n != 10 {
		t.Errorf("while somebody issued work, %d of %d rounds queried the driver, want 10", n, 10*wake.WaiterSkips)
	}
	asked(wake.WaiterSkips, nothing)
	if n := asked(100, nothing); n != 100 {
		t.Errorf("after the last work was issued, %d of 100 rounds queried the driver", n)
	}
	native(d).Issuing().Add(1)
	if n := asked(10*wake.WaiterSkips, nothing); n != 10 {
		t.Errorf("while the device's thread issued work, %d of %d rounds queried the driver, want 10", n, 10*wake.WaiterSkips)
	}
	native(d).Issuing().Add(-1)
	queries := sim.Counters().Devices[0].Calls[simdriver.OpQuery]
	for range 100 * wake.WaiterSkips {
		fill()
		inner(s).PollFor(v, sema.ByWaiterAgain)
	}
	// n includes the queries of Timeline.tidy.
	if n := sim.Counters().Devices[0].Calls[simdriver.OpQuery] - queries; n == 0 || n > 100*3*(engine.Watch+1) {
		t.Errorf("%d calls in 100 times %d rounds", n, wake.WaiterSkips)
	}
	sim.ResumeDevice(0)
	if err := s.Wait(minute(t), v); err != nil {
		t.Error(err)
	}
}
