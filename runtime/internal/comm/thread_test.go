package comm_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// TestThreadSleeps checks that sleeping and parked communicator threads issue new groups, and end.
func TestThreadSleeps(t *testing.T) {
	checkLeaks(t)
	before := runtime.GOMAXPROCS(16)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	g, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 2}), gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := collective.NewID(g.Devices()[0])
	if err != nil {
		t.Fatal(err)
	}
	comms, err := collective.NewAll(within(t), g.Devices(), collective.Options{ID: id, Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := []*gpu.Semaphore{newSemaphore(t, 0), newSemaphore(t, 0)}
	for v := uint64(1); v < 10; v++ {
		for i, c := range comms {
			for !in(c).Thread().Rests() {
				runtime.Gosched()
			}
			if in(c).Ask(v) {
				t.Error("the thread polls the device while it sleeps")
			}
			b, err := c.Device().Alloc(gpu.DeviceMem, 64)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Device().Queue(0).Submit(gpu.Order{Signal: points(s[i], v)}, c.Group(collective.AllReduce(b.All(), b.All(), collective.Int8, collective.Sum()))); err != nil {
				t.Fatal(err)
			}
		}
		for i, c := range comms {
			for in(c).Timeline().Latest() < v || in(c).Ask(v) && !in(c).Timeline().Passed(v) {
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

// A lossTracer records the losses that it receives, as a Tracer and an observe.Device.
type lossTracer struct {
	observe.Device
	lost []error
}

func (l *lossTracer) Observe(*gpu.Device, *engine.Device, func() (reserved, used uint64)) (observe.Device, error) {
	return l, nil
}

func (l *lossTracer) Happened(what observe.Event, _ time.Time, _ string, _ uint64, err error) {
	if what == observe.Lost {
		l.lost = append(l.lost, err)
	}
}

func (l *lossTracer) Stopped(context.Context) {}
func (l *lossTracer) Closed()                 {}

// TestTraceLoss checks that a tracer gets one record for a failed communicator, with its identity
// and the reason, and none for a closed communicator.
func TestTraceLoss(t *testing.T) {
	checkLeaks(t)
	var tracer lossTracer
	g, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 2}), gpu.Options{Tracer: &tracer})
	if err != nil {
		t.Fatal(err)
	}
	comms, err := collective.NewAll(within(t), g.Devices(), collective.Options{Name: "gradients"})
	if err != nil {
		t.Fatal(err)
	}
	in(comms[1]).Fail(io.EOF)
	in(comms[1]).Fail(io.ErrNoProgress)
	in(comms[0]).SetFailure(comm.IsAborting, gpu.ErrClosed)
	for _, c := range comms {
		c.Close()
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if len(tracer.lost) != 1 {
		t.Fatalf("losses: %v", tracer.lost)
	}
	if e, ok := tracer.lost[0].(*collective.Error); !ok || e.Name != "gradients" || e.Rank != 1 || e.Count != 2 || !errors.Is(e, io.EOF) {
		t.Errorf("the loss is %+v", e)
	}
}

// joined opens the devices of a simulated driver, with a communicator over all.
func joined(t *testing.T, c simdriver.Config) (*simdriver.Driver, *gpu.Group, []*collective.Communicator) {
	t.Helper()
	d := simdriver.New(c)
	g, err := gpu.OpenGroup(d, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	comms, err := collective.NewAll(within(t), g.Devices(), collective.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d, g, comms
}

// TestCloseBeforeAbort closes a failed communicator before the failing goroutine has aborted the
// native communicator. Close must abort it.
func TestCloseBeforeAbort(t *testing.T) {
	checkLeaks(t)
	d, g, comms := joined(t, simdriver.Config{})
	in(comms[0]).SetFailure(comm.IsAborting, io.EOF)
	if err := comms[0].Close(); err != nil {
		t.Error(err)
	}
	if n := d.Counters().Devices[0].Calls[simdriver.OpAbortComm]; n != 1 {
		t.Errorf("its communicator was aborted %d times", n)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestWaitForGroup checks that an event can be recorded behind a group while the timeline is
// locked. The communicator's thread holds that lock while the library issues the next group,
// perhaps until other ranks come.
func TestWaitForGroup(t *testing.T) {
	checkLeaks(t)
	g, err := gpu.OpenGroup(simdriver.New(simdriver.Config{}), gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	comms, err := collective.NewAll(within(t), g.Devices(), collective.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, s := comms[0], newSemaphore(t, 0)
	b, err := c.Device().Alloc(gpu.DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Device().Queue(0).Submit(gpu.Order{Signal: points(s, 1)}, c.Group(collective.AllReduce(b.All(), b.All(), collective.Int8, collective.Sum()))); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(within(t), 1); err != nil {
		t.Fatal(err)
	}
	if err := in(c).Timeline().Locked(in(c).Timeline().At(1).Record); err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestChainWithoutDeviceThread blocks the device's thread. Groups that wait for groups of their
// communicator, and for fills between them, must still be issued: the communicator's thread
// continues from one group to the next by itself.
func TestChainWithoutDeviceThread(t *testing.T) {
	checkLeaks(t)
	g, err := gpu.OpenGroup(simdriver.New(simdriver.Config{}), gpu.Options{Queues: 2, Events: 1024})
	if err != nil {
		t.Fatal(err)
	}
	comms, err := collective.NewAll(within(t), g.Devices(), collective.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := comms[0]
	dev := c.Device()
	b, err := dev.Alloc(gpu.DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	// The function holds the timeline of the second queue. The device's thread waits for that
	// timeline, to issue the fill.
	begun, end := make(chan struct{}), make(chan struct{})
	held, native := newSemaphore(t, 0), make(chan error, 1)
	if err := dev.Queue(1).Submit(gpu.Order{Wait: points(held, 1)}, gpu.Fill(b.Range(0, 8), []byte{1})); err != nil {
		t.Fatal(err)
	}
	go func() {
		native <- dev.Queue(1).Submit(gpu.Order{}, gpu.Native("", func(gpu.NativeCall) error { close(begun); <-end; return nil }))
	}()
	<-begun
	if err := dev.Queue(0).Submit(gpu.Order{Signal: points(held, 1)}, gpu.Fill(b.Range(8, 8), []byte{1})); err != nil {
		t.Fatal(err)
	}
	for in(c).Timeline().Device.Statistics().Issuing == 0 {
		runtime.Gosched()
	}

	const n = 100 // fewer than there are events
	s := newSemaphore(t, 0)
	for v := uint64(0); v < n; v += 2 {
		err := c.Device().Queue(0).Submit(gpu.Order{Wait: points(s, v), Signal: points(s, v+1)}, c.Group(collective.AllReduce(b.Range(16, 8), b.Range(16, 8), collective.Int8, collective.Sum())))
		if err == nil && v%4 == 0 {
			err = dev.Queue(0).Submit(gpu.Order{Wait: points(s, v+1), Signal: points(s, v+2)}, gpu.Fill(b.Range(16, 8), []byte{1}))
		} else if err == nil {
			err = c.Device().Queue(0).Submit(gpu.Order{Wait: points(s, v+1), Signal: points(s, v+2)}, c.Group(collective.AllReduce(b.Range(16, 8), b.Range(16, 8), collective.Int8, collective.Sum())))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Wait(within(t), n); err != nil {
		t.Error(err)
	}
	close(end)
	if err := <-native; err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestOtherWorkOnQueue submits so much other work to a communicator's queue that events run out. (A
// program may find the queue in a trace.) The caller's thread is not bound to the device, so the
// caller must not make events.
func TestOtherWorkOnQueue(t *testing.T) {
	checkLeaks(t)
	sim := simdriver.New(simdriver.Config{Strict: true})
	g, err := gpu.OpenGroup(sim, gpu.Options{Events: 4})
	if err != nil {
		t.Fatal(err)
	}
	comms, err := collective.NewAll(within(t), g.Devices(), collective.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, s := comms[0], newSemaphore(t, 0)
	b, err := c.Device().Alloc(gpu.DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.StallDevice(0); err != nil {
		t.Fatal(err)
	}
	const n = 300
	for v := uint64(1); v <= n; v++ {
		if err := in(c).Timeline().Queue.(*gpu.Queue).Submit(gpu.Order{Signal: points(s, v)}, gpu.Fill(b.All(), []byte{1})); err != nil {
			t.Fatal(err)
		}
	}
	if err := sim.ResumeDevice(0); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(within(t), n); err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
