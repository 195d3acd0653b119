package memory_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/interop"
)

func TestPoolStreams(t *testing.T) {
	t.Run("B93 memory is allocated and freed in the stream of the queue", func(t *testing.T) {
		var mu sync.Mutex
		streams := map[simdriver.Op][]driver.Stream{}
		d := newSim(t, simdriver.Config{OnExecute: func(e simdriver.Executed) {
			mu.Lock()
			streams[e.Op] = append(streams[e.Op], e.Stream)
			mu.Unlock()
		}})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 4}), semaphores(t, 1)[0]
		for i := range uint64(4) {
			b := alloca(t, dev.Queue(int(i)), gpu.Order{Wait: pts(s, 2*i), Signal: pts(s, 2*i+1)}, nil, 64)
			must(t, dev.Queue(int(i)).Submit(order(s, 2*i+1, s, 2*i+2), gpu.Free(b)))
		}
		must(t, s.Wait(minute(t), 8))
		mu.Lock()
		defer mu.Unlock()
		want := d.Streams(0)
		for _, op := range []simdriver.Op{simdriver.OpAllocAsync, simdriver.OpFreeAsync} {
			for i := range want {
				if len(streams[op]) != 4 || streams[op][i] != want[i] {
					t.Fatalf("%s in streams %v, want %v", op, streams[op], want)
				}
			}
		}
	})
	t.Run("B98 an allocation waits for memory that a stream still uses", func(t *testing.T) {
		for _, portable := range []bool{false, true} {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{Queues: 3}), semaphores(t, 4)
			p := newPool(t, dev, gpu.PoolOptions{MaxSize: 1 << 16, InitialSize: 1 << 16, Portable: portable})
			streams := d.Streams(0)
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Barrier()))
			d.StallStream(streams[0])
			a := alloca(t, dev.Queue(0), gpu.Order{}, p, 1<<16)
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(a.All(), []byte{1})))
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Free(a)))
			waits := calls(d, 0, simdriver.OpStreamWait)
			b := alloca(t, dev.Queue(1), gpu.Order{Signal: pts(s[1], 1)}, p, 1<<16) // all the memory of the pool
			must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(b.All(), []byte{2})))
			must(t, dev.Queue(2).Submit(gpu.Order{Signal: pts(s[3], 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
			must(t, s[3].Wait(minute(t), 1))
			for range 10 {
				if v, err := s[1].Query(); v != 0 || err != nil {
					t.Fatalf("portable %v: at %d, %v while the memory is used", portable, v, err)
				}
			}
			if n := calls(d, 0, simdriver.OpStreamWait) - waits; portable && n != 1 {
				t.Errorf("%d waits", n)
			}
			d.ResumeStream(streams[0])
			must(t, s[2].Wait(minute(t), 1))
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
			must(t, dev.Close())
		}
	})
	t.Run("B98 allocated but unused memory returns when the stream has passed its owner", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 1)[0]
		p := newPool(t, dev, gpu.PoolOptions{MaxSize: 1 << 16, InitialSize: 1 << 16, Portable: true})
		streams := d.Streams(0)
		d.StallStream(streams[0])
		a := alloca(t, dev.Queue(0), gpu.Order{}, p, 1<<16)
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(a.All(), []byte{1})))
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(a)))
		must(t, alloca(t, dev.Queue(0), gpu.Order{}, p, 1<<16).Close())
		if _, err := testkit.AllocIn(dev.Queue(1), gpu.Order{}, p, 1<<16); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("Alloc = %v while the stream still has the previous user of the memory", err)
		}
		d.ResumeStream(streams[0])
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		must(t, s.Wait(minute(t), 1))
		unused(t, p)
		c := alloca(t, dev.Queue(1), gpu.Order{Signal: pts(s, 2)}, p, 1<<16)
		must(t, s.Wait(minute(t), 2))
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(c)))
		must(t, dev.Close())
	})
	t.Run("B98 memory is reused in its own stream without a wait", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 1)[0]
		p := newPool(t, dev, gpu.PoolOptions{MaxSize: 1 << 16, Portable: true})
		d.StallDevice(0)
		for i := range uint64(20) {
			b := alloca(t, dev.Queue(0), gpu.Order{}, p, 1<<16)
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{byte(i)})))
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, i+1)}, gpu.Free(b)))
		}
		if n := calls(d, 0, simdriver.OpStreamWait); n != 0 {
			t.Errorf("%d waits", n)
		}
		if n := calls(d, 0, simdriver.OpAlloc); n != 1 {
			t.Errorf("%d slabs", n)
		}
		d.ResumeDevice(0)
		must(t, s.Wait(minute(t), 20))
		must(t, dev.Close())
	})
}

func TestPoolCalls(t *testing.T) {
	// pairs allocates and frees memory four times, and checks the number of native calls for
	// memory. At most one event may be recorded.
	pairs := func(t *testing.T, d *simdriver.Driver, q *gpu.Queue, p *gpu.Pool, size, want uint64) {
		memory := func() (n uint64) {
			for _, op := range []simdriver.Op{simdriver.OpAlloc, simdriver.OpFree, simdriver.OpAllocAsync, simdriver.OpFreeAsync, simdriver.OpFill} {
				n += calls(d, 0, op)
			}
			return n
		}
		before, recorded := memory(), calls(d, 0, simdriver.OpRecord)
		for range 4 {
			must(t, q.Submit(gpu.Order{}, gpu.Free(alloca(t, q, gpu.Order{}, p, size))))
		}
		if n, events := memory()-before, calls(d, 0, simdriver.OpRecord)-recorded; n != want || events > 1 {
			t.Errorf("%d calls and %d events for 4 allocations", n, events)
		}
	}
	t.Run("B123 without lists a driver's pool takes one call, and few events", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		_, err := dev.DefaultPool()
		must(t, err)
		pairs(t, d, dev.Queue(0), nil, 64, 8)
	})
	t.Run("B123 without lists a portable pool with free memory needs only events", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		for _, o := range []gpu.PoolOptions{{Portable: true, InitialSize: 4096}, {Over: allocate(t, dev, 4096)}, {Portable: true, InitialSize: 4096, Kind: gpu.HostMem}} {
			p := newPool(t, dev, o)
			pairs(t, d, dev.Queue(0), p, 4096, 0)
			b := allocated(t, dev.Queue(0), p, 4096)
			if on := b.Bytes(); (on != nil) != (p.Options().Kind == gpu.HostMem) {
				t.Errorf("%d bytes of memory of kind %d", len(on), p.Options().Kind)
			}
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
		}
	})
	t.Run("B98 a portable pool is told when it may release memory", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{})
		p := newPool(t, dev, gpu.PoolOptions{Portable: true})
		must(t, p.SetThreshold(0))
		s := semaphores(t, 1)[0]
		for i := range uint64(3) {
			b := alloca(t, dev.Queue(0), gpu.Order{}, p, 4096)
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, i+1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
			must(t, s.Wait(minute(t), i+1))
		}
		for ctx := minute(t); ; runtime.Gosched() {
			st, err := p.Stats()
			must(t, err)
			if st.Reserved == 0 {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("%+v", st)
			}
		}
	})
}

// TestPoolFaults makes native calls of pools fail.
func TestPoolFaults(t *testing.T) {
	broken := errors.New("broken")
	t.Run("B80 a pool that cannot grow fails the allocation, and may grow the next time", func(t *testing.T) {
		for op, portable := range map[simdriver.Op]bool{simdriver.OpAllocAsync: false, simdriver.OpAlloc: true} {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 3)
			p := newPool(t, dev, gpu.PoolOptions{Portable: portable})
			f := d.Inject(simdriver.Fault{Op: op, Err: broken})
			bad := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, p, 64)
			if err := s[0].Wait(minute(t), 1); !errors.Is(err, broken) {
				t.Errorf("%s: %v", op, err)
			}
			if _, err := testkit.AllocIn(dev.Queue(0), gpu.Order{}, p, 64); !portable && !errors.Is(err, broken) {
				t.Errorf("%s: %v", op, err)
			}
			f.Remove()
			b := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[1], 1)}, p, 64)
			must(t, s[1].Wait(minute(t), 1))
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Free(bad)))
			if err := s[2].Wait(minute(t), 1); !errors.Is(err, gpu.ErrUnallocated) {
				t.Errorf("%s: dealloca: %v", op, err)
			}
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
			must(t, dev.Close())
		}
	})
	t.Run("B80 memory that cannot be zeroed is not allocated", func(t *testing.T) {
		for _, portable := range []bool{false, true} {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 2)
			p := newPool(t, dev, gpu.PoolOptions{Portable: portable, Zero: true})
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 1, Err: broken})
			b := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, p, 64)
			if err := s[0].Wait(minute(t), 1); !errors.Is(err, broken) {
				t.Errorf("%v", err)
			}
			must(t, b.Close())
			b = alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[1], 1)}, p, 64)
			must(t, s[1].Wait(minute(t), 1))
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 2)}, gpu.Free(b)))
			must(t, s[1].Wait(minute(t), 2))
			unused(t, p)
			must(t, dev.Close())
		}
	})
	t.Run("B80 an allocation with a part in the stream returns its memory", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 4)
		p := newPool(t, dev, gpu.PoolOptions{Portable: true, Zero: true, MaxSize: 1 << 16})
		other := allocate(t, dev, 64)
		warm := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, p, 1<<16)
		must(t, dev.Queue(0).Submit(order(s[0], 1, s[0], 2), gpu.Free(warm)))
		must(t, s[0].Wait(minute(t), 2))
		streams := d.Streams(0)
		d.StallStream(streams[1])
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(other.All(), []byte{1})))
		d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 1, Err: broken})
		// The allocation makes the stream wait, and then the driver refuses the fill that zeroes
		// the memory.
		b := alloca(t, dev.Queue(0), order(s[1], 1, s[2], 1), p, 1<<16)
		if err := s[2].Wait(minute(t), 1); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
		d.ResumeStream(streams[1])
		unused(t, p)
		must(t, b.Close())
		again := alloca(t, dev.Queue(1), gpu.Order{Signal: pts(s[3], 1)}, p, 1<<16)
		must(t, s[3].Wait(minute(t), 1))
		must(t, again.Close())
	})
	t.Run("B92 memory that the driver refuses to free is freed once, and never reused", func(t *testing.T) {
		for _, lists := range []bool{false, true} {
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
			b := alloca(t, dev.Queue(0), gpu.Order{}, nil, 64)
			f := d.Inject(simdriver.Fault{Op: simdriver.OpFreeAsync, Err: broken})
			if lists {
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Free(b)))
				if err := s.Wait(minute(t), 1); !errors.Is(err, broken) {
					t.Errorf("%v", err)
				}
			} else if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)); !errors.Is(err, broken) {
				t.Errorf("%v", err)
			}
			f.Remove()
			if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrUnallocated) {
				t.Errorf("%v", err)
			}
			must(t, b.Close())
			must(t, dev.Close())
			if n := calls(d, 0, simdriver.OpFreeAsync); n != 1 {
				t.Errorf("%d frees", n)
			}
		}
	})
	t.Run("B80 a free after which no event can be recorded", func(t *testing.T) {
		for _, how := range []struct{ portable, inStream bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
			portable, inStream := how.portable, how.inStream
			d := newSim(t, simdriver.Config{})
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 3)
			p := newPool(t, dev, gpu.PoolOptions{Portable: portable})
			b := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, p, 64)
			must(t, s[0].Wait(minute(t), 1))
			d.Inject(simdriver.Fault{Op: simdriver.OpRecord, N: 1, Err: broken})
			if inStream {
				st := dev.Queue(0).NewStream()
				must(t, st.Free(b))
				// The wait must try again after the first attempt to record an event has failed.
				if err := st.Wait(minute(t)); err != nil {
					t.Errorf("%v", err)
				}
			} else { // a Free with a signal needs an event at once, so the signal fails
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Free(b)))
				if err := s[1].Wait(minute(t), 1); !errors.Is(err, broken) {
					t.Errorf("%v", err)
				}
			}
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(allocate(t, dev, 4).All(), []byte{1})))
			must(t, s[2].Wait(minute(t), 1))
			unused(t, p)
			if n := dev.Stats().Buffers; n != 1 {
				t.Errorf("portable %v: %d buffers", portable, n)
			}
			must(t, dev.Close())
		}
	})
}

func TestPoolLost(t *testing.T) {
	t.Run("B81 a lost device with memory of pools", func(t *testing.T) {
		for _, caps := range []driver.Caps{simdriver.CUDACaps(), simdriver.HIPCaps()} {
			d := newSim(t, simdriver.Config{Devices: 2, Caps: &caps})
			lost, other := openDevice(t, d, 0, gpu.Options{Queues: 2}), openDevice(t, d, 1, gpu.Options{})
			ctx, s := minute(t), semaphores(t, 8)
			p := newPool(t, lost, gpu.PoolOptions{Portable: true})
			a := alloca(t, lost.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, p, 64)
			b := alloca(t, lost.Queue(0), gpu.Order{Signal: pts(s[0], 2)}, nil, 64)
			must(t, s[0].Wait(ctx, 2))
			d.StallDevice(0)
			must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(a.All(), []byte{1})))
			must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 2)}, gpu.Free(a)))
			alloca(t, lost.Queue(1), order(s[2], 1, s[3], 1), nil, 64)
			d.LoseDevice(0, nil)
			for _, x := range []*gpu.Semaphore{s[1]} {
				if err := x.Wait(ctx, 1); !errors.Is(err, driver.ErrLost) {
					t.Errorf("%v", err)
				}
			}
			must(t, s[2].Signal(1))
			if err := s[3].Wait(ctx, 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("%v", err)
			}
			if _, err := testkit.AllocIn(lost.Queue(0), gpu.Order{Signal: pts(s[4], 1)}, p, 64); !errors.Is(err, driver.ErrLost) {
				t.Errorf("%v", err)
			}
			if err := s[4].Wait(ctx, 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("%v", err)
			}
			if err := b.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(b)); !errors.Is(err, driver.ErrLost) {
				t.Errorf("%v", err)
			}
			if _, err := lost.NewPool(gpu.PoolOptions{}); !errors.Is(err, driver.ErrLost) {
				t.Errorf("%v", err)
			}
			if _, err := p.Stats(); !errors.Is(err, driver.ErrLost) {
				t.Errorf("%v", err)
			}
			c := alloca(t, other.Queue(0), gpu.Order{Signal: pts(s[5], 1)}, nil, 64)
			must(t, s[5].Wait(ctx, 1))
			must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s[5], 2)}, gpu.Free(c)))
			must(t, s[5].Wait(ctx, 2))
			p.Close()
			lost.Close()
		}
	})
}

// A busyDriver is a simdriver whose next calls of DestroyPool return ErrBusy.
type busyDriver struct {
	*simdriver.Driver
	pools atomic.Int32 // how many of the next calls of DestroyPool return ErrBusy
}

type busyDevice struct {
	driver.Device
	driver.Pools
	d *busyDriver
}

func (d *busyDriver) Open(i int) (driver.Device, error) {
	v, err := d.Driver.Open(i)
	if err != nil {
		return nil, err
	}
	return &busyDevice{v, v.(driver.Pools), d}, nil
}

// Caps returns only the features that the wrapper has.
func (v *busyDevice) Caps() driver.Caps {
	c := v.Device.Caps()
	return driver.Caps{Pools: c.Pools, RerecordEvents: c.RerecordEvents}
}

func (v *busyDevice) DestroyPool(p driver.Pool) error {
	if v.d.pools.Add(-1) >= 0 {
		return driver.ErrBusy
	}
	return v.Pools.DestroyPool(p)
}

// TestPoolCloseBusy closes a pool that the driver reports as busy. The runtime must retry until the
// pool is destroyed.
func TestPoolCloseBusy(t *testing.T) {
	onEach(t, 1, func(t *testing.T, sim *simdriver.Driver, caps driver.Caps) {
		if !caps.Pools {
			return
		}
		d := &busyDriver{Driver: sim}
		dev := openDevice(t, d, 0, gpu.Options{})
		p, err := dev.NewPool(gpu.PoolOptions{})
		must(t, err)
		s := semaphores(t, 1)[0]
		b := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s, 1)}, p, 4096)
		must(t, dev.Queue(0).Submit(order(s, 1, s, 2), gpu.Free(b)))
		must(t, s.Wait(minute(t), 2))
		d.pools.Store(3)
		must(t, p.Close())
		time.Sleep(time.Minute) // time of the bubble
		if n := sim.Counters().Devices[0].Pools; n != 0 {
			t.Errorf("%d pools, %d refusals left", n, d.pools.Load())
		}
		must(t, dev.Close())
	})
}

// TestPoolMadeAgain makes a pool for which there is no memory at first. The driver does not destroy
// the native pool of the first attempt. NewPool must make a second native pool, which works like
// any other. The first native pool must be destroyed while the device is open.
func TestPoolMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, simdriver.Config{})
		d := &busyDriver{Driver: sim}
		dev := openDevice(t, d, 0, gpu.Options{})
		before := sim.Counters().Devices[0].Pools
		d.pools.Store(1)
		sim.Inject(simdriver.Fault{Op: simdriver.OpAllocAsync, N: 1, OOM: true})
		p := newPool(t, dev, gpu.PoolOptions{InitialSize: 1 << 16})
		if st, err := p.Stats(); err != nil || st.Reserved != 1<<16 {
			t.Errorf("%+v, %v", st, err)
		}
		synctest.Wait()
		if n := sim.Counters().Devices[0].Pools - before; n != 1 {
			t.Errorf("%d pools", n)
		}
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(alloca(t, dev.Queue(0), gpu.Order{}, p, 1<<16))))
		must(t, p.Close())
		must(t, dev.Close())
	})
}

// TestPoolInitial makes a pool with an initial size and allocates all of it on queue 1, while the
// stream of queue 0 is stalled. Earlier work of queue 1 must still be seen as complete.
func TestPoolInitial(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 1)[0]
		mem := allocate(t, dev, 64)
		must(t, d.StallStream(d.Streams(0)[0]))
		p := newPool(t, dev, gpu.PoolOptions{MaxSize: 1 << 16, InitialSize: 1 << 16})
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(mem.All(), []byte{1})))
		b := alloca(t, dev.Queue(1), gpu.Order{}, p, 1<<16)
		must(t, s.Wait(minute(t), 1))
		must(t, d.ResumeStream(d.Streams(0)[0]))
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
		must(t, dev.Close())
	})
}

// TestPoolInitialUnused makes pools that reserve a quarter of their limit, on devices that are slow
// to free memory. The reserved memory of a new pool is unused: an allocation of the whole limit
// must succeed at once.
func TestPoolInitialUnused(t *testing.T) {
	const most = 4 << 20
	for kind, portable := range map[string]bool{"the driver's pool": false, "a portable pool": true} {
		t.Run("B128 "+kind, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
				d.SetLatency(simdriver.OpFreeAsync, 300*time.Millisecond)
				p := newPool(t, dev, gpu.PoolOptions{MaxSize: most, InitialSize: most / 4, Portable: portable})
				if st, err := p.Stats(); err != nil || st.Reserved != most/4 || st.Used != 0 {
					t.Errorf("statistics of a new pool: %+v, %v; want %d reserved and nothing used", st, err, most/4)
				}
				b := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s, 1)}, p, most)
				if err := s.Wait(minute(t), 1); err != nil {
					t.Fatalf("allocate %d bytes of a new pool of as many: %v", most, err)
				}
				must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))

				p = newPool(t, dev, gpu.PoolOptions{MaxSize: most, InitialSize: most / 4, Portable: portable})
				b, err := testkit.AllocIn(dev.Queue(0), gpu.Order{}, p, most)
				if err != nil {
					t.Fatalf("allocate %d bytes of a new pool of as many, without a signal: %v", most, err)
				}
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1})))
				must(t, s.Wait(minute(t), 2))
				must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
				must(t, dev.Close())
			})
		})
	}
}

// TestPoolInitialStuck makes a pool with an initial size on a stalled device. NewPool must wait for
// the device, but must fail after ten seconds, or as soon as the device is closed or lost. Nothing
// may leak, unless the device is closed while it is stalled.
func TestPoolInitialStuck(t *testing.T) {
	for name, then := range map[string]struct {
		do   func(t *testing.T, d *simdriver.Driver, dev *gpu.Device)
		want error
	}{
		"until the device goes on": {func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) { must(t, d.ResumeDevice(0)) }, nil},
		"for ten seconds":          {func(*testing.T, *simdriver.Driver, *gpu.Device) {}, driver.ErrBusy},
		"until the device is closed": {func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := dev.Shutdown(ctx); !errors.Is(err, driver.ErrBusy) {
				t.Errorf("Shutdown of a device with a stream that does not end: %v", err)
			}
		}, gpu.ErrClosed},
		"until the device is lost": {func(t *testing.T, d *simdriver.Driver, dev *gpu.Device) {
			d.LoseDevice(0, nil)
		}, driver.ErrLost},
	} {
		t.Run("B128 "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := simdriver.New(simdriver.Config{Strict: true})
				dev := openDevice(t, d, 0, gpu.Options{})
				must(t, d.StallDevice(0))
				made := make(chan error)
				go func() {
					_, err := dev.NewPool(gpu.PoolOptions{InitialSize: 1 << 16})
					made <- err
				}()
				time.Sleep(5 * time.Second)
				done := make(chan struct{})
				go func() {
					defer close(done)
					then.do(t, d, dev)
				}()
				if err := <-made; !errors.Is(err, then.want) {
					t.Errorf("NewPool = %v, want %v", err, then.want)
				}
				<-done
				must(t, d.ResumeDevice(0))
				dev.Close()
				if leaks := d.Leaks(); len(leaks) > 0 && then.want != gpu.ErrClosed {
					t.Errorf("left behind: %v", leaks)
				}
				d.Kill() // ends the streams that were left to the driver
			})
		})
	}
}

// TestPoolClosedMeanwhile closes a pool during a driver call about the pool. The pool must be
// destroyed after that call.
func TestPoolClosedMeanwhile(t *testing.T) {
	for name, use := range map[string]func(*gpu.Pool) error{
		"statistics": func(p *gpu.Pool) error { _, err := p.Stats(); return err },
		"reuse":      func(p *gpu.Pool) error { _, err := p.Reuse(); return err },
		"set reuse":  func(p *gpu.Pool) error { return p.SetReuse(gpu.Reuse{Internal: true}) },
		"trim":       func(p *gpu.Pool) error { return p.Trim(0) },
		"access":     func(p *gpu.Pool) error { return p.Access(p.Device(), true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newSim(t, simdriver.Config{})
				dev := openDevice(t, d, 0, gpu.Options{})
				p := newPool(t, dev, gpu.PoolOptions{})
				for _, op := range []simdriver.Op{simdriver.OpPoolAttr, simdriver.OpSetPoolAttr, simdriver.OpTrimPool} {
					d.SetLatency(op, 2*time.Second)
				}
				used := make(chan error, 1)
				go func() { used <- use(p) }()
				time.Sleep(time.Second)
				must(t, p.Close())
				if err := <-used; err != nil && !errors.Is(err, gpu.ErrClosed) {
					t.Error(err)
				}
				eventually(t, "the pool is destroyed", func() bool { return d.Counters().Devices[0].Pools == 0 }, dev)
				must(t, dev.Close())
			})
		})
	}
}

// TestPoolLimit makes a pool whose limit is not a multiple of the alignment, and allocates all of
// it. NewPool must also accept the limit MaxUint64.
func TestPoolLimit(t *testing.T) {
	for kind, portable := range map[string]bool{"native": false, "portable": true} {
		t.Run(kind, func(t *testing.T) {
			dev, s := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{}), semaphores(t, 1)[0]
			p := newPool(t, dev, gpu.PoolOptions{MaxSize: 1000, InitialSize: 1000, Portable: portable})
			b := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s, 1)}, p, 1000)
			must(t, s.Wait(minute(t), 1))
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
			newPool(t, dev, gpu.PoolOptions{MaxSize: math.MaxUint64, Portable: portable})
			must(t, dev.Close())
		})
	}
}

// TestPoolCounts checks the counts of a device's buffers and of their bytes. Failed allocations do
// not count. Imported memory, and memory from a pool over a buffer, count as buffers, but their
// bytes do not count.
func TestPoolCounts(t *testing.T) {
	d := newSim(t, simdriver.Config{Memory: 1 << 20})
	dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
	huge, err := testkit.AllocIn(dev.Queue(0), gpu.Order{Signal: pts(s, 1)}, nil, 1<<30)
	must(t, err)
	if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Fatal(err)
	}
	if st := dev.Stats(); st.Buffers != 0 || st.Device != (gpu.ByteStats{}) {
		t.Errorf("after an allocation that failed: %+v", st)
	}
	must(t, huge.Close())
	whole := allocate(t, dev, 1<<16)
	over, err := dev.NewPool(gpu.PoolOptions{Over: whole})
	must(t, err)
	part := alloca(t, dev.Queue(0), gpu.Order{}, over, 1<<15)
	host, err := dev.Alloc(gpu.HostMem, 100)
	must(t, err)
	twice, err := interop.ImportPointer(dev, whole.Ptr(), 1<<16, nil)
	must(t, err)
	st := dev.Stats()
	if st.Buffers != 4 || st.Device != (gpu.ByteStats{Live: 1 << 16, Peak: 1 << 16, Allocated: 1 << 16}) || st.Host != (gpu.ByteStats{Live: 100, Peak: 100, Allocated: 100}) {
		t.Errorf("%+v", st)
	}
	must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(part)))
	must(t, twice.Close())
	must(t, host.Close())
	for deadline := time.Now().Add(time.Minute); dev.Stats().Host.Live > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", dev.Stats())
		}
	}
	if st := dev.Stats(); st.PeakBytes != 1<<16+100 || st.Device.Live != 1<<16 || st.Host != (gpu.ByteStats{Peak: 100, Allocated: 100}) {
		t.Errorf("%+v", st)
	}
}

// TestPoolClosers closes a device while other goroutines make, use and close pools, and make and
// close recordings. Close must succeed.
func TestPoolClosers(t *testing.T) {
	t.Run("B84 pools are made and closed while the device closes", func(t *testing.T) {
		for i := range 40 {
			d := newSim(t, simdriver.Config{})
			dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					for n := 0; ; n++ {
						p, err := dev.NewPool(gpu.PoolOptions{Portable: g%2 == 0, InitialSize: uint64(g) << 12})
						if err != nil {
							return
						}
						b, err := testkit.AllocIn(dev.Queue(g), gpu.Order{}, p, 256)
						if err == nil && n%2 == 0 {
							dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b))
						}
						if n%3 == 0 {
							p.Close()
						}
						c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
						if err == nil && n%3 == 1 {
							c.Close()
						}
					}
				})
			}
			for range i % 8 {
				allocate(t, dev, 16)
			}
			must(t, dev.Close())
			wg.Wait()
		}
	})
}
