package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// eachLimited runs a test twice: with a native pool of 64 KiB, and with a portable pool of 64 KiB.
func eachLimited(t *testing.T, name string, f func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, p *gpu.Pool)) {
	for kind, portable := range map[string]bool{"native": false, "portable": true} {
		t.Run(name+", "+kind, func(t *testing.T) {
			d := newSim(t, simdriver.Config{})
			dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
			f(t, d, dev, newPool(t, dev, gpu.PoolOptions{MaxSize: 1 << 16, Portable: portable}))
			must(t, dev.Close())
		})
	}
}

// TestCollect checks that an allocation finds memory that is unused but not free yet, because the
// work that used the memory has completed and is not retired, or because the reclaimer has not
// freed the memory. An allocation must not find memory that work still uses.
func TestCollect(t *testing.T) {
	for name, bare := range map[string]bool{"without lists": true, "with a signal": false} {
		take := func(t *testing.T, q *gpu.Queue, p *gpu.Pool) *gpu.Buffer {
			t.Helper()
			if bare && !p.Options().Portable { // the call itself returns a failure
				return alloca(t, q, gpu.Order{}, p, 1<<16)
			}
			s := semaphores(t, 1)[0]
			b := alloca(t, q, gpu.Order{Signal: pts(s, 1)}, p, 1<<16)
			must(t, s.Wait(minute(t), 1))
			return b
		}
		eachLimited(t, "memory freed after failed work, "+name, func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, p *gpu.Pool) {
			q, s := dev.Queue(0), semaphores(t, 2)
			stream := d.Streams(0)[0]
			b := take(t, q, p)
			must(t, d.StallStream(stream))
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 2})
			must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1, 1, 1, 1, 3, 3, 3, 3})))
			if err := s[0].Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
				t.Fatal(err)
			}
			must(t, q.Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Free(b)))
			must(t, d.ResumeStream(stream))
			eventually(t, "the stream has done all", func() bool { return d.Counters().Devices[0].Pending == 0 }, dev)
			must(t, dev.Queue(1).Submit(gpu.Order{}, gpu.Free(take(t, dev.Queue(1), p))))
		})
		// elsewhere allocates a pool's memory on queue 0 again and again. In between, work of queue
		// 0 uses the memory, and the parameter on is the queue that frees the memory. The work has
		// completed just before the next allocation.
		elsewhere := func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, on *gpu.Queue, p *gpu.Pool) {
			t.Helper()
			q, s := dev.Queue(0), semaphores(t, 1)[0]
			stream := d.Streams(0)[0]
			for i := range uint64(40) {
				b := take(t, q, p)
				must(t, d.StallStream(stream))
				must(t, q.Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})))
				must(t, on.Submit(gpu.Order{Signal: pts(s, i+1)}, gpu.Free(b)))
				must(t, d.ResumeStream(stream))
				eventually(t, "the stream has done all", func() bool { return d.Counters().Devices[0].Pending == 0 }, dev)
				must(t, q.Submit(gpu.Order{}, gpu.Free(take(t, q, p))))
			}
		}
		eachLimited(t, "memory whose free waits for another stream, "+name, func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, p *gpu.Pool) {
			elsewhere(t, d, dev, dev.Queue(1), p)
		})
		t.Run("memory whose dealloca another device waits with, "+name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Devices: 2})
			dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
			p := newPool(t, dev, gpu.PoolOptions{MaxSize: 1 << 16, Portable: true})
			elsewhere(t, d, dev, other.Queue(0), p)
			must(t, other.Close())
			must(t, dev.Close())
		})
		eachLimited(t, "memory of a buffer that has just been closed, "+name, func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, p *gpu.Pool) {
			q, s := dev.Queue(0), semaphores(t, 1)[0]
			for i := range uint64(40) {
				b := take(t, q, p)
				must(t, q.Submit(gpu.Order{Signal: pts(s, i+1)}, gpu.Fill(b.All(), []byte{1})))
				must(t, s.Wait(minute(t), i+1))
				must(t, b.Close())
			}
		})
	}
	eachLimited(t, "after a wait of the stream", func(t *testing.T, d *simdriver.Driver, dev *gpu.Device, p *gpu.Pool) {
		s, other := semaphores(t, 2), allocate(t, dev, 1<<20)
		for i := range uint64(40) {
			must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[0], i+1)}, gpu.Fill(other.All(), []byte{1})))
			b := alloca(t, dev.Queue(0), order(s[0], i+1, s[1], 2*i+1), p, 1<<16)
			must(t, dev.Queue(0).Submit(order(s[1], 2*i+1, s[1], 2*i+2), gpu.Fill(b.All(), []byte{1})))
			must(t, s[1].Wait(minute(t), 2*i+2))
			must(t, b.Close())
		}
	})
	t.Run("all memory of a device", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Memory: 1 << 20})
		dev := openDevice(t, d, 0, gpu.Options{})
		s := semaphores(t, 1)[0]
		for i := range uint64(40) {
			b := allocate(t, dev, 1<<20)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, i+1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, s.Wait(minute(t), i+1))
			must(t, b.Close())
		}
	})
	for _, set := range capabilitySets() {
		t.Run("work without signals, "+set.Name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Memory: 1 << 20, Caps: &set.Caps})
			dev := openDevice(t, d, 0, gpu.Options{})
			b := allocate(t, dev, 1<<20)
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})))
			must(t, b.Close())
			inFlight(t, dev, 1)
			eventually(t, "the stream has done all", func() bool { return d.Counters().Devices[0].Pending == 0 }, dev)
			must(t, allocate(t, dev, 1<<20).Close())
			must(t, dev.Close())
		})
	}
	t.Run("much has completed, and the last work has not", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Memory: 101 << 17})
		dev := openDevice(t, d, 0, gpu.Options{Events: 256})
		use := func() *gpu.Buffer {
			b := allocate(t, dev, 1<<17)
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})))
			return b
		}
		var done []*gpu.Buffer
		for range 100 {
			done = append(done, use())
		}
		eventually(t, "the stream has done all", func() bool { return d.Counters().Devices[0].Pending == 0 }, dev)
		must(t, d.StallStream(d.Streams(0)[0]))
		use()
		for _, b := range done {
			must(t, b.Close())
		}
		allocate(t, dev, 100<<17)
		must(t, d.ResumeStream(d.Streams(0)[0]))
		must(t, dev.Close())
	})
	t.Run("memory that is used is missing", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Memory: 1 << 20})
		dev := openDevice(t, d, 0, gpu.Options{})
		b := allocate(t, dev, 1<<19)
		d.StallDevice(0)
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})))
		must(t, b.Close())
		if _, err := dev.Alloc(gpu.DeviceMem, 1<<20); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Error(err)
		}
		d.ResumeDevice(0)
	})
}

// TestCollectTrims checks that an allocation from a pool or from the device finds memory that
// another pool has cached. If the memory is in use instead, the error must say who holds it.
func TestCollectTrims(t *testing.T) {
	for kind, portable := range map[string]bool{"native": false, "portable": true} {
		t.Run("B180 pools release cached memory before an allocation fails, "+kind, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Memory: 4 << 20})
			dev := openDevice(t, d, 0, gpu.Options{})
			q, s, v := dev.Queue(0), semaphores(t, 1)[0], uint64(0)
			take := func(p *gpu.Pool) {
				b := alloca(t, q, gpu.Order{Signal: pts(s, v+1)}, p, 3<<20)
				must(t, s.Wait(minute(t), v+1))
				must(t, q.Submit(gpu.Order{Signal: pts(s, v+2)}, gpu.Free(b)))
				must(t, s.Wait(minute(t), v+2))
				v += 2
			}
			a, b := newPool(t, dev, gpu.PoolOptions{Portable: portable}), newPool(t, dev, gpu.PoolOptions{Portable: portable})
			take(a)
			take(b) // memory that a has cached
			must(t, allocate(t, dev, 3<<20).Close())
			take(a)
			must(t, dev.Close())
		})
		t.Run("B182 an allocation that fails says who holds the memory, "+kind, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Memory: 4 << 20})
			dev := openDevice(t, d, 0, gpu.Options{})
			p := newPool(t, dev, gpu.PoolOptions{Portable: portable, MaxSize: 2 << 20})
			s := semaphores(t, 2)
			alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, p, 2<<20)
			must(t, s[0].Wait(minute(t), 1))
			allocate(t, dev, 1<<20)
			alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[1], 1)}, p, 1<<20)
			_, err := dev.Alloc(gpu.DeviceMem, 3<<20)
			for _, err := range []error{err, s[1].Wait(minute(t), 1)} {
				if !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "buffers hold 1048576 bytes, a pool of at most 2097152 bytes holds 2097152; free some") {
					t.Error(err)
				}
			}
			must(t, dev.Close())
		})
	}
}

// TestCollectsForeignDealloca frees memory on a queue of another device, and does not wait for that
// free. An allocation that finds no memory must poll the other device.
func TestCollectsForeignDealloca(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2, Memory: 4 << 20})
	dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
	p := newPool(t, dev, gpu.PoolOptions{Portable: true})
	s := semaphores(t, 2)
	b := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, p, 3<<20)
	must(t, s[0].Wait(minute(t), 1))
	must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Free(b)))
	x, err := dev.Alloc(gpu.DeviceMem, 3<<20)
	must(t, err)
	must(t, x.Close())
	must(t, other.Close())
	must(t, dev.Close())
}
