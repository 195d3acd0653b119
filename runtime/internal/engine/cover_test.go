package engine_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestElision checks that a stream gets no native wait for its own work, or for work that it has
// already waited for.
func TestElision(t *testing.T) {
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
	cuda := simdriver.CUDACaps()
	for _, x := range []struct {
		name string
		want uint64
		run  func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s []*gpu.Semaphore) *gpu.Semaphore
	}{
		{"on the same stream", 0, func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s []*gpu.Semaphore) *gpu.Semaphore {
			for i := range uint64(100) {
				must(t, dev.Queue(1).Submit(gpu.Order{Wait: pts(s[0], i), Signal: pts(s[0], i+1)}, gpu.Fill(b.All(), []byte{1})))
			}
			return s[0]
		}},
		{"the same twice", 1, func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s []*gpu.Semaphore) *gpu.Semaphore {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(1).Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(1).Submit(order(s[0], 1, s[1], 2), gpu.Fill(b.All(), []byte{1})))
			return s[1]
		}},
		{"an earlier one of a stream waited for", 1, func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s []*gpu.Semaphore) *gpu.Semaphore {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(1).Submit(order(s[1], 1, s[2], 1), gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(1).Submit(order(s[0], 1, s[2], 2), gpu.Fill(b.All(), []byte{1})))
			return s[2]
		}},
		{"through another stream", 3, func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s []*gpu.Semaphore) *gpu.Semaphore {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(1).Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(2).Submit(order(s[1], 1, s[2], 1), gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(2).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s[0], Value: 1}, {Semaphore: s[1], Value: 1}}, Signal: pts(s[2], 2)}, gpu.Fill(b.All(), []byte{1})))
			return s[2]
		}},
		{"40 semaphores of 3 streams", 3, func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s []*gpu.Semaphore) *gpu.Semaphore {
			o := gpu.Order{Signal: pts(s[40], 1)}
			for i := range 40 {
				must(t, dev.Queue(i%3).Submit(gpu.Order{Signal: pts(s[i], 1)}, gpu.Fill(b.Range(uint64(i%3), 1), []byte{1})))
				o.Wait = append(o.Wait, gpu.Point{Semaphore: s[i], Value: 1})
			}
			must(t, dev.Queue(3).Submit(o, gpu.Fill(b.All(), []byte{1})))
			return s[40]
		}},
	} {
		t.Run("B124 "+x.name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Caps: &cuda})
			dev := openDevice(t, d, 0, gpu.Options{Queues: 4})
			b, s := allocate(t, dev, 64), semaphores(t, 41)
			d.StallDevice(0)
			last := x.run(t, dev, b, s)
			if n := calls(d, 0, simdriver.OpStreamWait); n > x.want {
				t.Errorf("%d waits, want %d", n, x.want)
			}
			d.ResumeDevice(0)
			must(t, last.Wait(minute(t), 1))
		})
	}
}

func TestLowestPoint(t *testing.T) {
	t.Run("B72 a wait takes the lowest point that reaches its value", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 3})
		b, s := allocate(t, dev, 64), semaphores(t, 2)
		streams := d.Streams(0)
		d.StallStream(streams[0])
		d.StallStream(streams[1])
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 3)}, gpu.Fill(b.Range(0, 1), []byte{1})))
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[0], 7)}, gpu.Fill(b.Range(1, 1), []byte{1})))
		must(t, dev.Queue(2).Submit(order(s[0], 2, s[1], 1), gpu.Fill(b.Range(2, 1), []byte{1})))
		d.ResumeStream(streams[0])
		must(t, s[1].Wait(minute(t), 1))
		if v, err := s[0].Query(); v != 3 || err != nil {
			t.Errorf("at %d, %v", v, err)
		}
		d.ResumeStream(streams[1])
		must(t, s[0].Wait(minute(t), 7))
	})
	t.Run("B29 a wait ends when a higher value comes first, from another stream", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		b, s := allocate(t, dev, 64), semaphores(t, 1)
		streams := d.Streams(0)
		d.StallStream(streams[0])
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 3)}, gpu.Fill(b.Range(0, 1), []byte{1})))
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[0], 7)}, gpu.Fill(b.Range(1, 1), []byte{1})))
		must(t, s[0].Wait(minute(t), 2))
		d.ResumeStream(streams[0])
		dev.Close()
		// The two signals have no order, so giving 3 after 7 is no error.
		if v, err := s[0].Query(); v != 7 || err != nil {
			t.Errorf("at %d, %v", v, err)
		}
	})
}

func TestManyPoints(t *testing.T) {
	const n = 10_000
	t.Run("B74 10,000 live points with a pool of one event", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2, Events: 1})
		b, s := allocate(t, dev, 64), semaphores(t, n+1)
		d.StallDevice(0)
		for i := range n {
			must(t, dev.Queue(i%2).Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s[i], Value: 1}, {Semaphore: s[n], Value: uint64(i + 1)}}}, gpu.Fill(b.Range(uint64(i%2), 1), []byte{1})))
		}
		inFlight(t, dev, n)
		d.ResumeDevice(0)
		ctx := minute(t)
		for i := range n {
			must(t, s[i].Wait(ctx, 1))
		}
		must(t, s[n].Wait(ctx, n))
		if st := dev.Stats(); st.Events.Made > 2*n+2048 {
			t.Errorf("%+v", st)
		}
	})
	t.Run("B120 10,000 parked submissions, released at once", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		b, s := allocate(t, dev, 64), semaphores(t, 3)
		for i := range uint64(n) {
			must(t, dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s[0], Value: 1}, {Semaphore: s[1], Value: i}}, Signal: pts(s[1], i+1)}, gpu.Fill(b.All(), []byte{1})))
		}
		if st := dev.Stats(); st.Parked != n {
			t.Errorf("%+v", st)
		}
		must(t, s[0].Signal(1))
		must(t, s[1].Wait(minute(t), n))
		if got := calls(d, 0, simdriver.OpFill); got != n {
			t.Errorf("%d fills", got)
		}
	})
	t.Run("B38 a wait that ends early leaves no timepoint", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{})
		s := semaphores(t, 2)
		must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Barrier()))
		s[1].Close()
		must(t, s[0].Signal(1))
		must(t, dev.Close())
		if st := dev.Stats(); st.Parked+st.InFlight > 0 || st.Timepoints.Free != st.Timepoints.Made {
			t.Errorf("%+v", st)
		}
	})
}

func TestTwoDrivers(t *testing.T) {
	t.Run("B117 devices of different drivers meet on the host", func(t *testing.T) {
		x, y := newSim(t, simdriver.Config{}), newSim(t, simdriver.Config{})
		p, c := openDevice(t, x, 0, gpu.Options{}), openDevice(t, y, 0, gpu.Options{})
		a, b, ctx := allocate(t, p, 64), allocate(t, c, 64), minute(t)
		for _, waitFirst := range []bool{true, false} {
			s := semaphores(t, 3)
			produce := func() { must(t, p.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(a.All(), []byte{1}))) }
			consume := func() {
				must(t, c.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.All(), []byte{1})))
				// The first device waits for the second.
				must(t, p.Queue(0).Submit(order(s[1], 1, s[2], 1), gpu.Fill(a.All(), []byte{2})))
			}
			x.StallDevice(0)
			if waitFirst {
				consume()
				produce()
			} else {
				produce()
				consume()
			}
			if v, err := s[1].Query(); v != 0 || err != nil {
				t.Errorf("at %d, %v before the producer is done", v, err)
			}
			x.ResumeDevice(0)
			must(t, s[2].Wait(ctx, 1))
		}
		if n := calls(y, 0, simdriver.OpStreamWait); n != 0 {
			t.Errorf("%d waits for another driver's events", n)
		}
	})
}

// TestSubmitAllocs checks B142: the submissions below allocate nothing in the steady state.
func TestSubmitAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	kinds := bothCaps()
	kinds["bare"] = driver.Caps{}
	for kind, caps := range kinds {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2, Spin: -1, Poll: time.Minute})
		x, err := dev.Load(simdriver.Image("nothing"))
		must(t, err)
		k, err := x.Kernel("nothing")
		must(t, err)
		type args struct{ n uint64 }
		typed, err := gpu.Typed[args](k)
		must(t, err)
		again := gpu.Launch(k, gpu.Grid{}, uint64(1))
		b, s := allocate(t, dev, 64), semaphores(t, 3)
		ready, v := make([]gpu.Point, 2), uint64(0)
		data := make([]byte, 64)
		sig := make([]gpu.Point, 2)
		for name, f := range map[string]func(q int, o gpu.Order) error{
			"fill": func(q int, o gpu.Order) error { return dev.Queue(q).Submit(o, gpu.Fill(b.All(), []byte{1, 2, 3, 4})) },
			"fill of 8": func(q int, o gpu.Order) error {
				return dev.Queue(q).Submit(o, gpu.Fill(b.All(), []byte{1, 2, 3, 4, 5, 6, 7, 8}))
			},
			"copy": func(q int, o gpu.Order) error {
				return dev.Queue(q).Submit(o, gpu.Copy(b.Range(0, 32), b.Range(32, 32)))
			},
			"update":   func(q int, o gpu.Order) error { return dev.Queue(q).Submit(o, gpu.UploadCopy(b.All(), data)) },
			"upload":   func(q int, o gpu.Order) error { return dev.Queue(q).Submit(o, gpu.Upload(b.All(), data)) },
			"download": func(q int, o gpu.Order) error { return dev.Queue(q).Submit(o, gpu.Download(data, b.All())) },
			"barrier":  func(q int, o gpu.Order) error { return dev.Queue(q).Submit(o, gpu.Barrier()) },
			"launch":   func(q int, o gpu.Order) error { return dev.Queue(q).Submit(o, typed.Launch(gpu.Grid{}, args{1})) },
			"again":    func(q int, o gpu.Order) error { return dev.Queue(q).Submit(o, again) },
			"the least busy queue": func(q int, o gpu.Order) error {
				picked, err := dev.Pick(0)
				if err != nil {
					return err
				}
				return picked.Submit(o, gpu.Barrier())
			},
			"flush": func(q int, o gpu.Order) error {
				if err := dev.Queue(q).Flush(); err != nil {
					return err
				}
				return dev.Queue(q).Submit(o, gpu.Fill(b.All(), []byte{1}))
			},
		} {
			for parked, how := range map[bool]string{false: "issued at once", true: "parked, and released by a signal"} {
				run := func() {
					host := s[1]
					at, _ := host.Query()
					if parked {
						at++
					}
					// Each submission waits for the previous one, which is on the other queue.
					for q := range 2 {
						ready[0], ready[1] = gpu.Point{Semaphore: s[0], Value: v}, gpu.Point{Semaphore: host, Value: at}
						sig[0], sig[1] = gpu.Point{Semaphore: s[0], Value: v + 1}, gpu.Point{Semaphore: s[2], Value: v + 1}
						if err := f(q, gpu.Order{Wait: ready, Signal: sig}); err != nil {
							t.Fatal(err)
						}
						v++
					}
					if parked {
						if err := host.Signal(at); err != nil {
							t.Fatal(err)
						}
					}
					for {
						if got, err := s[0].Query(); err != nil || got >= v {
							break
						}
						runtime.Gosched()
					}
				}
				for range 200 {
					run()
				}
				if n := testing.AllocsPerRun(100, run); n != 0 {
					t.Errorf("%s, %s, %s: %v allocations in two submissions", kind, name, how, n)
				}
			}
		}
		if n := testing.AllocsPerRun(300, func() { dev.Stats() }); n != 0 {
			t.Errorf("%s: statistics allocate %v times", kind, n)
		}
	}
}

// A recordHook is a driver that calls recordHook.before, if that is not nil, right before each
// recording of an event.
type recordHook struct {
	driver.Driver
	before func(driver.Stream)
}

func (h *recordHook) Open(i int) (driver.Device, error) {
	d, err := h.Driver.Open(i)
	return &hookedRecords{d, h}, err
}

type hookedRecords struct {
	driver.Device
	hook *recordHook
}

func (d *hookedRecords) Record(e driver.Event, s driver.Stream) error {
	if d.hook.before != nil {
		d.hook.before(s)
	}
	return d.Device.Record(e, s)
}

// TestNearDeps checks which work a submission waits for if another queue gets more work while the
// submission records an event. The new work must not hold the submission up, although the signal
// of the new work reaches the value of one of the waits. A later submission that waits for the new
// work must run after it.
func TestNearDeps(t *testing.T) {
	const size = 1 << 20
	sim := newSim(t, simdriver.Config{Caps: &driver.Caps{}})
	hook := &recordHook{Driver: sim}
	dev := openDevice(t, hook, 0, gpu.Options{Queues: 4})
	streams, s := sim.Streams(0), semaphores(t, 6)
	own, twice, unmarked, high := dev.Queue(0), dev.Queue(1), dev.Queue(2), dev.Queue(3)
	value, first, more, near, last, end := s[0], s[1], s[2], s[3], s[4], s[5]
	big := func() *gpu.Buffer { return allocate(t, dev, size) }
	from, to, rest := big(), big(), big()

	must(t, own.Submit(gpu.Order{}, gpu.Fill(from.All(), []byte{0})))
	must(t, twice.Submit(gpu.Order{Signal: pts(first, 1)}, gpu.Fill(big().All(), []byte{1})))
	must(t, high.Submit(gpu.Order{Signal: pts(value, 10)}, gpu.Fill(big().All(), []byte{1})))
	st, other := lazily(unmarked)
	several(t, st, big(), 1)
	must(t, own.Submit(gpu.Order{Signal: pts(near, 1)}, gpu.Fill(rest.Range(0, 8), []byte{1})))
	eventually(t, "all is executed, and nobody has asked", func() bool { return sim.Counters().Devices[0].Pending == 0 })
	hooked := false
	hook.before = func(in driver.Stream) {
		if !hooked && in == streams[2] {
			hooked = true // submit here, as another goroutine might
			must(t, sim.StallStream(streams[1]))
			must(t, twice.Submit(gpu.Order{Signal: append(pts(value, 9), pts(more, 1)...)}, gpu.Fill(from.All(), []byte{1})))
		}
	}
	wait := append(append(append(pts(near, 1), pts(first, 1)...), pts(value, 8)...), pts(other, 1)...)
	must(t, own.Submit(gpu.Order{Wait: wait, Signal: pts(last, 1)}, gpu.Fill(rest.Range(0, 8), []byte{2})))
	if !hooked {
		t.Fatal("no event was put behind the work that had none")
	}
	must(t, last.Wait(minute(t), 1))
	if v, err := more.Query(); v != 0 || err != nil {
		t.Errorf("at %d, %v, while the stream that has the work is stalled", v, err)
	}
	must(t, own.Submit(gpu.Order{Wait: pts(more, 1), Signal: pts(end, 1)}, gpu.Copy(to.All(), from.All())))
	must(t, sim.ResumeStream(streams[1]))
	got := make([]byte, size)
	must(t, own.Submit(gpu.Order{Wait: pts(end, 1), Signal: pts(end, 2)}, gpu.Download(got, to.All())))
	must(t, end.Wait(minute(t), 2))
	if got[0] != 1 {
		t.Errorf("the work that waits for it has read %d", got[0])
	}
}

// TestUnmarkedDep checks that a submission waits for the work of two other queues. An event has
// been recorded behind the work of the first queue. The submission itself records an event behind
// the work of the second queue.
func TestUnmarkedDep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, simdriver.Config{Caps: &driver.Caps{}})
		dev := openDevice(t, sim, 0, gpu.Options{Queues: 3})
		s, from, to := semaphores(t, 2), allocate(t, dev, 8), allocate(t, dev, 8)
		marked, last := s[0], s[1]
		st, unmarked := lazily(dev.Queue(1))
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(marked, 1)}, gpu.Fill(allocate(t, dev, 8).All(), []byte{1})))
		must(t, sim.StallStream(sim.Streams(0)[1]))
		several(t, st, from, 1)
		must(t, dev.Queue(2).Submit(gpu.Order{Wait: append(pts(marked, 1), pts(unmarked, 1)...), Signal: pts(last, 1)}, gpu.Copy(to.All(), from.All())))
		synctest.Wait() // wait until every goroutine is blocked
		must(t, sim.ResumeStream(sim.Streams(0)[1]))
		must(t, last.Wait(minute(t), 1))
		if got := bytesOf(t, dev.Queue(2), to); got[0] != 1 {
			t.Errorf("%v was copied", got)
		}
	})
}
