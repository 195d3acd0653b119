package memory_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// begins checks the first byte of a buffer.
func begins(t *testing.T, q *gpu.Queue, b *gpu.Buffer, want byte) {
	t.Helper()
	got, s := make([]byte, 4), semaphores(t, 1)
	must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Download(got, b.Range(0, 4))))
	must(t, s[0].Wait(minute(t), 1))
	if got[0] != want {
		t.Errorf("%v, want %d, which was written last", got, want)
	}
}

// TestPoolOrder checks that new work on memory of a pool comes after earlier work on that memory,
// and that a closed pool releases its memory after the last free.
func TestPoolOrder(t *testing.T) {
	t.Run("B90 unused memory is freed on another queue", func(t *testing.T) {
		for _, lists := range []bool{false, true} {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 3)
			p, all := whole(t, dev)
			one, other := dev.Queue(0), dev.Queue(1)
			d.StallStream(d.Streams(0)[0])
			a := alloca(t, one, gpu.Order{}, p, all)
			must(t, one.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(a.All(), []byte{1})))
			must(t, one.Submit(gpu.Order{}, gpu.Free(a)))
			o := gpu.Order{}
			if lists {
				o = gpu.Order{Signal: pts(s[2], 1)}
			}
			must(t, other.Submit(o, gpu.Free(alloca(t, one, gpu.Order{}, p, all))))
			full(t, other, p) // the Free is parked: the stream that allocated the memory has not passed the allocation
			must(t, other.Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
			must(t, s[1].Wait(minute(t), 1)) // the queue other is not held up by the parked Free
			d.ResumeStream(d.Streams(0)[0])
			must(t, s[0].Wait(minute(t), 1))
			unused(t, p)
			b := alloca(t, other, gpu.Order{}, p, all)
			must(t, other.Submit(gpu.Order{Signal: pts(s[1], 2)}, gpu.Fill(b.All(), []byte{2})))
			must(t, s[1].Wait(minute(t), 2))
			begins(t, other, b, 2)
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
		}
	})
	t.Run("B80 an allocation after only some waits", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 3}), semaphores(t, 4)
		p, all := whole(t, dev)
		one, had, before, streams := dev.Queue(0), dev.Queue(1), dev.Queue(2), d.Streams(0)
		d.StallStream(streams[1])
		a := alloca(t, had, gpu.Order{}, p, all)
		must(t, had.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(a.All(), []byte{1})))
		must(t, had.Submit(gpu.Order{}, gpu.Free(a)))
		d.StallStream(streams[2])
		must(t, before.Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(allocate(t, dev, 4).All(), []byte{1})))
		d.Inject(simdriver.Fault{Op: simdriver.OpStreamWait, N: 2, Err: io.ErrShortWrite})
		b := alloca(t, one, order(s[1], 1, s[2], 1), p, all)
		if err := s[2].Wait(minute(t), 1); !errors.Is(err, io.ErrShortWrite) {
			t.Fatal(err)
		}
		must(t, b.Close())
		d.ResumeStream(streams[2])
		b = alloca(t, one, gpu.Order{}, p, all)
		must(t, one.Submit(gpu.Order{Signal: pts(s[3], 1)}, gpu.Fill(b.All(), []byte{2})))
		must(t, s[1].Wait(minute(t), 1))
		if v, err := s[3].Query(); v != 0 || err != nil {
			t.Errorf("at %d, %v, although the previous user of the memory is not done", v, err)
		}
		d.ResumeStream(streams[1])
		must(t, s[3].Wait(minute(t), 1))
		begins(t, one, b, 2)
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
	})
	t.Run("B94 closed after a free without lists", func(t *testing.T) {
		for _, close := range []bool{false, true} {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)
			p, all := whole(t, dev)
			q := dev.Queue(0)
			d.StallStream(d.Streams(0)[0])
			b := alloca(t, q, gpu.Order{}, p, all)
			must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, q.Submit(gpu.Order{}, gpu.Free(b)))
			if close {
				must(t, alloca(t, q, gpu.Order{}, p, all).Close())
			}
			must(t, p.Close())
			d.ResumeStream(d.Streams(0)[0])
			eventually(t, "the pool's memory is given back", func() bool { return d.Counters().Devices[0].Bytes == 0 })
		}
	})
	t.Run("B94 closed before a free with lists, and after one without", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 2)
			p, all := whole(t, dev)
			one, other := dev.Queue(0), dev.Queue(1)
			d.StallStream(d.Streams(0)[1])
			x, y := alloca(t, other, gpu.Order{}, p, all/2), alloca(t, one, gpu.Order{}, p, all/2)
			must(t, other.Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(x.All(), []byte{1})))
			must(t, other.Submit(gpu.Order{}, gpu.Free(x)))
			must(t, p.Close())
			synctest.Wait() // until the pool has released its unused memory
			must(t, one.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Free(y)))
			must(t, s[0].Wait(minute(t), 1))
			d.ResumeStream(d.Streams(0)[1])
			time.Sleep(time.Minute) // time of the bubble
			if n := d.Counters().Devices[0].Bytes; n != 0 {
				t.Errorf("%d bytes of the pool's memory are left", n)
			}
		})
	})
	t.Run("B94 closed before a free without lists, on an idle device", func(t *testing.T) {
		for _, portable := range []bool{true, false} {
			for _, trim := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					d := newSim(t, simdriver.Config{})
					dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 1)
					p := newPool(t, dev, gpu.PoolOptions{Portable: portable})
					b := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, p, 64)
					must(t, dev.Queue(1).Submit(gpu.Order{Wait: pts(s[0], 1), Signal: pts(s[0], 2)}, gpu.Fill(b.All(), []byte{1})))
					must(t, s[0].Wait(minute(t), 2))
					must(t, p.Close())
					synctest.Wait() // until the pool has released its unused memory
					if trim {
						must(t, dev.Trim())
					}
					// Close has requested polling of the work above. The following work comes
					// later, so that request does not cover it.
					for v := range uint64(2) {
						must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[0], v+3)}, gpu.Fill(b.All(), []byte{1})))
						must(t, s[0].Wait(minute(t), v+3))
					}
					must(t, dev.Queue(1).Submit(gpu.Order{}, gpu.Free(b)))
					time.Sleep(time.Minute) // a minute of the bubble's time; no call waits meanwhile, so none polls the device
					if c := d.Counters().Devices[0]; c.Bytes != 0 || c.Pools != 0 {
						t.Errorf("portable %v, trimmed %v: %d bytes and %d pools are left", portable, trim, c.Bytes, c.Pools)
					}
				})
			}
		}
	})
	t.Run("B97 buffers of no size leave no record", func(t *testing.T) {
		dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
		for range 10 {
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(alloca(t, dev.Queue(0), gpu.Order{}, nil, 0))))
		}
		if n := dev.Stats().Buffers; n != 0 {
			t.Errorf("%d buffers", n)
		}
	})
}

// TestPoolAborted frees memory that an aborted group of collectives may still use. The memory must
// stay allocated.
func TestPoolAborted(t *testing.T) {
	t.Run("B125 used by an aborted group", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		g, comms := openCommunicators(t, d, 1, collective.Options{})
		dev, s := g.Devices()[0], semaphores(t, 2)
		p, all := whole(t, dev)
		q, streams := dev.Queue(0), d.Streams(0)
		b := alloca(t, q, gpu.Order{Signal: pts(s[0], 1)}, p, all)
		must(t, s[0].Wait(minute(t), 1))
		must(t, d.StallStream(streams[len(streams)-1]))
		must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, comms[0].GroupContext(t.Context(), collective.SendReceive(b.Range(0, 64), b.Range(0, 64), collective.Float32, -1, -1))))
		eventually(t, "it is issued", func() bool { return dev.Stats().InFlight == 1 }, dev)
		comms[0].Abort(nil)
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, collective.ErrAborted) {
			t.Fatal(err)
		}
		must(t, q.Submit(gpu.Order{}, gpu.Free(b)))
		full(t, q, p)
		must(t, d.ResumeStream(streams[len(streams)-1]))
	})
}

// TestPoolBehindFailure frees memory behind work that fails afterwards, and allocates the memory
// again. The allocation must come after that work, and succeed.
func TestPoolBehindFailure(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	g, err := gpu.OpenGroup(d, gpu.Options{Queues: 2})
	must(t, err)
	t.Cleanup(func() { must(t, g.Close()) })
	comms, err := collective.NewAll(minute(t), g.Devices(), collective.Options{})
	must(t, err)
	dev, s := g.Devices()[0], semaphores(t, 4)
	p, all := whole(t, dev)
	q, other, streams := dev.Queue(0), dev.Queue(1), d.Streams(0)
	x, b := allocate(t, dev, 64), alloca(t, q, gpu.Order{}, p, all)
	must(t, d.StallStream(streams[len(streams)-1]))
	must(t, comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, comms[0].GroupContext(t.Context(), collective.SendReceive(x.All(), x.All(), collective.Float32, -1, -1))))
	must(t, q.Submit(order(s[0], 1, s[1], 1), gpu.Fill(x.All(), []byte{1})))
	must(t, q.Submit(gpu.Order{}, gpu.Free(b)))
	a := alloca(t, other, gpu.Order{Signal: pts(s[2], 1)}, p, all)
	must(t, other.Submit(order(s[2], 1, s[3], 1), gpu.Fill(a.All(), []byte{2})))
	eventually(t, "all is issued", func() bool { return dev.Stats().InFlight == 6 }, dev)
	comms[0].Abort(nil)
	must(t, d.ResumeStream(streams[len(streams)-1]))
	if err := s[1].Wait(minute(t), 1); !errors.Is(err, collective.ErrAborted) {
		t.Error(err)
	}
	must(t, s[3].Wait(minute(t), 1))
	begins(t, other, a, 2)
}

// TestPoolElsewhere frees memory of a native pool on a queue of another device.
func TestPoolElsewhere(t *testing.T) {
	setup := func(t *testing.T) (d *simdriver.Driver, q, other *gpu.Queue, p *gpu.Pool, b *gpu.Buffer) {
		d = newSim(t, simdriver.Config{Devices: 2})
		dev := openDevice(t, d, 0, gpu.Options{})
		q, other = dev.Queue(0), openDevice(t, d, 1, gpu.Options{}).Queue(0)
		p = newPool(t, dev, gpu.PoolOptions{MaxSize: 1 << 16})
		must(t, p.Access(other.Device(), true))
		s := semaphores(t, 1)[0]
		b = alloca(t, q, gpu.Order{Signal: pts(s, 1)}, p, 1<<16)
		must(t, s.Wait(minute(t), 1))
		return d, q, other, p, b
	}
	t.Run("B90 it comes after that queue's earlier work, and later work has the memory", func(t *testing.T) {
		d, q, other, p, b := setup(t)
		s := semaphores(t, 2)
		must(t, d.StallDevice(1))
		must(t, other.Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})))
		must(t, other.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Free(b)))
		full(t, q, p)
		must(t, d.ResumeDevice(1))
		b = alloca(t, q, order(s[0], 1, s[1], 1), p, 1<<16)
		must(t, s[1].Wait(minute(t), 1))
		must(t, q.Submit(gpu.Order{}, gpu.Free(b)))
		if n := calls(d, 1, simdriver.OpFreeAsync); n != 0 {
			t.Errorf("%d frees in the other device's streams", n)
		}
	})
	t.Run("B81 that device is already lost", func(t *testing.T) {
		d, q, other, p, b := setup(t)
		s := semaphores(t, 2)
		must(t, d.StallDevice(1))
		must(t, other.Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})))
		must(t, other.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Free(b)))
		d.LoseDevice(1, nil)
		if err := s[0].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("the dealloca: %v", err)
		}
		must(t, q.Submit(gpu.Order{}, gpu.Free(b))) // this Free fails later, because the lost device may still write the memory
		full(t, q, p)
		must(t, q.Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(allocate(t, q.Device(), 64).All(), []byte{1})))
		must(t, s[1].Wait(minute(t), 1))
		other.Device().Close()
		unused(t, p)
	})
	t.Run("B82 an invalid point changes nothing", func(t *testing.T) {
		_, q, other, _, b := setup(t)
		s := semaphores(t, 1)[0]
		if err := other.Submit(gpu.Order{Wait: []gpu.Point{{}}, Signal: pts(s, 1)}, gpu.Free(b)); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%v", err)
		}
		must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Free(b)))
		must(t, s.Wait(minute(t), 1))
	})
}
