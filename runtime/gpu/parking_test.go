package gpu

import (
	"errors"
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
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

// TestReleasedAfterClose closes a device between the failure of what a parked execution waits for and the execution's release, which other
// goroutines can come between. The recording has been destroyed by then, and the execution fails all the same.
func TestReleasedAfterClose(t *testing.T) {
	checkLeaks(t)
	d, err := Open(simdriver.New(simdriver.Config{}), 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.NewCommandBuffer(CommandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Alloc(DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fill(b.All(), []byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := c.End(); err != nil {
		t.Fatal(err)
	}
	gate, done, why := newSemaphore(t, 0), newSemaphore(t, 0), errors.New("why")
	if err := d.Queue(0).Execute(Order{Wait: []Point{{gate, 1}}, Signal: []Point{{done, 1}}}, c); err != nil {
		t.Fatal(err)
	}
	list := gate.fail(why)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	sema.ReleaseFromHost(list)
	if err := done.Wait(t.Context(), 1); !errors.Is(err, why) && !errors.Is(err, ErrClosed) {
		t.Errorf("the execution's signal: %v", err)
	}
}
