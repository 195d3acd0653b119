package engine_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

const markEvery = 64

// anywhere runs a test on a driver with CUDA's capabilities, and on a driver without capabilities.
// Only the first driver can record an event again while a stream waits for the event.
func anywhere(t *testing.T, name string, f func(t *testing.T, caps driver.Caps)) {
	for kind, caps := range map[string]driver.Caps{"cuda": simdriver.CUDACaps(), "bare": {}} {
		t.Run(name+", "+kind, func(t *testing.T) {
			now := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, now) })
			f(t, caps)
		})
	}
}

// fills submits fills that raise a semaphore from one value to another, by one each. An event is
// recorded behind each fill.
func fills(t testing.TB, q *gpu.Queue, b *gpu.Buffer, s *gpu.Semaphore, from, to uint64) {
	t.Helper()
	for v := from; v < to; v++ {
		must(t, q.Submit(gpu.Order{Signal: pts(s, v+1)}, gpu.Fill(b.Range(0, 8), []byte{1})))
	}
}

// lazily makes a Stream, and returns it and its semaphore. Operation n of the Stream signals n.
// Events behind the operations are recorded on demand.
func lazily(q *gpu.Queue) (*gpu.Stream, *gpu.Semaphore) {
	st := q.NewStream()
	return st, st.Point().Semaphore
}

// several submits n fills to a Stream.
func several(t testing.TB, st *gpu.Stream, b *gpu.Buffer, n int) {
	t.Helper()
	for range n {
		must(t, st.Fill(b.Range(0, 8), []byte{1}))
	}
}

// launchOf loads the kernel with this name, and returns a launch of it.
func launchOf(t testing.TB, dev *gpu.Device, name string) gpu.Op {
	t.Helper()
	x, err := dev.Load(simdriver.Image(name))
	must(t, err)
	k, err := x.Kernel(name)
	must(t, err)
	return gpu.Launch(k, gpu.Grid{}, uint64(1))
}

// TestRecords checks how many events are recorded.
func TestRecords(t *testing.T) {
	records := func(d *simdriver.Driver) int { return int(calls(d, 0, simdriver.OpRecord)) }
	anywhere(t, "one after each submission of a queue, and one for every few of a stream", func(t *testing.T, caps driver.Caps) {
		const n = 1000
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{Events: 2 * n})
		b, s := allocate(t, dev, 1<<16), semaphores(t, 1)[0]
		data := make([]byte, 64)
		launch := launchOf(t, dev, "nothing")
		q := dev.Queue(0)
		for i := range uint64(n) {
			must(t, q.Submit(gpu.Order{Wait: pts(s, i), Signal: pts(s, i+1)}, gpu.Fill(b.All(), []byte{1})))
		}
		if got := records(d); got != n {
			t.Errorf("%d of a queue, want %d", got, n)
		}
		must(t, s.Wait(minute(t), n))
		before := records(d)
		st := q.NewStream()
		for i := range n {
			switch i % 5 {
			case 0:
				must(t, st.Fill(b.All(), []byte{1}))
			case 1:
				must(t, st.Fill(b.All(), []byte{1, 2, 3, 4, 5, 6, 7, 8}))
			case 2:
				must(t, st.Copy(b.Range(0, 1<<15), b.Range(1<<15, 1<<15)))
			case 3:
				must(t, st.Do(launch))
			default:
				must(t, st.Do(gpu.UploadCopy(b.Range(0, 64), data)))
			}
		}
		if got := records(d) - before; got != n/markEvery {
			t.Errorf("%d of a stream, want %d", got, n/markEvery)
		}
		must(t, st.Wait(minute(t)))
		if got := records(d) - before; got > n/markEvery+1 {
			t.Errorf("%d events while a goroutine waits", got)
		}
		must(t, dev.Close())
		if st := dev.Stats(); st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
	})
	t.Run("memory of a pool", func(t *testing.T) {
		const n = 320
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{Events: 6 * n})
		st, q := dev.Queue(0).NewStream(), dev.Queue(0)
		for range n {
			m, err := st.Alloc(nil, 1<<20)
			must(t, err)
			must(t, st.Fill(m.Range(0, 4096), []byte{1}))
			must(t, st.Free(m))
		}
		if got := records(d); got != 3*n/markEvery {
			t.Errorf("%d of a stream, want %d", got, 3*n/markEvery)
		}
		must(t, st.Wait(minute(t)))
		before := records(d)
		for range n {
			must(t, q.Submit(gpu.Order{}, gpu.Free(alloca(t, q, gpu.Order{}, nil, 1<<20))))
		}
		if got := records(d) - before; got != 2*n/markEvery {
			t.Errorf("%d without signals, want %d", got, 2*n/markEvery)
		}
	})
	anywhere(t, "one before work that may wait for others, and none before other work", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps, Devices: 2})
		dev, other := openDevice(t, d, 0, gpu.Options{Queues: 2, Events: 256}), openDevice(t, d, 1, gpu.Options{})
		b, far, s := allocate(t, dev, 1<<20), allocate(t, other, 64), semaphores(t, 1)[0]
		launch := launchOf(t, dev, "nothing")
		q := dev.Queue(0)
		st := q.NewStream()
		d.StallDevice(0)
		defer d.ResumeDevice(0)
		fills(t, dev.Queue(1), allocate(t, dev, 8), s, 0, 1)
		for name, x := range map[string]struct {
			op   gpu.Op
			want int
		}{
			"launch":           {launch, 0},
			"large fill":       {gpu.Fill(b.All(), []byte{1}), 0},
			"large copy":       {gpu.Copy(b.Range(0, 1<<17), b.Range(1<<17, 1<<17)), 0},
			"large update":     {gpu.UploadCopy(b.Range(0, 1<<17), make([]byte, 1<<17)), 0},
			"download":         {gpu.Download(make([]byte, 8), b.Range(0, 8)), 1}, // recorded behind the download
			"another's memory": {gpu.Copy(far.Range(0, 8), b.Range(0, 8)), 1},
			"wait":             {gpu.Fill(b.Range(0, 8), []byte{1}), 1},
		} {
			must(t, st.Fill(b.Range(0, 8), []byte{1}))
			st.Point()
			before := records(d)
			several(t, st, b, 2)
			if n := records(d) - before; n != 0 {
				t.Errorf("%s: %d behind fills", name, n)
			}
			if name == "wait" {
				must(t, st.After(s.At(1)))
			}
			must(t, st.Do(x.op))
			if n := records(d) - before; n != x.want {
				t.Errorf("%s: %d, want %d", name, n, x.want)
			}
			if name == "wait" { // more work on queue 1, behind the work for which the Stream waits
				fills(t, dev.Queue(1), allocate(t, dev, 8), s, 1, 2)
			}
		}
	})
	t.Run("one before memory for which the driver may make the stream wait", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 1)[0]
		b, q := allocate(t, dev, 64), dev.Queue(0)
		m := alloca(t, q, gpu.Order{Signal: pts(s, 1)}, nil, 64)
		must(t, dev.Queue(1).Submit(order(s, 1, s, 2), gpu.Free(m)))
		st := q.NewStream()
		before := records(d)
		several(t, st, b, 1)
		if n := records(d) - before; n != 0 {
			t.Errorf("%d behind a fill", n)
		}
		x, err := st.Alloc(nil, 64)
		must(t, err)
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(x)))
		if n := records(d) - before; n != 1 {
			t.Errorf("%d, want 1", n)
		}
		must(t, st.Wait(minute(t)))
		must(t, s.Wait(minute(t), 2))
	})
}

// TestNotHeldUp checks that a wait for work is not held up by later work of the same native stream,
// such as a kernel that does not end.
func TestNotHeldUp(t *testing.T) {
	waits := map[string]gpu.Options{"usual": {}, "parked": {Spin: -1}, "parked, without haste": {Spin: -1, Poll: -1}, "spin": {Spin: time.Minute}}
	for name, o := range waits {
		anywhere(t, "by a kernel, "+name, func(t *testing.T, caps driver.Caps) {
			end := make(chan struct{})
			d := simdriver.New(simdriver.Config{Caps: &caps, Kernels: map[string]simdriver.Kernel{"wait": simdriver.MustKernel(func(*simdriver.Grid, uint64) { <-end })}})
			dev := openDevice(t, d, 0, o)
			b, s, last := allocate(t, dev, 64), semaphores(t, 1)[0], semaphores(t, 1)[0]
			fills(t, dev.Queue(0), b, s, 0, 3)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(last, 1)}, launchOf(t, dev, "wait")))
			fills(t, dev.Queue(0), b, s, 3, 6)
			must(t, s.Wait(minute(t), 2))
			must(t, s.Wait(minute(t), 3))
			if v, err := s.Query(); v != 3 || err != nil {
				t.Errorf("at %d, %v", v, err)
			}
			close(end)
			must(t, last.Wait(minute(t), 1))
			must(t, s.Wait(minute(t), 6))
		})
		anywhere(t, "by a kernel behind a stream's point, "+name, func(t *testing.T, caps driver.Caps) {
			end := make(chan struct{})
			d := simdriver.New(simdriver.Config{Caps: &caps, Kernels: map[string]simdriver.Kernel{"wait": simdriver.MustKernel(func(*simdriver.Grid, uint64) { <-end })}})
			dev := openDevice(t, d, 0, o)
			st, b := dev.Queue(0).NewStream(), allocate(t, dev, 64)
			several(t, st, b, 3)
			p := st.Point()
			must(t, st.Do(launchOf(t, dev, "wait")))
			must(t, p.Semaphore.Wait(minute(t), p.Value))
			close(end)
			must(t, st.Wait(minute(t)))
		})
		anywhere(t, "by another stream, "+name, func(t *testing.T, caps driver.Caps) {
			d := newSim(t, simdriver.Config{Caps: &caps})
			o.Queues = 2
			dev := openDevice(t, d, 0, o)
			b, s := allocate(t, dev, 64), semaphores(t, 3)
			d.StallStream(d.Streams(0)[1])
			fills(t, dev.Queue(1), allocate(t, dev, 64), s[1], 0, 2)
			fills(t, dev.Queue(0), b, s[0], 0, 3)
			must(t, dev.Queue(0).Submit(order(s[1], 1, s[2], 1), gpu.Fill(b.Range(8, 8), []byte{1})))
			fills(t, dev.Queue(0), b, s[0], 3, 5)
			must(t, s[0].Wait(minute(t), 3))
			if v, err := s[0].Query(); v != 3 || err != nil {
				t.Errorf("at %d, %v", v, err)
			}
			d.ResumeStream(d.Streams(0)[1])
			must(t, s[0].Wait(minute(t), 5))
		})
	}
	for name, o := range waits {
		anywhere(t, "in the middle, "+name, func(t *testing.T, caps driver.Caps) {
			d := newSim(t, simdriver.Config{Caps: &caps})
			dev := openDevice(t, d, 0, o)
			b := allocate(t, dev, 64)
			st, s := lazily(dev.Queue(0))
			d.StallDevice(0)
			var wg sync.WaitGroup
			for v := range uint64(30) {
				several(t, st, b, 1)
				wg.Go(func() {
					if err := s.Wait(minute(t), v+1); err != nil {
						t.Error(err)
					}
				})
			}
			told := make(chan error, 1)
			// The work that signals 31 is not submitted yet.
			s.OnReached(31, func(err error) { told <- err })
			several(t, st, b, 1)
			d.ResumeDevice(0)
			must(t, <-told)
			wg.Wait()
		})
	}
}

// TestMarkAcross checks that queues wait for work of other queues, also if no event has been
// recorded behind that work yet.
func TestMarkAcross(t *testing.T) {
	for _, devices := range []int{1, 2} {
		for _, first := range []string{"the work", "who waits"} {
			anywhere(t, fmt.Sprintf("%d devices, first %s", devices, first), func(t *testing.T, caps driver.Caps) {
				d := newSim(t, simdriver.Config{Caps: &caps, Devices: 2})
				devs := []*gpu.Device{openDevice(t, d, 0, gpu.Options{Queues: 2, Events: 1}), openDevice(t, d, 1, gpu.Options{Events: 1})}
				p, c := devs[0].Queue(0), devs[0].Queue(1)
				if devices == 2 {
					c = devs[1].Queue(0)
				}
				a, b := allocate(t, p.Device(), 64), allocate(t, c.Device(), 64)
				x, host := semaphores(t, 1)[0], semaphores(t, 1)[0]
				st, s := lazily(p)
				for i := range uint64(40) {
					d.StallStream(d.Streams(0)[0])
					produce := func() { several(t, st, a, 3) }
					consume := func() {
						must(t, c.Submit(order(s, 3*i+1, x, 2*i+1), gpu.Fill(b.All(), []byte{1})))
						must(t, c.Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: 3*i + 3}, {Semaphore: host, Value: i}}, Signal: pts(x, 2*i+2)}, gpu.Fill(b.All(), []byte{1})))
					}
					if first == "the work" {
						produce()
						consume()
					} else {
						consume()
						produce()
					}
					eventually(t, "all is issued", func() bool { return devs[0].Stats().Parked+devs[1].Stats().Parked == 0 }, devs[0], devs[1])
					if v, err := x.Query(); v != 2*i || err != nil {
						t.Fatalf("at %d, %v, and %d is done", v, err, i)
					}
					d.ResumeStream(d.Streams(0)[0])
					must(t, x.Wait(minute(t), 2*i+2))
					if v := func() uint64 { v, _ := s.Query(); return v }(); v != 3*i+3 {
						t.Fatalf("waiting work is done before the work that it waits for, at %d", v)
					}
					must(t, host.Signal(i+1))
				}
				for _, dev := range devs {
					if st := dev.Stats(); st.InFlight != 0 {
						t.Errorf("%+v", st)
					}
				}
			})
		}
	}
	anywhere(t, "round and round", func(t *testing.T, caps driver.Caps) {
		const n = 500
		d := newSim(t, simdriver.Config{Caps: &caps, Devices: 2})
		var queues []*gpu.Queue
		for i := range 2 {
			dev := openDevice(t, d, i, gpu.Options{Queues: 2})
			queues = append(queues, dev.Queue(0), dev.Queue(1))
		}
		b, s := allocate(t, queues[0].Device(), 64), semaphores(t, len(queues))
		far := allocate(t, queues[2].Device(), 64)
		var wg sync.WaitGroup
		for i, q := range queues { // each queue waits for the queue before it, and the first queue for the last
			mine := b
			if i >= 2 {
				mine = far
			}
			before := s[(i+len(s)-1)%len(s)]
			wg.Go(func() {
				for v := range uint64(n) {
					at := v
					if i == 0 && v > 0 {
						at = v - 1
					}
					if err := q.Submit(order(before, at, s[i], v+1), gpu.Fill(mine.Range(uint64(8*i), 8), []byte{1})); err != nil {
						t.Error(err)
					}
				}
			})
		}
		ctx := minute(t)
		for i := range s {
			must(t, s[i].Wait(ctx, n))
		}
		wg.Wait()
	})
}

// TestMarkEnds checks Close and the loss of devices if no event is recorded behind their last work.
func TestMarkEnds(t *testing.T) {
	anywhere(t, "B85 Close waits for it", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		d.StallDevice(0)
		var s [2]*gpu.Semaphore
		for i := range s {
			var st *gpu.Stream
			st, s[i] = lazily(dev.Queue(i))
			several(t, st, allocate(t, dev, 64), 13)
		}
		closed := make(chan error, 1)
		go func() { closed <- dev.Close() }()
		eventually(t, "closing has begun", func() bool { return dev.Queue(0).Flush() != nil })
		d.ResumeDevice(0)
		must(t, <-closed)
		for i := range s {
			if v, err := s[i].Query(); v != 13 || err != nil {
				t.Errorf("at %d, %v", v, err)
			}
		}
	})
	anywhere(t, "B85 Close of a device that others wait for", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps, Devices: 2})
		dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		b, c, s := allocate(t, dev, 64), allocate(t, other, 64), semaphores(t, 2)
		d.StallDevice(1)
		st, first := lazily(dev.Queue(0))
		several(t, st, b, 3)
		must(t, other.Queue(0).Submit(order(first, 2, s[1], 1), gpu.Fill(c.All(), []byte{1})))
		fills(t, other.Queue(0), c, s[1], 1, 3)
		closed := make(chan error, 1)
		go func() { closed <- dev.Close() }()
		eventually(t, "closing has begun", func() bool { return dev.Queue(0).Flush() != nil })
		d.ResumeDevice(1)
		must(t, <-closed)
		must(t, s[1].Wait(minute(t), 3))
	})
	anywhere(t, "B81 a lost device fails it", func(t *testing.T, caps driver.Caps) {
		for _, how := range []string{"somebody waits", "nobody waits", "another one waits"} {
			// Do not use newSim: its check for leaks fails if Close leaves a stream to the driver.
			d := simdriver.New(simdriver.Config{Caps: &caps, Devices: 2})
			dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
			b, c, s := allocate(t, dev, 64), allocate(t, other, 64), semaphores(t, 3)
			d.StallDevice(0)
			st, first := lazily(dev.Queue(0))
			several(t, st, b, 3)
			s[0] = first
			if how == "another one waits" {
				must(t, other.Queue(0).Submit(order(s[0], 2, s[1], 1), gpu.Fill(c.All(), []byte{1})))
			}
			d.LoseDevice(0, nil)
			if how == "nobody waits" {
				if _, err := dev.Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
					t.Errorf("%s: %v", how, err)
				}
				must(t, other.Queue(0).Submit(order(s[0], 2, s[1], 1), gpu.Fill(c.All(), []byte{1})))
			}
			for i, s := range s[:2] {
				if err := s.Wait(minute(t), 1); i == 1 && how == "somebody waits" {
					t.Errorf("%s: %v", how, err)
				} else if !errors.Is(err, driver.ErrLost) {
					t.Errorf("%s, semaphore %d: %v", how, i, err)
				}
				if how == "somebody waits" {
					break
				}
			}
			if how == "another one waits" { // the device that waits for the lost one is lost too
				err := other.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(c.All(), []byte{1}))
				if !errors.Is(err, driver.ErrLost) {
					t.Error(err)
				}
				continue
			}
			fills(t, other.Queue(0), c, s[2], 0, 3)
			must(t, s[2].Wait(minute(t), 3))
		}
	})
}

// TestMarkFaults checks what fails if the driver cannot record an event behind earlier work of a
// Stream.
func TestMarkFaults(t *testing.T) {
	broken := errors.New("no more marks")
	setup := func(t *testing.T, caps driver.Caps) (*simdriver.Driver, *gpu.Device, *gpu.Buffer, []*gpu.Semaphore) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2, Spin: -1})
		b, s := allocate(t, dev, 64), semaphores(t, 3)
		d.StallDevice(0)
		st, first := lazily(dev.Queue(0))
		several(t, st, b, 3)
		s[0] = first
		return d, dev, b, s
	}
	anywhere(t, "B80 before a refused operation that may block the stream", func(t *testing.T, caps driver.Caps) {
		d, dev, b, s := setup(t, caps)
		w := semaphores(t, 1)[0]
		fills(t, dev.Queue(1), allocate(t, dev, 64), w, 0, 1)
		before := calls(d, 0, simdriver.OpFill)
		d.Inject(simdriver.Fault{Op: simdriver.OpRecord, N: 1, Err: broken})
		must(t, dev.Queue(0).Submit(order(w, 1, s[1], 1), gpu.Fill(b.Range(8, 8), []byte{1})))
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
		if calls(d, 0, simdriver.OpFill) != before {
			t.Errorf("the stream has got it")
		}
		must(t, dev.Queue(0).Submit(order(w, 1, s[2], 1), gpu.Fill(b.Range(8, 8), []byte{1})))
		d.ResumeDevice(0)
		must(t, s[0].Wait(minute(t), 3))
		must(t, s[2].Wait(minute(t), 1))
	})
	anywhere(t, "B80 for another stream, whose work is refused", func(t *testing.T, caps driver.Caps) {
		d, dev, b, s := setup(t, caps)
		d.Inject(simdriver.Fault{Op: simdriver.OpRecord, N: 1, Err: broken})
		must(t, dev.Queue(1).Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.Range(8, 8), []byte{1})))
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
		must(t, dev.Queue(1).Submit(order(s[0], 1, s[2], 1), gpu.Fill(b.Range(8, 8), []byte{1})))
		d.ResumeDevice(0)
		must(t, s[2].Wait(minute(t), 1))
		must(t, s[0].Wait(minute(t), 3))
	})
	anywhere(t, "B80 for a waiter, which polls again", func(t *testing.T, caps driver.Caps) {
		d, _, _, s := setup(t, caps)
		for n := range uint64(7) {
			d.Inject(simdriver.Fault{Op: simdriver.OpRecord, N: n + 1, Err: broken})
		}
		d.ResumeDevice(0)
		must(t, s[0].Wait(minute(t), 2))
	})
	anywhere(t, "B81 repeatedly, which loses the device", func(t *testing.T, caps driver.Caps) {
		d, dev, _, s := setup(t, caps)
		d.Inject(simdriver.Fault{Op: simdriver.OpRecord, Err: broken})
		d.ResumeDevice(0)
		eventually(t, "the work is done", func() bool { return d.Counters().Devices[0].Pending == 0 })
		if err := s[0].Wait(minute(t), 2); !errors.Is(err, broken) || !errors.Is(err, driver.ErrLost) {
			t.Errorf("%v", err)
		}
		if err := dev.Queue(0).Flush(); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Flush = %v", err)
		}
	})
}

// TestForeignLaunchesOnDemand checks that the runtime does not record an event behind each launch
// of a Stream if the launches use host memory of another device.
func TestForeignLaunchesOnDemand(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
	h, err := dev.Alloc(gpu.HostMem, 64)
	must(t, err)
	x, err := other.Load(simdriver.Image("stamp"))
	must(t, err)
	k, err := x.Kernel("stamp")
	must(t, err)
	s := other.Queue(0).NewStream()
	before := calls(d, 1, simdriver.OpRecord)
	for range 60 {
		must(t, s.Do(gpu.Launch(k, gpu.Grid{}, h.All(), h.All())))
	}
	must(t, s.Wait(minute(t)))
	if n := calls(d, 1, simdriver.OpRecord) - before; n > 2 {
		t.Errorf("%d events are recorded for 60 launches", n)
	}
	must(t, other.Close())
	must(t, dev.Close())
}
