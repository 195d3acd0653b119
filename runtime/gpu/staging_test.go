package gpu

import (
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func TestCloseWaitsForCalls(t *testing.T) {
	checkLeaks(t)
	cuda := simdriver.CUDACaps()
	t.Run("B85 Close waits for calls that use pinned memory, and then there are none", func(t *testing.T) {
		sim := simdriver.New(simdriver.Config{Caps: &cuda})
		d, err := Open(sim, 0, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d.native.Stay() != nil {
			t.Fatal("too late")
		}
		b, err := d.memory.Stage.Get(100)
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- d.Close() }()
		for d.failed() == nil {
			runtime.Gosched()
		}
		clear(b.Bytes())
		if n := sim.Counters().Devices[0].Allocations; n != 1 || len(closed) > 0 {
			t.Errorf("%d allocations; Close has returned: %v", n, len(closed) > 0)
		}
		b.Free()
		d.native.Leave()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if d.native.Stay() == nil {
			t.Error("it may be used after that")
		}
		if n := sim.Counters().Devices[0].Allocations; n != 0 {
			t.Errorf("%d allocations are left", n)
		}
	})
}
