package gpu

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func TestSleeper(t *testing.T) {
	checkLeaks(t)
	t.Run("nobody sleeps on", func(t *testing.T) {
		processors(t, 8)
		const n = 20000
		s := sleeper{limit: time.Hour}
		wake, seen := make(chan struct{}, 1), make(chan bool)
		go func() {
			for range n {
				seen <- s.sleep(wake)
			}
		}()
		for i := range n {
			if i%1000 == 0 { // else it is mostly about to
				for s.word.Load() == 0 {
					runtime.Gosched()
				}
			}
			nudge(wake)
			s.rouse()
			if !<-seen {
				t.Fatal("it did not sleep")
			}
		}
		if n := kept.Load(); n != 0 {
			t.Errorf("%d processors are kept", n)
		}
	})
	t.Run("nobody sleeps for long", func(t *testing.T) {
		processors(t, 8)
		if new(sleeper).sleep(make(chan struct{})) {
			t.Error("it was woken")
		}
		if n := kept.Load(); n != 0 {
			t.Errorf("%d processors are kept", n)
		}
	})
	t.Run("few sleep", func(t *testing.T) {
		processors(t, 3)
		if new(sleeper).sleep(nil) {
			t.Error("it slept, of three processors")
		}
		if n := kept.Load(); n != 0 {
			t.Errorf("%d processors are kept", n)
		}
	})
	t.Run("a channel's thread that sleeps issues what comes, and ends", func(t *testing.T) {
		processors(t, 16)
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
				for c.sleeper.word.Load() == 0 && !c.resting.Load() {
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
				for c.q.tl.issued.Load() < v || c.ask(v) && c.q.tl.done.Load() < v {
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
	})
}
