package gpu_test

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
)

// TestHeldRefill has the driver hold who makes events, or pins memory: submissions return all the same, and are done when there is
// what they lack.
func TestHeldRefill(t *testing.T) {
	const n = 5000
	t.Run("B74 events", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 2)
			b := allocate(t, dev, 64)
			must(t, d.StallDevice(0)) // so that no event comes back
			d.SetLatency(simdriver.OpNewEvent, time.Hour)
			start := time.Now()
			for i := range uint64(n) {
				must(t, dev.Queue(int(i%2)).Fill(gpu.Order{Signal: pts(s[i%2], i+1)}, b.Range(i%64, 1), []byte{byte(i)}))
			}
			if time.Since(start) > 0 {
				t.Error("a submission has waited for an event")
			}
			synctest.Wait()
			if st := dev.Stats(); st.InFlight+st.Parked != n || st.Parked < n-2*32 || len(dev.Parked()) != st.Parked {
				t.Errorf("%d are in flight, %d parked, and %d listed", st.InFlight, st.Parked, len(dev.Parked()))
			}
			d.SetLatency(simdriver.OpNewEvent, 0)
			must(t, d.ResumeDevice(0))
			ctx := in(t, 100*time.Hour)
			must(t, s[0].Wait(ctx, n-1))
			must(t, s[1].Wait(ctx, n))
			if st := dev.Stats(); st.InFlight+st.Parked != 0 {
				t.Errorf("%+v", st)
			}
		})
	})
	t.Run("B74 pinned memory", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev, s := openDevice(t, d, 0, gpu.Options{StageSize: 4096}), semaphores(t, 1)[0]
			b, data := allocate(t, dev, 4096), make([][]byte, 100)
			must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s, 1)}, b.All(), []byte{7}))
			must(t, s.Wait(in(t, time.Minute), 1))
			d.SetLatency(simdriver.OpAlloc, time.Hour)
			start := time.Now()
			for i := range data {
				data[i] = make([]byte, 4096)
				must(t, dev.Queue(0).Download(gpu.Order{Signal: pts(s, uint64(i)+2)}, data[i], b.All()))
			}
			if time.Since(start) > 0 {
				t.Error("a download has waited for pinned memory")
			}
			d.SetLatency(simdriver.OpAlloc, 0)
			must(t, s.Wait(in(t, 1000*time.Hour), uint64(len(data))+1))
			for i := range data {
				if !bytes.Equal(data[i], bytes.Repeat([]byte{7}, 4096)) {
					t.Fatalf("download %d has other data", i)
				}
			}
		})
	})
}

// TestStarvedOrder has a queue's calls without lists come in their order, though for some there is no event at first.
func TestStarvedOrder(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		for _, o := range []gpu.PoolOptions{{}, {Portable: true}} {
			dev, s := openDevice(t, d, 0, gpu.Options{Events: 1}), semaphores(t, 1)[0]
			p, err := dev.NewPool(o)
			must(t, err)
			q, out := dev.Queue(0), allocate(t, dev, 256)
			for i := range uint64(200) {
				m, err := q.Alloca(gpu.Order{}, p, 1<<12)
				must(t, err)
				must(t, q.Fill(gpu.Order{}, m.All(), []byte{byte(i)}))
				must(t, q.Copy(gpu.Order{Signal: pts(s, i+1)}, out.Range(i, 1), m.Range(100, 1)))
				must(t, q.Dealloca(gpu.Order{}, m))
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

// TestStarvedFails has the refiller fail while submissions wait for it: they fail with its error, and what comes later finds events.
func TestStarvedFails(t *testing.T) {
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
				for i := range n {
					must(t, dev.Queue(0).Download(gpu.Order{Signal: pts(s[i], 1)}, down, b.All()))
				}
				synctest.Wait()
				if st := dev.Stats(); st.Parked != 0 || x.op == simdriver.OpAlloc && st.InFlight != 0 {
					t.Errorf("%d are in flight, and %d parked", st.InFlight, st.Parked)
				}
				fault.Remove()
				must(t, d.ResumeDevice(0))
				failed := 0
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

// TestStarvedEnds loses, or closes, a device while the driver holds who makes events for it: what waits for them fails.
func TestStarvedEnds(t *testing.T) {
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
				for i := range s {
					must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s[i], 1)}, b.All(), []byte{1}))
				}
				want := end(d, dev)
				for i := range s {
					if err := s[i].Wait(in(t, time.Hour), 1); !errors.Is(err, want) && !errors.Is(err, driver.ErrLost) {
						t.Fatalf("fill %d: %v", i, err)
					}
				}
				synctest.Wait() // whoever has failed the last one takes it off the backlog after that
				if st := dev.Stats(); st.InFlight+st.Parked != 0 {
					t.Errorf("%+v", st)
				}
				d.SetLatency(simdriver.OpNewEvent, 0)
				time.Sleep(time.Hour) // of the bubble: the refiller returns
				dev.Close()
			})
		})
	}
}

// TestStarvedByMany has goroutines submit to several queues without end, faster than there are events: each gets its turn, in order.
func TestStarvedByMany(t *testing.T) {
	for _, set := range capabilitySets() {
		t.Run(set.name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Caps: &set.caps})
			dev := openDevice(t, d, 0, gpu.Options{Queues: 2, Events: 1})
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					q, b, s := dev.Queue(i), allocate(t, dev, 8), semaphores(t, 1)[0]
					const n = 2000
					for v := range uint64(n) {
						if err := q.Fill(gpu.Order{Signal: pts(s, v+1)}, b.All(), []byte{byte(v), byte(v >> 8)}); err != nil {
							t.Error(err)
							return
						}
					}
					if err := s.Wait(minute(t), n); err != nil {
						t.Error(err)
						return
					}
					data := make([]byte, 8)
					if err := errors.Join(q.Download(order(s, n, s, n+1), data, b.All()), s.Wait(minute(t), n+1)); err != nil {
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
