package memory_test

import (
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

func TestCloseWaitsForCalls(t *testing.T) {
	checkLeaks(t)
	cuda := simdriver.CUDACaps()
	t.Run("B85 Close waits for calls that use pinned memory", func(t *testing.T) {
		sim := simdriver.New(simdriver.Config{Caps: &cuda})
		d, err := gpu.Open(sim, 0, gpu.Options{})
		must(t, err)
		m := (*memory.PoolHandle)(newPool(t, d, gpu.PoolOptions{Portable: true})).Pool().Device()
		if m.Engine.Stay() != nil {
			t.Fatal("too late")
		}
		b, err := m.Stage.Get(100)
		must(t, err)
		closed := make(chan error, 1)
		go func() { closed <- d.Close() }()
		for m.Failed() == nil {
			runtime.Gosched()
		}
		clear(b.Bytes())
		if n := sim.Counters().Devices[0].Allocations; n != 1 || len(closed) > 0 {
			t.Errorf("%d allocations; Close has returned: %v", n, len(closed) > 0)
		}
		b.Free()
		m.Engine.Leave()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if m.Engine.Stay() == nil {
			t.Error("it may be used after that")
		}
		if n := sim.Counters().Devices[0].Allocations; n != 0 {
			t.Errorf("%d allocations are left", n)
		}
	})
}
