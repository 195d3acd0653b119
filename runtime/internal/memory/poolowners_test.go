package memory_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// The tests of this file free memory of a pool while the device may still use it, and allocate
// again. They check that no memory has two owners at the same time.

// ownedSize is the size of the whole pool.
const ownedSize = 1 << 16

// An ownedPool is a pool of a device with three queues. Tests stall the streams of some queues.
type ownedPool struct {
	d       *simdriver.Driver
	dev     *gpu.Device
	p       *gpu.Pool
	streams []driver.Stream // the streams of the three queues
}

// eachOwnedPool runs a test on each kind of pool of each capability set.
func eachOwnedPool(t *testing.T, name string, test func(t *testing.T, x ownedPool)) {
	for _, portable := range []bool{false, true} {
		kind := "the driver's pool"
		if portable {
			kind = "a portable pool"
		}
		t.Run(name+"/"+kind, func(t *testing.T) {
			for _, set := range capabilitySets() {
				if !portable && !set.Caps.Pools {
					continue
				}
				t.Run(set.Name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						d := newSim(t, simdriver.Config{Devices: 2, Caps: &set.Caps})
						dev := openDevice(t, d, 0, gpu.Options{Queues: 3, StageSize: 4096})
						p := newPool(t, dev, gpu.PoolOptions{MaxSize: ownedSize, Portable: portable})
						test(t, ownedPool{d, dev, p, d.Streams(0)})
						must(t, dev.Close())
					})
				})
			}
		})
	}
}

// next allocates all memory on a queue and fills it. It returns the buffer and the point after the
// fill, or nil if the pool has no free memory yet. The previous work on the memory is stalled, so
// the test fails if the fill completes now.
func (x ownedPool) next(t *testing.T, queue int) (*gpu.Buffer, gpu.Point) {
	t.Helper()
	q, s := x.dev.Queue(queue), semaphores(t, 1)[0]
	b := alloca(t, q, gpu.Order{Signal: pts(s, 1)}, x.p, ownedSize)
	must(t, q.Submit(order(s, 1, s, 2), gpu.Fill(b.All(), []byte{2})))
	switch v, err := now(s); {
	case errors.Is(err, driver.ErrOutOfMemory):
		must(t, b.Close())
		return nil, gpu.Point{}
	case v == 2 || err != nil:
		t.Errorf("queue %d has written memory that another queue's work still uses: its semaphore is at %d, %v", queue, v, err)
	}
	return b, gpu.Point{Semaphore: s, Value: 2}
}

// now returns the value of a semaphore when the devices can make no more progress.
func now(s *gpu.Semaphore) (uint64, error) {
	synctest.Wait()
	s.Query() // some devices make progress only when they are polled
	synctest.Wait()
	return s.Query()
}

// has2 checks that a buffer filled by ownedPool.next still has its data, and frees the buffer. has2
// ignores a nil buffer.
func (x ownedPool) has2(t *testing.T, b *gpu.Buffer, after gpu.Point) {
	t.Helper()
	if b == nil {
		return
	}
	for i, c := range bytesOf(t, x.dev.Queue(0), b, after) {
		if c != 2 {
			t.Fatalf("byte %d of the new owner's memory is %d, want 2", i, c)
		}
	}
	must(t, x.dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
}

// unused waits until all memory is back in the pool. If that takes a minute, unused fails the test.
func (x ownedPool) unused(t *testing.T) {
	t.Helper()
	// The time of a bubble passes only while all its goroutines are blocked.
	for ctx := minute(t); ; time.Sleep(time.Millisecond) {
		if st, err := x.p.Stats(); err != nil || ctx.Err() != nil {
			t.Fatalf("memory stays in use: %+v, %v", st, err)
		} else if st.Used == 0 {
			return
		}
	}
}

// semaphoreUses submit work on queue 0 that uses a buffer and signals s. Each of them calls end,
// which fails or closes s, before the stream has received the work or while the work is in the
// stream.
var semaphoreUses = map[string]func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore, end func()){
	"that is in flight": func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore, end func()) {
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		end()
	},
	"before it was issued": func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore, end func()) {
		w := semaphores(t, 1)[0]
		must(t, dev.Queue(0).Submit(order(w, 1, s, 1), gpu.Fill(b.All(), []byte{1})))
		end()
		must(t, w.Signal(1))
		eventually(t, "it is issued", func() bool { return dev.Stats().InFlight > 0 })
	},
	"during a transfer in pieces": func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore, end func()) {
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Upload(b.All(), make([]byte, b.Size()))))
		eventually(t, "a piece is issued", func() bool { return dev.Stats().InFlight > 0 })
		end()
	},
	"before the first piece of a transfer": func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore, end func()) {
		w := semaphores(t, 1)[0]
		must(t, dev.Queue(0).Submit(order(w, 1, s, 1), gpu.Upload(b.All(), make([]byte, b.Size()))))
		end()
		must(t, w.Signal(1))
		eventually(t, "a piece is issued", func() bool { return dev.Stats().InFlight > 0 })
	},
	"during an execution of several parts": func(t *testing.T, dev *gpu.Device, b *gpu.Buffer, s *gpu.Semaphore, end func()) {
		c := commandBuffer(t, dev, gpu.StreamMode)
		x, err := c.Binding()
		must(t, err)
		recorded(t)(c.Add(gpu.Fill(x.Range(0, 8), []byte{1})))
		recorded(t)(c.Add(gpu.Barrier()))
		recorded(t)(c.Add(gpu.HostCall(func() error { return nil })))
		must(t, c.End())
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c, b.All())))
		eventually(t, "a part is issued", func() bool { return dev.Stats().InFlight > 0 })
		end()
		must(t, c.Close())
	},
}

// TestOwnersSemaphore fails or closes the semaphore of work on queue 0, and frees the work's memory
// on queue 1.
func TestOwnersSemaphore(t *testing.T) {
	for how, end := range map[string]func(*gpu.Semaphore){
		"fails":  func(s *gpu.Semaphore) { s.Fail(io.EOF) },
		"closes": func(s *gpu.Semaphore) { s.Close() },
	} {
		for name, use := range semaphoreUses {
			eachOwnedPool(t, fmt.Sprintf("B125 a program %s the semaphore of work %s", how, name), func(t *testing.T, x ownedPool) {
				s := semaphores(t, 2)
				b := alloca(t, x.dev.Queue(1), gpu.Order{Signal: pts(s[1], 1)}, x.p, ownedSize)
				must(t, s[1].Wait(minute(t), 1))
				must(t, x.d.StallStream(x.streams[0]))
				use(t, x.dev, b, s[0], func() { end(s[0]) })
				must(t, x.dev.Queue(1).Submit(gpu.Order{}, gpu.Free(b)))
				c, filled := x.next(t, 1)
				must(t, x.d.ResumeStream(x.streams[0]))
				x.has2(t, c, filled)
				x.unused(t)
			})
		}
	}
}

// TestOwnersByAddress frees memory on queue 0 after work that has only the memory's address, and so
// does not hold the buffer. A copy on queue 2 holds the buffer. The copy's semaphore is failed by
// hand, and the copy ends before the work on queue 0. Queue 1 must not write the memory before that
// work has ended.
func TestOwnersByAddress(t *testing.T) {
	for home := range 2 {
		eachOwnedPool(t, fmt.Sprintf("B125 memory allocated on queue %d", home), func(t *testing.T, x ownedPool) {
			s, out := semaphores(t, 3), allocate(t, x.dev, ownedSize)
			b := alloca(t, x.dev.Queue(home), gpu.Order{Signal: pts(s[0], 1)}, x.p, ownedSize)
			must(t, s[0].Wait(minute(t), 1))
			at := b.Ptr()
			code, err := x.dev.Load(kernels.Basic)
			must(t, err)
			index, err := code.Kernel("index")
			must(t, err)
			must(t, x.d.StallStream(x.streams[0]))
			must(t, x.d.StallStream(x.streams[2]))
			must(t, x.dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Launch(index, gpu.Grid{Blocks: [3]uint32{ownedSize / 4 / 64}, Threads: [3]uint32{64}},
				uint64(ownedSize/4), uint32(0x01010101), uint32(0), at)))
			must(t, x.dev.Queue(2).Submit(order(s[0], 1, s[2], 1), gpu.Copy(out.All(), b.All())))
			must(t, s[1].WaitIssued(minute(t), 1))
			must(t, s[2].WaitIssued(minute(t), 1))
			s[2].Fail(io.EOF)
			must(t, x.dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
			must(t, x.d.ResumeStream(x.streams[2]))
			synctest.Wait() // until the runtime has seen that the copy has ended
			c, filled := x.next(t, 1)
			must(t, x.d.ResumeStream(x.streams[0]))
			must(t, s[1].Wait(minute(t), 1))
			x.has2(t, c, filled)
			x.unused(t)
		})
	}
}

// TestOwnersAdopted checks that an adopted queue refuses to allocate and to free: an allocation
// would not come after the previous owner's work.
func TestOwnersAdopted(t *testing.T) {
	eachOwnedPool(t, "B167 an allocation on an adopted queue", func(t *testing.T, x ownedPool) {
		f := newForeign(t, x.d, 0)
		q := f.Adopt(t, x.dev)
		if _, err := testkit.AllocIn(q, gpu.Order{}, x.p, ownedSize); !errors.Is(err, driver.ErrUnsupported) {
			t.Error(err)
		}
		b := alloca(t, x.dev.Queue(0), gpu.Order{}, x.p, ownedSize)
		if err := q.Submit(gpu.Order{}, gpu.Free(b)); !errors.Is(err, driver.ErrUnsupported) {
			t.Error(err)
		}
		must(t, b.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
		must(t, q.Close())
		must(t, x.dev.Close())
		f.End(t)
	})
}

// TestOwnersUnrelated frees memory on the queue that used it last. Between the use and the free,
// work that does not use the memory fails. The queue must be able to reuse the memory at once: a
// pool at its limit allocates the same memory again.
func TestOwnersUnrelated(t *testing.T) {
	for name, fail := range map[string]func(t *testing.T, x ownedPool, other *gpu.Buffer, s *gpu.Semaphore){
		"a program fails the semaphore of": func(t *testing.T, x ownedPool, other *gpu.Buffer, s *gpu.Semaphore) {
			must(t, x.dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(other.All(), []byte{3})))
			must(t, s.WaitIssued(minute(t), 1))
			s.Fail(io.EOF)
		},
		"the driver refuses a part of": func(t *testing.T, x ownedPool, other *gpu.Buffer, s *gpu.Semaphore) {
			x.d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 2})
			must(t, x.dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(other.All(), []byte{1, 1, 1, 1, 3, 3, 3, 3})))
			if err := s.Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
				t.Fatal(err)
			}
		},
	} {
		eachOwnedPool(t, "B90 "+name+" other work behind the last use", func(t *testing.T, x ownedPool) {
			q, s, other := x.dev.Queue(0), semaphores(t, 3), allocate(t, x.dev, 64)
			b := alloca(t, q, gpu.Order{}, x.p, ownedSize)
			must(t, x.d.StallStream(x.streams[0]))
			must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, s[0].WaitIssued(minute(t), 1))
			fail(t, x, other, s[2])
			must(t, q.Submit(gpu.Order{}, gpu.Free(b)))
			c := alloca(t, q, gpu.Order{Signal: pts(s[1], 1)}, x.p, ownedSize)
			must(t, q.Submit(order(s[1], 1, s[1], 2), gpu.Fill(c.All(), []byte{2})))
			must(t, x.d.ResumeStream(x.streams[0]))
			must(t, s[0].Wait(minute(t), 1))
			if err := s[1].Wait(minute(t), 2); err != nil {
				t.Fatalf("allocate the memory again that the same queue has freed: %v", err)
			}
			x.has2(t, c, gpu.Point{Semaphore: s[1], Value: 2})
			x.unused(t)
		})
	}
}

// TestOwnersFree frees memory on another queue than the one that allocated it, and on a queue of
// another device. The points of Order.Free must be signalled, but not before the free is done.
func TestOwnersFree(t *testing.T) {
	for name, other := range map[string]func(t *testing.T, x ownedPool) (q *gpu.Queue, end func()){
		"another queue": func(t *testing.T, x ownedPool) (*gpu.Queue, func()) { return x.dev.Queue(0), func() {} },
		"a queue of another device": func(t *testing.T, x ownedPool) (*gpu.Queue, func()) {
			dev := openDevice(t, x.d, 1, gpu.Options{})
			return dev.Queue(0), func() {
				must(t, dev.Close())
				if x.p.Options().Portable {
					return
				}
				free, b := semaphores(t, 1)[0], alloca(t, x.dev.Queue(1), gpu.Order{}, x.p, ownedSize)
				if err := dev.Queue(0).Submit(gpu.Order{Free: pts(free, 1)}, gpu.Free(b)); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("Dealloca on a queue of a device that is closed: %v", err)
				}
				if v, err := now(free); v != 0 || err != nil {
					t.Errorf("Order.Free of a call that has returned an error is at %d, %v", v, err)
				}
				must(t, x.dev.Queue(1).Submit(gpu.Order{}, gpu.Free(b)))
			}
		},
	} {
		eachOwnedPool(t, "B148 memory freed on "+name, func(t *testing.T, x ownedPool) {
			q, end := other(t, x)
			s := semaphores(t, 3)
			b := alloca(t, x.dev.Queue(1), gpu.Order{Signal: pts(s[0], 1)}, x.p, ownedSize)
			must(t, s[0].Wait(minute(t), 1))
			must(t, x.d.StallStream(x.streams[1]))
			must(t, x.dev.Queue(1).Submit(gpu.Order{Signal: pts(s[0], 2)}, gpu.Fill(allocate(t, x.dev, 64).All(), []byte{1})))
			must(t, q.Submit(gpu.Order{Signal: pts(s[1], 1), Free: pts(s[2], 1)}, gpu.Free(b)))
			told, err := now(s[2])
			must(t, err)
			if done, err := now(s[1]); told == 1 && done == 0 {
				t.Errorf("Order.Free is signalled before the free is done: its signal is at %d, %v", done, err)
			}
			must(t, x.d.ResumeStream(x.streams[1]))
			must(t, s[2].Wait(minute(t), 1))
			must(t, s[1].Wait(minute(t), 1))
			end()
		})
	}
}
