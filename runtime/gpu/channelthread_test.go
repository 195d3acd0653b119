package gpu

import (
	"context"
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestThreadSleeps has channels' threads that sleep, or have parked, issue what comes, and end.
func TestThreadSleeps(t *testing.T) {
	checkLeaks(t)
	before := runtime.GOMAXPROCS(16)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	g, err := OpenGroup(simdriver.New(simdriver.Config{Devices: 2}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := g.Devices()[0].NewChannelID()
	if err != nil {
		t.Fatal(err)
	}
	chans, err := g.NewChannels(within(t), ChannelOptions{ID: id, Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := []*Semaphore{newSemaphore(t, 0), newSemaphore(t, 0)}
	for v := uint64(1); v < 10; v++ {
		for i, c := range chans {
			for !c.thread.Rests() {
				runtime.Gosched()
			}
			if c.ask(v) {
				t.Error("it asks the device while it sleeps")
			}
			b, err := c.Device().Alloc(DeviceMem, 64)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Submit(context.Background(), Order{Signal: []Point{{s[i], v}}}, AllReduce(b.All(), b.All(), Int8, Sum())); err != nil {
				t.Fatal(err)
			}
		}
		for i, c := range chans {
			for c.q.tl.issued.Load() < v || c.ask(v) && c.q.tl.passed.Load() < v {
				runtime.Gosched()
			}
			if err := s[i].Wait(within(t), v); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
