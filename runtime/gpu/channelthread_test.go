package gpu

import (
	"context"
	"errors"
	"io"
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

// TestTraceChannelLoss: that a channel has failed is in the trace once, with which it is and why, and not that one has been closed.
func TestTraceChannelLoss(t *testing.T) {
	checkLeaks(t)
	tracer, err := NewTracer(TracerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := OpenGroup(simdriver.New(simdriver.Config{Devices: 2}), Options{Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	chans, err := g.NewChannels(within(t), ChannelOptions{Name: "gradients"})
	if err != nil {
		t.Fatal(err)
	}
	chans[1].fail(io.EOF)
	chans[1].fail(io.ErrNoProgress)
	chans[0].setFailure(channelAborting, ErrClosed)
	for _, c := range chans {
		c.Close()
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	records := make([]TraceRecord, 1000)
	var lost []TraceRecord
	for _, r := range records[:tracer.Take(records)] {
		if r.Kind == TraceLost {
			lost = append(lost, r)
		}
	}
	if len(lost) != 1 || lost[0].Channel != "gradients" || lost[0].Rank != 1 || lost[0].Ranks != 2 || !errors.Is(lost[0].Err, io.EOF) || lost[0].Device != chans[1].dev {
		t.Errorf("losses in the trace: %+v", lost)
	}
}

// joined opens the devices of a simulated driver, with a channel over all.
func joined(t *testing.T, c simdriver.Config) (*simdriver.Driver, *Group, []*Channel) {
	t.Helper()
	d := simdriver.New(c)
	g, err := OpenGroup(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	chans, err := g.NewChannels(within(t), ChannelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d, g, chans
}

// TestCloseBeforeAbort closes a channel that has failed before whoever fails it has come to abort the communicator: Close aborts it.
func TestCloseBeforeAbort(t *testing.T) {
	checkLeaks(t)
	d, g, chans := joined(t, simdriver.Config{})
	chans[0].setFailure(channelAborting, io.EOF)
	if err := chans[0].Close(); err != nil {
		t.Error(err)
	}
	if n := d.Counters().Devices[0].Calls[simdriver.OpAbortComm]; n != 1 {
		t.Errorf("its communicator was aborted %d times", n)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestWaitForGroup has a group come before other work while the channel's thread keeps the timeline, as it does while it gives the library
// the next group, until other ranks come.
func TestWaitForGroup(t *testing.T) {
	checkLeaks(t)
	g, err := OpenGroup(simdriver.New(simdriver.Config{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	chans, err := g.NewChannels(within(t), ChannelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, s := chans[0], newSemaphore(t, 0)
	b, err := c.Device().Alloc(DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Submit(context.Background(), Order{Signal: []Point{{s, 1}}}, AllReduce(b.All(), b.All(), Int8, Sum())); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(within(t), 1); err != nil {
		t.Fatal(err)
	}
	c.q.tl.mu.Lock()
	work := submission{q: c.Device().Queue(0), deps: frontier{{c.q.tl, 1}}}
	if err := work.markDeps(); err != nil {
		t.Error(err)
	}
	c.q.tl.mu.Unlock()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
