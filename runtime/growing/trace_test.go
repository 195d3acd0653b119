package growing_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/trace"
)

// TestTrace finds growing and shrinking in a trace.
func TestTrace(t *testing.T) {
	tracer, err := trace.NewTracer(trace.TracerOptions{})
	must(t, err)
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{Tracer: tracer})
	m := reserve(t, dev, 8*page, 3*page, growing.Options{})
	must(t, m.Shrink(page))
	grown, shrunk := uint64(0), uint64(0)
	eventually(t, "both are traced", func() bool {
		records := make([]trace.Record, 64)
		for _, r := range records[:tracer.Take(records)] {
			switch {
			case r.Label != "growing memory" || r.Err != nil:
			case r.Kind == trace.KindGrow:
				grown += r.Bytes
			case r.Kind == trace.KindShrink:
				shrunk += r.Bytes
			}
		}
		return grown == 3*page && shrunk == 2*page
	}, dev)
}

// TestAllocations checks that fills of growing memory, and executions of a recording with growing
// memory, allocate nothing in steady state.
func TestAllocations(t *testing.T) {
	if testkit.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
	m := reserve(t, dev, 8*page, page, growing.Options{})
	c := testkit.CommandBuffer(t, dev, gpu.GraphMode)
	testkit.Recorded(t)(c.Add(gpu.Fill(m.Buffer().Range(0, 64), []byte{1})))
	must(t, c.End())
	s, fill, execute, ctx := dev.Queue(0).NewStream(), gpu.Fill(m.Buffer().Range(0, 64), []byte{2}), gpu.Execute(c), t.Context()
	turn := func() {
		must(t, s.Do(fill))
		must(t, s.Do(execute))
		must(t, s.Wait(ctx))
	}
	for range 200 {
		turn()
	}
	if n := testing.AllocsPerRun(200, turn); n >= 1 {
		t.Errorf("%v allocations a turn", n)
	}
}
