package engine_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestManyInFlight checks that submissions get new events and new pinned memory if the work in
// flight uses all that the pools had, and that all the work completes.
func TestManyInFlight(t *testing.T) {
	const n = 5000
	t.Run("B74 events", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2, Events: 2}), semaphores(t, 2)
			b := allocate(t, dev, 64)
			must(t, d.StallDevice(0)) // so that no event becomes free
			d.SetLatency(simdriver.OpNewEvent, time.Second)
			for i := range uint64(n) {
				if i == 100 {
					d.SetLatency(simdriver.OpNewEvent, 0)
				}
				must(t, dev.Queue(int(i%2)).Submit(gpu.Order{Signal: pts(s[i%2], i+1)}, gpu.Fill(b.Range(i%64, 1), []byte{byte(i)})))
			}
			synctest.Wait()
			if st := dev.Stats(); st.InFlight != n || st.Parked != 0 || st.Events.Held < n {
				t.Errorf("%+v", st)
			}
			must(t, d.ResumeDevice(0))
			must(t, s[0].Wait(minute(t), n-1))
			must(t, s[1].Wait(minute(t), n))
			if st := dev.Stats(); st.InFlight+st.Parked != 0 {
				t.Errorf("%+v", st)
			}
		})
	})
	t.Run("B74 pinned memory", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev, s := openDevice(t, d, 0, gpu.Options{StageSize: 4096}), semaphores(t, 1)[0]
			b, data := allocate(t, dev, 4096), make([][]byte, 100)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{7})))
			must(t, s.Wait(in(t, time.Minute), 1))
			must(t, d.StallDevice(0))
			d.SetLatency(simdriver.OpAlloc, time.Second)
			for i := range data {
				data[i] = make([]byte, 4096)
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, uint64(i)+2)}, gpu.Download(data[i], b.All())))
			}
			d.SetLatency(simdriver.OpAlloc, 0)
			must(t, d.ResumeDevice(0))
			must(t, s.Wait(minute(t), uint64(len(data))+1))
			for i := range data {
				if !bytes.Equal(data[i], bytes.Repeat([]byte{7}, 4096)) {
					t.Fatalf("download %d has other data", i)
				}
			}
		})
	})
}

// TestNoEventForParked checks that signals, host calls and barriers do not wait while parked fills
// find no event and the driver takes an hour to make one. The fills must complete when their events
// have been made.
func TestNoEventForParked(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2, Events: 1}), semaphores(t, 4)
		b, gate, more := allocate(t, dev, 64), s[3], semaphores(t, 4)
		d.SetLatency(simdriver.OpNewEvent, time.Hour)
		must(t, dev.Queue(1).Submit(order(gate, 1, s[0], 1), gpu.Fill(b.Range(0, 8), []byte{1})))
		for i := range more {
			must(t, dev.Queue(1).Submit(order(gate, 1, more[i], 1), gpu.Fill(b.Range(uint64(16+8*i), 8), []byte{1})))
		}
		must(t, d.StallDevice(0))
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(b.Range(8, 8), []byte{2}))) // takes the only event
		start := time.Now()
		must(t, gate.Signal(1))
		synctest.Wait()
		must(t, dev.Queue(0).Submit(order(gate, 1, s[2], 1), gpu.HostCall(func() error { return nil })))
		must(t, s[2].Wait(minute(t), 1))
		must(t, dev.Queue(0).Submit(order(s[2], 1, s[2], 2), gpu.Barrier()))
		must(t, s[2].Wait(minute(t), 2))
		if time.Since(start) > 0 {
			t.Error("something has waited for the event")
		}
		must(t, d.ResumeDevice(0))
		must(t, s[0].Wait(in(t, 3*time.Hour), 1))
		for i := range more { // one hour is enough for all: their events are made in parallel
			must(t, more[i].Wait(in(t, 3*time.Hour), 1))
		}
		if took := time.Since(start); took < time.Hour/2 || took > 3*time.Hour/2 {
			t.Errorf("after %v", took)
		}
		d.SetLatency(simdriver.OpNewEvent, 0)
		must(t, s[1].Wait(minute(t), 1))
	})
}

// TestEmptyPoolOrder checks that submissions without waits run in the order in which they were
// submitted to their queue, although the pool of events begins with a single event.
func TestEmptyPoolOrder(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		for _, o := range []gpu.PoolOptions{{}, {Portable: true}} {
			dev, s := openDevice(t, d, 0, gpu.Options{Events: 1}), semaphores(t, 1)[0]
			p, err := dev.NewPool(o)
			must(t, err)
			q, out := dev.Queue(0), allocate(t, dev, 256)
			for i := range uint64(200) {
				m, err := testkit.AllocIn(q, gpu.Order{}, p, 1<<12)
				must(t, err)
				must(t, q.Submit(gpu.Order{}, gpu.Fill(m.All(), []byte{byte(i)})))
				must(t, q.Submit(gpu.Order{Signal: pts(s, i+1)}, gpu.Copy(out.Range(i, 1), m.Range(100, 1))))
				must(t, q.Submit(gpu.Order{}, gpu.Free(m)))
			}
			must(t, s.Wait(in(t, time.Minute), 200))
			for i, x := range bytesOf(t, q, out)[:200] {
				if x != byte(i) {
					t.Fatalf("byte %d is %d", i, x)
				}
			}
			must(t, p.Close())
			must(t, dev.Close())
		}
	})
}

// TestEmptyPoolFails checks that a download fails with the driver's error if the driver cannot make
// an event or pinned memory for it, and that later work succeeds.
func TestEmptyPoolFails(t *testing.T) {
	for _, x := range []struct {
		name string
		op   simdriver.Op
	}{{"events", simdriver.OpNewEvent}, {"pinned memory", simdriver.OpAlloc}} {
		t.Run(x.name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				const n = 200
				dev := openDevice(t, d, 0, gpu.Options{Events: 8})
				b, s := allocate(t, dev, 64), semaphores(t, n)
				must(t, d.StallDevice(0))
				fault, down := d.Inject(simdriver.Fault{Op: x.op, Device: 0, OOM: true}), make([]byte, 64)
				failed := 0
				for i := range n {
					err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s[i], 1)}, gpu.Download(down, b.All()))
					if x.op == simdriver.OpAlloc && errors.Is(err, driver.ErrOutOfMemory) {
						// The call was refused, so nothing signals s[i].
						s[i].Fail(err)
						continue
					}
					must(t, err)
				}
				synctest.Wait()
				if st := dev.Stats(); st.Parked != 0 || x.op == simdriver.OpAlloc && st.InFlight != 0 {
					t.Errorf("%d are in flight, and %d parked", st.InFlight, st.Parked)
				}
				fault.Remove()
				must(t, d.ResumeDevice(0))
				for i := range n {
					switch err := s[i].Wait(in(t, time.Minute), 1); {
					case errors.Is(err, driver.ErrOutOfMemory):
						failed++
					case err != nil:
						t.Fatal(err)
					}
				}
				if failed < n-16 {
					t.Errorf("%d have failed", failed)
				}
				bytesOf(t, dev.Queue(0), b)
				must(t, dev.Close())
			})
		})
	}
}

// TestEmptyPoolEnds loses or closes a device while the driver takes a minute to make an event, and
// most calls of Submit wait for an event. The test checks that all these calls return, and that the
// signals of all submissions fail.
func TestEmptyPoolEnds(t *testing.T) {
	for name, end := range map[string]func(d *simdriver.Driver, dev *gpu.Device) error{
		"lost": func(d *simdriver.Driver, dev *gpu.Device) error {
			d.LoseDevice(0, nil)
			return driver.ErrLost
		},
		"closed": func(d *simdriver.Driver, dev *gpu.Device) error {
			dev.Close()
			return gpu.ErrClosed
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
				dev := openDevice(t, d, 0, gpu.Options{Events: 4})
				b, s := allocate(t, dev, 64), semaphores(t, 100)
				must(t, d.StallDevice(0))
				d.SetLatency(simdriver.OpNewEvent, time.Minute)
				var all sync.WaitGroup
				for i := range s {
					all.Go(func() {
						if err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s[i], 1)}, gpu.Fill(b.All(), []byte{1})); err != nil {
							s[i].Fail(err) // the device was already lost or closed
						}
					})
				}
				synctest.Wait()
				want := end(d, dev)
				for i := range s {
					if err := s[i].Wait(in(t, 100*time.Hour), 1); !errors.Is(err, want) && !errors.Is(err, driver.ErrLost) {
						t.Fatalf("fill %d: %v", i, err)
					}
				}
				all.Wait()
				if st := dev.Stats(); st.InFlight+st.Parked != 0 {
					t.Errorf("%+v", st)
				}
				d.SetLatency(simdriver.OpNewEvent, 0)
				time.Sleep(time.Hour) // in the bubble's time, so that the refiller ends
				dev.Close()
			})
		})
	}
}

// TestEmptyPoolByMany submits to two queues from four goroutines, and the pool begins with a single
// event. The test checks that all the work completes and that each goroutine's fills stay in order.
func TestEmptyPoolByMany(t *testing.T) {
	for _, set := range capabilitySets() {
		t.Run(set.Name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Caps: &set.Caps})
			dev := openDevice(t, d, 0, gpu.Options{Queues: 2, Events: 1})
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					q, b, s := dev.Queue(i), allocate(t, dev, 8), semaphores(t, 1)[0]
					const n = 2000
					for v := range uint64(n) {
						if err := q.Submit(gpu.Order{Signal: pts(s, v+1)}, gpu.Fill(b.All(), []byte{byte(v), byte(v >> 8)})); err != nil {
							t.Error(err)
							return
						}
					}
					if err := s.Wait(minute(t), n); err != nil {
						t.Error(err)
						return
					}
					data := make([]byte, 8)
					if err := errors.Join(q.Submit(order(s, n, s, n+1), gpu.Download(data, b.All())), s.Wait(minute(t), n+1)); err != nil {
						t.Error(err)
					}
					if last := (n - 1) & 0xff; data[0] != byte(last) || data[1] != byte((n-1)>>8) {
						t.Errorf("%v is there", data)
					}
				})
			}
			all.Wait()
			must(t, dev.Close())
		})
	}
}

// TestEventsForMany checks that the pool makes at most four events for each submission, if many
// goroutines find the pool empty at the same time.
func TestEventsForMany(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		const n = 100
		dev := openDevice(t, d, 0, gpu.Options{Events: 8})
		b, s := allocate(t, dev, 64), semaphores(t, n)
		must(t, d.StallDevice(0)) // so that no event becomes free
		d.SetLatency(simdriver.OpNewEvent, 100*time.Microsecond)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s[i], 1)}, gpu.Fill(b.All(), []byte{1})); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute) // meanwhile more events may be made in the background
		if made := dev.Stats().Events.Made; made > 4*n || dev.Stats().InFlight != n {
			t.Errorf("%d events for %d submissions, of which %d are in flight", made, n, dev.Stats().InFlight)
		}
		must(t, d.ResumeDevice(0))
		for i := range n {
			must(t, s[i].Wait(minute(t), 1))
		}
	})
}
