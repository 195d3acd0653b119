package gpu_test

import (
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// whole is a portable pool of which one buffer can have all.
func whole(t *testing.T, dev *gpu.Device) (p *gpu.Pool, size uint64) {
	return newPool(t, dev, gpu.PoolOptions{MaxSize: 1 << 16, InitialSize: 1 << 16, Portable: true}), 1 << 16
}

// begins checks what is at the beginning of a buffer.
func begins(t *testing.T, q *gpu.Queue, b *gpu.Buffer, want byte) {
	t.Helper()
	got, s := make([]byte, 4), semaphores(t, 1)
	must(t, q.Download(gpu.Order{Signal: pts(s[0], 1)}, got, b.Range(0, 4)))
	must(t, s[0].Wait(minute(t), 1))
	if got[0] != want {
		t.Errorf("%v, and not what was written last, which is %d", got, want)
	}
}

// through waits until a queue has done what it has been given.
func through(t *testing.T, q *gpu.Queue) {
	t.Helper()
	s := semaphores(t, 1)[0]
	must(t, q.Fill(gpu.Order{Signal: pts(s, 1)}, allocate(t, q.Device(), 64).All(), []byte{1}))
	must(t, s.Wait(minute(t), 1))
}

// TestPoolOrder uses the memory of a portable pool anew before the work is done that had it.
func TestPoolOrder(t *testing.T) {
	t.Run("B90 memory that nobody used is deallocated elsewhere", func(t *testing.T) {
		for _, lists := range []bool{false, true} {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 3)
			p, all := whole(t, dev)
			one, other := dev.Queue(0), dev.Queue(1)
			d.StallStream(d.Streams(0)[0])
			a := alloca(t, one, gpu.Order{}, p, all)
			must(t, one.Fill(gpu.Order{Signal: pts(s[0], 1)}, a.All(), []byte{1}))
			must(t, one.Dealloca(gpu.Order{}, a))
			o := gpu.Order{}
			if lists {
				o = gpu.Order{Signal: pts(s[2], 1)}
			}
			must(t, other.Dealloca(o, alloca(t, one, gpu.Order{}, p, all)))
			b := alloca(t, other, gpu.Order{}, p, all)
			must(t, other.Fill(gpu.Order{Signal: pts(s[1], 1)}, b.All(), []byte{2}))
			d.ResumeStream(d.Streams(0)[0])
			must(t, s[1].Wait(minute(t), 1))
			must(t, s[0].Wait(minute(t), 1))
			begins(t, other, b, 2)
			must(t, b.Dealloca(gpu.Order{}))
		}
	})
	t.Run("B90 memory that nobody had is deallocated elsewhere", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 2)
		p, all := whole(t, dev)
		one, other := dev.Queue(0), dev.Queue(1)
		d.StallStream(d.Streams(0)[0])
		must(t, one.Fill(gpu.Order{Signal: pts(s[0], 1)}, allocate(t, dev, 64).All(), []byte{1}))
		must(t, other.Dealloca(gpu.Order{}, alloca(t, one, gpu.Order{}, p, all)))
		b := alloca(t, other, gpu.Order{}, p, all)
		must(t, other.Fill(gpu.Order{Signal: pts(s[1], 1)}, b.All(), []byte{2}))
		must(t, s[1].Wait(minute(t), 1)) // whatever the other stream is at
		d.ResumeStream(d.Streams(0)[0])
		must(t, s[0].Wait(minute(t), 1))
		must(t, b.Dealloca(gpu.Order{}))
	})
	t.Run("B80 an allocation of which only some waits were made", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 3}), semaphores(t, 4)
		p, all := whole(t, dev)
		one, had, before, streams := dev.Queue(0), dev.Queue(1), dev.Queue(2), d.Streams(0)
		d.StallStream(streams[1])
		a := alloca(t, had, gpu.Order{}, p, all)
		must(t, had.Fill(gpu.Order{Signal: pts(s[0], 1)}, a.All(), []byte{1}))
		must(t, had.Dealloca(gpu.Order{}, a))
		d.StallStream(streams[2])
		must(t, before.Fill(gpu.Order{Signal: pts(s[1], 1)}, allocate(t, dev, 4).All(), []byte{1}))
		d.Inject(simdriver.Fault{Op: simdriver.OpStreamWait, N: 2, Err: io.ErrShortWrite})
		b := alloca(t, one, order(s[1], 1, s[2], 1), p, all)
		if err := s[2].Wait(minute(t), 1); !errors.Is(err, io.ErrShortWrite) {
			t.Fatal(err)
		}
		must(t, b.Close())
		d.ResumeStream(streams[2])
		b = alloca(t, one, gpu.Order{}, p, all)
		must(t, one.Fill(gpu.Order{Signal: pts(s[3], 1)}, b.All(), []byte{2}))
		must(t, s[1].Wait(minute(t), 1))
		if v, err := s[3].Query(); v != 0 || err != nil {
			t.Errorf("at %d, %v, and who had the memory is not done", v, err)
		}
		d.ResumeStream(streams[1])
		must(t, s[3].Wait(minute(t), 1))
		begins(t, one, b, 2)
		must(t, b.Dealloca(gpu.Order{}))
	})
	t.Run("B94 closed behind memory that was deallocated without lists", func(t *testing.T) {
		for _, close := range []bool{false, true} {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)
			p, all := whole(t, dev)
			q := dev.Queue(0)
			d.StallStream(d.Streams(0)[0])
			b := alloca(t, q, gpu.Order{}, p, all)
			must(t, q.Fill(gpu.Order{Signal: pts(s[0], 1)}, b.All(), []byte{1}))
			must(t, q.Dealloca(gpu.Order{}, b))
			if close {
				must(t, alloca(t, q, gpu.Order{}, p, all).Close())
			}
			must(t, p.Close())
			d.ResumeStream(d.Streams(0)[0])
			eventually(t, "the pool's memory is given back", func() bool { return d.Counters().Devices[0].Bytes == 0 })
		}
	})
	t.Run("B94 closed before what is deallocated with lists, and behind what is without", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 2)
		p, all := whole(t, dev)
		one, other := dev.Queue(0), dev.Queue(1)
		d.StallStream(d.Streams(0)[1])
		x, y := alloca(t, other, gpu.Order{}, p, all/2), alloca(t, one, gpu.Order{}, p, all/2)
		must(t, other.Fill(gpu.Order{Signal: pts(s[1], 1)}, x.All(), []byte{1}))
		must(t, other.Dealloca(gpu.Order{}, x))
		must(t, p.Close())
		must(t, one.Dealloca(gpu.Order{Signal: pts(s[0], 1)}, y))
		must(t, s[0].Wait(minute(t), 1))
		d.ResumeStream(d.Streams(0)[1])
		eventually(t, "the pool's memory is given back", func() bool { return d.Counters().Devices[0].Bytes == 0 })
	})
	t.Run("B97 buffers of no size are forgotten", func(t *testing.T) {
		dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
		for range 10 {
			must(t, alloca(t, dev.Queue(0), gpu.Order{}, nil, 0).Dealloca(gpu.Order{}))
		}
		if n := dev.Stats().Buffers; n != 0 {
			t.Errorf("%d buffers", n)
		}
	})
}

// stuckQueue has a queue's stream come after work of another device, which is lost by lose: the queue gets another stream then. Before,
// use may give the queue work that waits for the semaphore.
func stuckQueue(t *testing.T, use func(q *gpu.Queue, s *gpu.Semaphore)) (d *simdriver.Driver, stuck, other *gpu.Queue, lose func()) {
	d = newSim(t, simdriver.Config{Devices: 2})
	lost, dev := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Queues: 2})
	s := semaphores(t, 2)
	d.StallDevice(0)
	must(t, lost.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 1)}, allocate(t, lost, 64).All(), []byte{1}))
	stuck, other = dev.Queue(0), dev.Queue(1)
	use(stuck, s[0])
	must(t, stuck.Fill(gpu.Order{Wait: pts(s[0], 1), Signal: pts(s[1], 1)}, allocate(t, dev, 64).All(), []byte{1}))
	return d, stuck, other, func() {
		d.LoseDevice(0, nil)
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Fatal(err)
		}
	}
}

// handedOn has memory that such a queue has used go to another buffer, all in the stream that will be given up: b, which nobody uses,
// is all of the pool.
func handedOn(t *testing.T) (p *gpu.Pool, b *gpu.Buffer, stuck, other *gpu.Queue, lose func()) {
	_, stuck, other, lose = stuckQueue(t, func(q *gpu.Queue, s *gpu.Semaphore) {
		var all uint64
		p, all = whole(t, q.Device())
		a := alloca(t, q, gpu.Order{}, p, all)
		must(t, q.Fill(gpu.Order{Wait: pts(s, 1)}, a.All(), []byte{1}))
		must(t, q.Dealloca(gpu.Order{}, a))
		b = alloca(t, q, gpu.Order{}, p, all)
	})
	return p, b, stuck, other, lose
}

// full has a pool that [whole] made say that it has nothing.
func full(t *testing.T, q *gpu.Queue, p *gpu.Pool) {
	t.Helper()
	s := semaphores(t, 1)[0]
	b := alloca(t, q, gpu.Order{Signal: pts(s, 1)}, p, 1<<16)
	if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("memory at %#x is given out again: %v", b.Ptr(), err)
	}
}

// TestPoolReplaced has a queue's stream replaced, while what it was given before may still come to the memory of a pool.
func TestPoolReplaced(t *testing.T) {
	for name, native := range map[string]bool{"portable": false, "driver's": true} {
		t.Run("B125 deallocated afterwards, from a "+name+" pool", func(t *testing.T) {
			var p *gpu.Pool
			var b *gpu.Buffer
			_, stuck, _, lose := stuckQueue(t, func(q *gpu.Queue, s *gpu.Semaphore) {
				p = newPool(t, q.Device(), gpu.PoolOptions{MaxSize: 1 << 21, InitialSize: 1 << 21, Portable: !native})
				b = alloca(t, q, gpu.Order{}, p, 1<<21)
				must(t, q.Fill(gpu.Order{Wait: pts(s, 1)}, b.All(), []byte{1}))
			})
			lose()
			must(t, stuck.Dealloca(gpu.Order{}, b))
			if err := stuck.Dealloca(gpu.Order{}, b); !errors.Is(err, gpu.ErrUnallocated) {
				t.Errorf("twice: %v", err)
			}
			s := semaphores(t, 1)
			if b, err := stuck.Alloca(gpu.Order{Signal: pts(s[0], 1)}, p, 1<<21); err != nil {
				t.Error(err)
			} else if err := s[0].Wait(minute(t), 1); !errors.Is(err, driver.ErrOutOfMemory) {
				t.Errorf("memory at %#x is given out again: %v", b.Ptr(), err)
			}
			must(t, b.Close())
		})
	}
	t.Run("B125 deallocated afterwards, and closed meanwhile", func(t *testing.T) {
		var p *gpu.Pool
		var b *gpu.Buffer
		_, stuck, _, lose := stuckQueue(t, func(q *gpu.Queue, s *gpu.Semaphore) {
			var all uint64
			p, all = whole(t, q.Device())
			b = alloca(t, q, gpu.Order{}, p, all)
			must(t, q.Fill(gpu.Order{Wait: pts(s, 1)}, b.All(), []byte{1}))
		})
		lose()
		s := semaphores(t, 2)
		must(t, stuck.Dealloca(order(s[0], 1, s[1], 1), b))
		must(t, b.Close())
		must(t, s[0].Signal(1))
		must(t, s[1].Wait(minute(t), 1))
		full(t, stuck, p)
	})
	t.Run("B125 deallocated afterwards, on any queue", func(t *testing.T) {
		for i, o := range []gpu.Order{{}, {Signal: pts(semaphores(t, 1)[0], 1)}, {Signal: pts(semaphores(t, 1)[0], 1)}} {
			p, b, stuck, other, lose := handedOn(t)
			lose()
			q := []*gpu.Queue{other, other, stuck}[i]
			must(t, q.Dealloca(o, b))
			for _, p := range o.Signal {
				must(t, p.Semaphore.Wait(minute(t), 1))
			}
			if err := q.Dealloca(gpu.Order{}, b); !errors.Is(err, gpu.ErrUnallocated) {
				t.Errorf("twice: %v", err)
			}
			full(t, other, p)
		}
	})
	t.Run("B125 used by a group that was aborted", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		g, chans := openChannels(t, d, 1, gpu.ChannelOptions{})
		dev, s := g.Devices()[0], semaphores(t, 2)
		p, all := whole(t, dev)
		q, streams := dev.Queue(0), d.Streams(0)
		b := alloca(t, q, gpu.Order{Signal: pts(s[0], 1)}, p, all)
		must(t, s[0].Wait(minute(t), 1))
		must(t, d.StallStream(streams[len(streams)-1]))
		must(t, chans[0].Submit(t.Context(), gpu.Order{Signal: pts(s[1], 1)}, gpu.SendReceive(b.Range(0, 64), b.Range(0, 64), gpu.Float32, -1, -1)))
		eventually(t, "it is issued", func() bool { return dev.Stats().InFlight == 1 })
		chans[0].Abort(nil)
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, gpu.ErrAborted) {
			t.Fatal(err)
		}
		must(t, q.Dealloca(gpu.Order{}, b))
		full(t, q, p)
		must(t, d.ResumeStream(streams[len(streams)-1]))
	})
	t.Run("B125 given out and got back before anything else", func(t *testing.T) {
		for _, close := range []bool{false, true} {
			var p *gpu.Pool
			_, stuck, other, lose := stuckQueue(t, func(q *gpu.Queue, s *gpu.Semaphore) { p, _ = whole(t, q.Device()) })
			lose()
			b, s := alloca(t, stuck, gpu.Order{}, p, 1<<16), semaphores(t, 1)
			if close {
				must(t, b.Close())
				through(t, stuck) // the alloca, too, if it came while the stream was being replaced
				unused(t, p)
			} else {
				must(t, stuck.Dealloca(gpu.Order{}, b))
			}
			b = alloca(t, other, gpu.Order{Signal: pts(s[0], 1)}, p, 1<<16)
			must(t, s[0].Wait(minute(t), 1))
			must(t, b.Dealloca(gpu.Order{}))
		}
	})
	t.Run("B125 while memory is looked for", func(t *testing.T) {
		var p *gpu.Pool
		var b *gpu.Buffer
		d, stuck, _, lose := stuckQueue(t, func(q *gpu.Queue, s *gpu.Semaphore) {
			p = newPool(t, q.Device(), gpu.PoolOptions{MaxSize: 1 << 17, InitialSize: 1 << 16, Portable: true})
			b = alloca(t, q, gpu.Order{}, p, 1<<16)
			must(t, q.Fill(gpu.Order{Wait: pts(s, 1)}, b.All(), []byte{1}))
		})
		d.SetLatency(simdriver.OpAlloc, 300*time.Millisecond) // of which the driver has none left
		d.Inject(simdriver.Fault{Op: simdriver.OpAlloc, Device: 1, OOM: true})
		s, done := semaphores(t, 1), make(chan error)
		calls := d.Counters().Devices[1].Calls[simdriver.OpAlloc]
		go func() {
			_, err := stuck.Alloca(gpu.Order{Signal: pts(s[0], 1)}, p, 1<<16)
			done <- err
		}()
		eventually(t, "the pool asks for memory", func() bool { return d.Counters().Devices[1].Calls[simdriver.OpAlloc] > calls })
		must(t, stuck.Dealloca(gpu.Order{}, b))
		lose()
		must(t, <-done)
		if err := s[0].Wait(minute(t), 1); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("memory that work may come to which was given up is given out: %v", err)
		}
	})
}

// TestPoolMeanwhile allocates from a portable pool while something else is being given to the queue's stream.
func TestPoolMeanwhile(t *testing.T) {
	open := func(t *testing.T) (sim *simdriver.Driver, hook *recordHook, dev *gpu.Device) {
		sim = newSim(t, simdriver.Config{})
		hook = &recordHook{Driver: sim}
		return sim, hook, openDevice(t, hook, 0, gpu.Options{Queues: 2})
	}
	t.Run("B90 it does not wait for that", func(t *testing.T) {
		_, hook, dev := open(t)
		p, all := whole(t, dev)
		q, s := dev.Queue(0), semaphores(t, 1)
		to := allocate(t, dev, 64)
		var b *gpu.Buffer
		hook.before = func(driver.Stream) { b = alloca(t, q, gpu.Order{}, p, all) }
		must(t, q.Fill(gpu.Order{Signal: pts(s[0], 1)}, to.All(), []byte{1}))
		must(t, s[0].Wait(minute(t), 1))
		if b == nil || b.Ptr() == 0 {
			t.Fatal("there is no memory")
		}
		hook.before = nil
		must(t, q.Dealloca(gpu.Order{}, b))
	})
	t.Run("B90 that which is being deallocated", func(t *testing.T) {
		sim, hook, dev := open(t)
		p, all := whole(t, dev)
		one, other, s := dev.Queue(0), dev.Queue(1), semaphores(t, 4)
		streams := sim.Streams(0)
		must(t, sim.StallStream(streams[0]))
		must(t, sim.StallStream(streams[1]))
		must(t, other.Fill(gpu.Order{Signal: pts(s[3], 1)}, allocate(t, dev, 64).All(), []byte{1}))
		a := alloca(t, one, gpu.Order{}, p, all)
		must(t, one.Fill(gpu.Order{Signal: pts(s[0], 1)}, a.All(), []byte{1}))
		given := make(chan struct{})
		hook.before = func(driver.Stream) {
			if a.Ptr() != 0 {
				return
			}
			hook.before = nil
			go func() {
				b, err := one.Alloca(gpu.Order{}, p, all)
				if err == nil {
					err = other.Dealloca(gpu.Order{}, b)
				}
				if err != nil {
					t.Error(err)
				}
				close(given)
			}()
			for range 1000 {
				runtime.Gosched()
			}
		}
		must(t, one.Dealloca(order(s[3], 1, s[1], 1), a))
		if hook.before != nil {
			t.Fatal("no event was put behind the deallocation")
		}
		<-given
		c := alloca(t, other, gpu.Order{}, p, all)
		must(t, other.Fill(gpu.Order{Signal: pts(s[2], 1)}, c.All(), []byte{2}))
		must(t, sim.ResumeStream(streams[1]))
		must(t, s[3].Wait(minute(t), 1))
		must(t, sim.ResumeStream(streams[0]))
		must(t, s[2].Wait(minute(t), 1))
		begins(t, other, c, 2)
		must(t, c.Dealloca(gpu.Order{}))
	})
}
