package collective_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// waysToFail lists ways in which rank 0's all-reduce fails after later work was issued behind it.
// Device 1 is stalled, so the all-reduce cannot complete.
var waysToFail = []struct {
	name    string
	timeout time.Duration
	joins   bool // rank 1 submits the all-reduce too
	end     func(t *testing.T, d *simdriver.Driver, comms []*collective.Communicator)
	err     error // what the communicator's error must wrap
}{
	{name: "the peer is killed", joins: true, end: func(t *testing.T, d *simdriver.Driver, _ []*collective.Communicator) {
		must(t, d.KillComm(d.Comms(1)[0], time.Millisecond))
	}, err: simdriver.ErrRankGone},
	{name: "the communicator times out", timeout: time.Second, err: context.DeadlineExceeded},
	{name: "the communicator is aborted", end: func(t *testing.T, _ *simdriver.Driver, comms []*collective.Communicator) {
		comms[0].Abort(nil)
	}, err: collective.ErrAborted},
}

// TestBehindFailedCollective checks what happens to work behind an all-reduce that fails. Work that
// was issued runs, and its signals fail. Work that was not issued does not run. All this work fails
// with the communicator's error.
func TestBehindFailedCollective(t *testing.T) {
	for _, way := range waysToFail {
		// start stalls device 1 and submits the all-reduce: on rank 0 by calling submit, and on
		// rank 1 if way.joins is true. It returns device 0 and the communicators.
		start := func(t *testing.T, d *simdriver.Driver, submit func(c *collective.Communicator, b *gpu.Buffer)) (*gpu.Device, []*collective.Communicator) {
			g, comms := openCommunicators(t, d, 2, collective.Options{Timeout: way.timeout})
			must(t, d.StallDevice(1))
			t.Cleanup(func() { must(t, d.ResumeDevice(1)) })
			submit(comms[0], allocate(t, g.Devices()[0], 64))
			if way.joins {
				must(t, submitGroup(comms[1], gpu.Order{}, sum(allocate(t, g.Devices()[1], 64))))
			}
			return g.Devices()[0], comms
		}
		fail := func(t *testing.T, d *simdriver.Driver, comms []*collective.Communicator) {
			if way.end != nil {
				way.end(t, d, comms)
			}
		}
		// ended checks that err is a collective.Error that wraps way.err.
		ended := func(t *testing.T, what string, err error) {
			t.Helper()
			if _, ok := errors.AsType[*collective.Error](err); !ok || !errors.Is(err, way.err) {
				t.Errorf("%s: %v; want a communicator's failure by %v", what, err, way.err)
			}
		}
		t.Run("B77 B145 in a stream, "+way.name, func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				if !caps.Comms {
					t.Skip("no communicators")
				}
				var s *gpu.Stream
				dev, comms := start(t, d, func(c *collective.Communicator, b *gpu.Buffer) {
					s = c.Device().Queue(0).NewStream()
					must(t, s.Do(c.Group(sum(b))))
				})
				issued, waiting := allocate(t, dev, 64), allocate(t, dev, 64)
				must(t, s.Fill(issued.All(), []byte{1}))
				p := s.Point()
				must(t, p.Semaphore.WaitIssued(minute(t), p.Value))
				must(t, s.Do(gpu.HostCall(func() error { t.Error("a host call behind the all-reduce runs"); return nil })))
				must(t, s.Fill(waiting.All(), []byte{1})) // parked: it waits for the host call
				fail(t, d, comms)
				err := s.Wait(minute(t))
				ended(t, "the stream", err)
				ended(t, "the work that was issued", p.Semaphore.Wait(minute(t), p.Value))
				if later := s.Fill(waiting.All(), []byte{2}); later != err {
					t.Errorf("a call after the failure: %v; want %v", later, err)
				}
				synctest.Wait()
				holds(t, "memory of work that was issued", dev, issued, 1)
				holds(t, "memory of work that was not issued", dev, waiting, 0)
			})
		})
		t.Run("B77 B136 in a queue, "+way.name, func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				if !caps.Comms {
					t.Skip("no communicators")
				}
				reduced := semaphores(t, 1)[0]
				dev, comms := start(t, d, func(c *collective.Communicator, b *gpu.Buffer) {
					must(t, submitGroup(c, gpu.Order{Signal: pts(reduced, 1)}, sum(b)))
				})
				issued, far, waiting := allocate(t, dev, 64), allocate(t, dev, 64), allocate(t, dev, 64)
				gate, x := semaphores(t, 1)[0], semaphores(t, 4)
				q := dev.Queue(0)
				must(t, q.Submit(order(reduced, 1, x[0], 1), gpu.Fill(issued.All(), []byte{1})))
				must(t, q.Submit(order(x[0], 1, x[1], 1), gpu.Fill(far.All(), []byte{1})))
				must(t, x[1].WaitIssued(minute(t), 1))
				must(t, q.Submit(gpu.Order{Wait: []gpu.Point{x[1].At(1), gate.At(1)}, Signal: pts(x[2], 1)}, gpu.Fill(waiting.All(), []byte{1})))
				fail(t, d, comms)
				ended(t, "the all-reduce", reduced.Wait(minute(t), 1))
				ended(t, "work behind it", x[0].Wait(minute(t), 1))
				ended(t, "work behind that", x[1].Wait(minute(t), 1))
				must(t, gate.Signal(1)) // now no wait of the parked work is open
				ended(t, "parked work", x[2].Wait(minute(t), 1))
				must(t, q.Submit(order(x[1], 1, x[3], 1), gpu.Fill(waiting.All(), []byte{2})))
				ended(t, "work that is submitted after the failure", x[3].Wait(minute(t), 1))
				synctest.Wait()
				holds(t, "memory of work that was issued", dev, issued, 1)
				holds(t, "memory of further work that was issued", dev, far, 1)
				holds(t, "memory of work that was not issued", dev, waiting, 0)
			})
		})
		t.Run("B77 B136 in a recording, "+way.name, func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				if !caps.Comms {
					t.Skip("no communicators")
				}
				var issued, waiting *gpu.Buffer
				done := semaphores(t, 1)[0]
				dev, comms := start(t, d, func(c *collective.Communicator, b *gpu.Buffer) {
					issued, waiting = allocate(t, c.Device(), 64), allocate(t, c.Device(), 64)
					r, err := c.Device().NewCommandBuffer(gpu.CommandOptions{Mode: gpu.StreamMode})
					must(t, err)
					t.Cleanup(func() { r.Close() })
					recorded := func(_ gpu.Command, err error) { t.Helper(); must(t, err) }
					recorded(r.Add(c.Group(sum(b))))
					recorded(r.Add(gpu.Fill(issued.All(), []byte{1})))
					recorded(r.Add(gpu.HostCall(func() error { t.Error("a recorded host call behind the all-reduce runs"); return nil })))
					recorded(r.Add(gpu.Fill(waiting.All(), []byte{1})))
					must(t, r.End())
					must(t, c.Device().Queue(0).Submit(gpu.Order{Signal: pts(done, 1)}, gpu.Execute(r)))
				})
				synctest.Wait()
				fail(t, d, comms)
				ended(t, "the execution", done.Wait(minute(t), 1))
				synctest.Wait()
				holds(t, "memory of a command that was issued", dev, issued, 1)
				holds(t, "memory of a command that was not issued", dev, waiting, 0)
			})
		})
	}
}

// TestPoolsAndNativeBehindFailedCollective checks that a Free, an Alloc and a Native that were
// issued behind an all-reduce run, although the all-reduce fails later.
func TestPoolsAndNativeBehindFailedCollective(t *testing.T) {
	eachCaps(t, "B92 B156", func(t *testing.T, caps driver.Caps) {
		if !caps.Comms || !caps.Native {
			t.Skip("no communicators, or no native work")
		}
		d := newSim(t, simdriver.Config{Devices: 2, Caps: &caps})
		g, comms := openCommunicators(t, d, 2, collective.Options{})
		dev := g.Devices()[0]
		s, b := dev.Queue(0).NewStream(), allocate(t, dev, 64)
		old, err := s.Alloc(nil, 64)
		must(t, err)
		must(t, s.Wait(minute(t)))
		must(t, s.Do(comms[0].Group(sum(b))))
		must(t, s.Free(old))
		made, err := s.Alloc(nil, 64)
		must(t, err)
		called := make(chan struct{}, 1)
		must(t, s.Do(gpu.Native("", func(gpu.NativeCall) error { called <- struct{}{}; return nil })))
		p := s.Point()
		must(t, p.Semaphore.WaitIssued(minute(t), p.Value))
		comms[0].Abort(nil)
		if err := s.Wait(minute(t)); !errors.Is(err, collective.ErrAborted) {
			t.Errorf("the stream: %v", err)
		}
		<-called
		if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(old.All(), []byte{1})); !errors.Is(err, gpu.ErrUnallocated) {
			t.Errorf("memory whose dealloca was issued: %v", err)
		}
		done := semaphores(t, 1)[0]
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(done, 1)}, gpu.Fill(made.All(), []byte{1})))
		must(t, done.Wait(minute(t), 1))
		must(t, made.Close()) // the failed stream takes no Free
	})
}

// TestWaitFailsWhileAnotherIsOpen checks that parked work fails as soon as one of its waits fails,
// even if another wait is open. The test is skipped: the runtime does not promise this if the work
// for the failed wait was issued (B77).
func TestWaitFailsWhileAnotherIsOpen(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		t.Skip("a parked operation does not watch a wait whose work was issued: it finds the failure when its other waits are over")
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 3)
		b, why := allocate(t, dev, 64), errors.New("why")
		q, issued, never, x := dev.Queue(0), s[0], s[1], s[2]
		must(t, d.StallDevice(0))
		must(t, q.Submit(gpu.Order{Signal: pts(issued, 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, q.Submit(gpu.Order{Wait: []gpu.Point{issued.At(1), never.At(1)}, Signal: pts(x, 1)}, gpu.Fill(b.All(), []byte{2})))
		issued.Fail(why)
		if err := x.Wait(minute(t), 1); !errors.Is(err, why) {
			t.Errorf("the parked work: %v; want %v", err, why)
		}
		must(t, d.ResumeDevice(0))
	})
}
