package gpu_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// half is half of the limit of most pools here, which simulated drivers do not round up.
const half = 1 << 15

// A waitPool is a pool that waits, with its device.
type waitPool struct {
	sim *simdriver.Driver
	dev *gpu.Device
	p   *gpu.Pool
}

// eachWaitPool runs a test on pools that wait, of both kinds, and on devices of both kinds.
func eachWaitPool(t *testing.T, name string, limit uint64, test func(t *testing.T, x waitPool)) {
	eachCaps(t, name, func(t *testing.T, caps driver.Caps) {
		for _, portable := range []bool{false, true} {
			t.Run(fmt.Sprintf("portable %v", portable), func(t *testing.T) {
				x := waitPool{sim: newSim(t, simdriver.Config{Caps: &caps})}
				x.dev = openDevice(t, x.sim, 0, gpu.Options{Queues: 4})
				x.p = newPool(t, x.dev, gpu.PoolOptions{MaxSize: limit, Portable: portable, Wait: true})
				test(t, x)
			})
		}
	})
}

// parked returns the operations that are parked once there are so many, and the allocas among them are not trying to get memory.
func (x waitPool) parked(t testing.TB, n int) (list []gpu.ParkedOperation) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d operations are parked", n), func() bool {
		list = x.dev.Parked()
		return len(list) == n && !slices.ContainsFunc(list, func(p gpu.ParkedOperation) bool { return len(p.Waits) == 0 })
	}, x.dev)
	return list
}

// waiting waits until so many allocas stand in a pool's line.
func waiting(t testing.TB, p *gpu.Pool, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d allocas wait", n), func() bool {
		st, err := p.Stats()
		must(t, err)
		return st.Waiting == n
	}, p.Device())
}

// fullOf looks whether all bytes of a buffer are x.
func fullOf(t testing.TB, q *gpu.Queue, b *gpu.Buffer, x byte) {
	t.Helper()
	for i, got := range bytesOf(t, q, b) {
		if got != x {
			t.Fatalf("byte %d is %d, and was to be %d", i, got, x)
		}
	}
}

func TestPoolWaits(t *testing.T) {
	eachWaitPool(t, "B179 an alloca waits for memory, and holds up nobody", 2*half, func(t *testing.T, x waitPool) {
		s, q, other := semaphores(t, 3), x.dev.Queue(0), allocate(t, x.dev, 64)
		a := alloca(t, q, gpu.Order{Signal: pts(s[0], 1)}, x.p, 2*half)
		must(t, s[0].Wait(minute(t), 1))
		b := alloca(t, q, gpu.Order{Signal: pts(s[1], 1)}, x.p, 2*half)
		must(t, q.Fill(order(s[1], 1, s[1], 2), b.All(), []byte{7}))
		waiting(t, x.p, 1)
		must(t, q.Fill(gpu.Order{Signal: pts(s[2], 1)}, other.All(), []byte{1}))
		must(t, s[2].Wait(minute(t), 1))
		if v, err := s[1].Query(); v != 0 || err != nil || b.Ptr() != 0 {
			t.Fatalf("at %d, %v, with memory at %#x", v, err, uint64(b.Ptr()))
		}
		must(t, a.Dealloca(gpu.Order{Signal: pts(s[0], 2)}))
		must(t, s[1].Wait(minute(t), 2))
		fullOf(t, x.dev.Queue(1), b, 7)
		must(t, b.Dealloca(gpu.Order{}))
		waiting(t, x.p, 0)
		unused(t, x.p)
	})
	eachWaitPool(t, "B179 memory behind work of several streams", 2*half, func(t *testing.T, x waitPool) {
		s, streams := semaphores(t, 4), x.sim.Streams(0)
		var b [2]*gpu.Buffer
		for i := range b {
			b[i] = alloca(t, x.dev.Queue(i), gpu.Order{Signal: pts(s[i], 1)}, x.p, half)
			must(t, s[i].Wait(minute(t), 1))
		}
		for i := range b {
			x.sim.StallStream(streams[i])
			must(t, x.dev.Queue(i).Fill(gpu.Order{}, b[i].All(), []byte{1}))
			must(t, x.dev.Queue(i).Dealloca(gpu.Order{}, b[i]))
		}
		c := alloca(t, x.dev.Queue(2), gpu.Order{Signal: pts(s[2], 1)}, x.p, 2*half)
		must(t, x.dev.Queue(2).Fill(gpu.Order{Signal: pts(s[2], 2)}, c.All(), []byte{2}))
		must(t, x.dev.Queue(3).Fill(gpu.Order{Signal: pts(s[3], 1)}, allocate(t, x.dev, 64).All(), []byte{1}))
		must(t, s[3].Wait(minute(t), 1))
		if v, err := s[2].Query(); v != 0 || err != nil {
			t.Fatalf("at %d, %v while the memory is used", v, err)
		}
		x.sim.ResumeStream(streams[0])
		x.sim.ResumeStream(streams[1])
		must(t, s[2].Wait(minute(t), 2))
		fullOf(t, x.dev.Queue(3), c, 2)
		must(t, c.Dealloca(gpu.Order{}))
	})
	t.Run("B179 the device's memory is the limit", func(t *testing.T) {
		for _, portable := range []bool{false, true} {
			dev := openDevice(t, newSim(t, simdriver.Config{Memory: 1 << 20}), 0, gpu.Options{})
			p := newPool(t, dev, gpu.PoolOptions{Portable: portable, Wait: true})
			s, q := semaphores(t, 1)[0], dev.Queue(0)
			a := alloca(t, q, gpu.Order{Signal: pts(s, 1)}, p, 3<<18)
			must(t, s.Wait(minute(t), 1))
			b := alloca(t, q, gpu.Order{Signal: pts(s, 2)}, p, 3<<18)
			waiting(t, p, 1)
			must(t, a.Dealloca(gpu.Order{}))
			must(t, s.Wait(minute(t), 2))
			must(t, b.Dealloca(gpu.Order{Signal: pts(s, 3)}))
			must(t, s.Wait(minute(t), 3))
			alloca(t, q, gpu.Order{Signal: pts(s, 4)}, p, 2<<20)
			if err := s.Wait(minute(t), 4); !errors.Is(err, driver.ErrOutOfMemory) {
				t.Errorf("portable %v: %v", portable, err)
			}
		}
	})
	t.Run("B179 a pool over a buffer", func(t *testing.T) {
		dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{Queues: 2})
		p := newPool(t, dev, gpu.PoolOptions{Over: allocate(t, dev, 4096), Wait: true})
		if !p.Options().Wait {
			t.Error("it does not wait")
		}
		streams := []*gpu.Stream{dev.Queue(0).NewStream(), dev.Queue(1).NewStream()}
		for i := range 50 {
			s := streams[i%2]
			b, err := s.Alloca(p, 4096)
			must(t, err)
			must(t, s.Fill(b.All(), []byte{1}))
			must(t, s.Dealloca(b))
		}
		for _, s := range streams {
			must(t, s.Wait(minute(t)))
		}
	})
}

func TestPoolWaitOrder(t *testing.T) {
	eachWaitPool(t, "B180 first come, first served", 2*half, func(t *testing.T, x waitPool) {
		s := semaphores(t, 6)
		first := alloca(t, x.dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, x.p, half)
		must(t, s[0].Wait(minute(t), 1))
		second := alloca(t, x.dev.Queue(0), gpu.Order{Signal: pts(s[0], 2)}, x.p, half)
		must(t, s[0].Wait(minute(t), 2))
		large := alloca(t, x.dev.Queue(1), gpu.Order{Signal: pts(s[1], 1)}, x.p, 2*half)
		var small []*gpu.Buffer
		for i := range 4 {
			small = append(small, alloca(t, x.dev.Queue(i), gpu.Order{Signal: pts(s[2+i], 1)}, x.p, half))
		}
		waiting(t, x.p, 5)
		must(t, first.Dealloca(gpu.Order{Signal: pts(s[0], 3)})) // enough for a small one, whose turn it is not
		must(t, s[0].Wait(minute(t), 3))
		for i := range 5 {
			if v, err := s[1+i].Query(); v != 0 || err != nil {
				t.Fatalf("%d: at %d, %v", i, v, err)
			}
		}
		must(t, second.Dealloca(gpu.Order{}))
		must(t, s[1].Wait(minute(t), 1))
		waiting(t, x.p, 4)
		must(t, large.Dealloca(gpu.Order{}))
		must(t, s[2].Wait(minute(t), 1))
		must(t, s[3].Wait(minute(t), 1))
		waiting(t, x.p, 2)
		must(t, small[1].Dealloca(gpu.Order{}))
		must(t, s[4].Wait(minute(t), 1))
		must(t, small[0].Close()) // which gives it back as well
		must(t, s[5].Wait(minute(t), 1))
		must(t, small[2].Dealloca(gpu.Order{}))
		must(t, small[3].Dealloca(gpu.Order{}))
		unused(t, x.p)
	})
	eachWaitPool(t, "B180 many at once", 4*half, func(t *testing.T, x waitPool) {
		rounds := 40
		if testing.Short() {
			rounds = 10
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				st, got := x.dev.Queue(g).NewStream(), make([]byte, 8)
				for i := range rounds {
					want := byte(16*g + i%16)
					b, err := st.Alloca(x.p, half*uint64(1+(g+i)%4)-64)
					if err != nil {
						t.Error(err)
						return
					}
					st.Fill(b.All(), []byte{want})
					st.Download(got, b.Range(8, 8))
					if (g+i)%5 == 0 {
						st.HostCall(b.Close)
					} else {
						st.Dealloca(b)
					}
					if i%3 != 0 {
						continue
					}
					if err := st.Wait(minute(t)); err != nil || got[0] != want || got[7] != want {
						t.Errorf("%d: %v, %v", i, got, err)
						return
					}
				}
				if err := st.Wait(minute(t)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		unused(t, x.p)
		waiting(t, x.p, 0)
	})
}

func TestPoolWaitBare(t *testing.T) {
	eachWaitPool(t, "B181 what uses the memory on the same queue waits as well", 2*half, func(t *testing.T, x waitPool) {
		s, q := semaphores(t, 2), x.dev.Queue(2)
		a, b := alloca(t, q, gpu.Order{}, x.p, 2*half), alloca(t, q, gpu.Order{}, x.p, 2*half)
		waiting(t, x.p, 1)
		to := allocate(t, x.dev, 2*half)
		c := commandBuffer(t, x.dev, gpu.GraphMode)
		in, err := c.Binding()
		must(t, err)
		recorded(t)(c.Fill(in.Range(8, 8), []byte{5}))
		must(t, c.End())
		must(t, q.Fill(gpu.Order{}, b.All(), []byte{9}))
		must(t, q.Execute(gpu.Order{Signal: pts(s[0], 1)}, c, b.Range(0, half)))
		must(t, q.Copy(order(s[0], 1, s[0], 2), to.All(), b.All()))
		must(t, q.Dealloca(gpu.Order{Wait: pts(s[0], 2), Signal: pts(s[1], 1)}, b))
		if v, err := s[0].Query(); v != 0 || err != nil {
			t.Fatalf("at %d, %v", v, err)
		}
		must(t, q.Dealloca(gpu.Order{}, a))
		must(t, s[0].Wait(minute(t), 2))
		got := bytesOf(t, q, to)
		if got[7] != 9 || got[8] != 5 || got[15] != 5 || got[16] != 9 || got[len(got)-1] != 9 {
			t.Errorf("%v", got[:20])
		}
		must(t, s[1].Wait(minute(t), 1))
		unused(t, x.p)
	})
	eachWaitPool(t, "B181 a dealloca comes after what waits to use the memory", 2*half, func(t *testing.T, x waitPool) {
		s, q, to := semaphores(t, 2), x.dev.Queue(1), allocate(t, x.dev, 8*16)
		a := alloca(t, q, gpu.Order{}, x.p, 2*half)
		for i := range uint64(16) {
			b := alloca(t, q, gpu.Order{}, x.p, 2*half)
			must(t, q.Fill(gpu.Order{}, b.Range(64, 8), []byte{byte(i)}))
			must(t, q.Copy(gpu.Order{Signal: pts(s[0], i+1)}, to.Range(8*i, 8), b.Range(64, 8)))
			must(t, q.Dealloca(gpu.Order{}, b))
		}
		waiting(t, x.p, 16)
		must(t, q.Dealloca(gpu.Order{}, a))
		must(t, s[0].Wait(minute(t), 16))
		for i, got := range bytesOf(t, q, to) {
			if got != byte(i/8) {
				t.Fatalf("byte %d is %d", i, got)
			}
		}
		unused(t, x.p)
	})
	eachWaitPool(t, "B181 streams", 2*half, func(t *testing.T, x waitPool) {
		var streams []*gpu.Stream
		for i := range 3 {
			streams = append(streams, x.dev.Queue(i).NewStream())
		}
		got := make([][]byte, 24)
		for i := range got {
			st := streams[i%3]
			b, err := st.Alloca(x.p, half+half/2)
			must(t, err)
			got[i] = make([]byte, 16)
			must(t, st.Fill(b.All(), []byte{byte(i)}))
			must(t, st.Download(got[i], b.Range(64, 16)))
			must(t, st.Dealloca(b))
		}
		for _, st := range streams {
			must(t, st.Wait(minute(t)))
		}
		for i, b := range got {
			if b[0] != byte(i) || b[15] != byte(i) {
				t.Errorf("%d: %v", i, b)
			}
		}
		unused(t, x.p)
	})
}

// TestPoolWaitPieces transfers in pieces to memory whose alloca stands in line: the pieces stay in order.
func TestPoolWaitPieces(t *testing.T) {
	eachCaps(t, "B122 each piece waits for the one before", func(t *testing.T, caps driver.Caps) {
		d := newSim(t, simdriver.Config{Caps: &caps})
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2, StageSize: 4096})
		p := newPool(t, dev, gpu.PoolOptions{MaxSize: half, Portable: true, Wait: true})
		q, s := dev.Queue(0), semaphores(t, 1)
		b0 := alloca(t, q, gpu.Order{}, p, half)
		b, err := q.Alloca(gpu.Order{}, p, half)
		must(t, err)
		data := make([]byte, half)
		for i := range data {
			data[i] = byte(i / 4096)
		}
		must(t, q.Upload(gpu.Order{Signal: pts(s[0], 1)}, b.All(), data))
		var behind []uint64 // the values that pieces wait for: the first its memory, and the others the one before
		eventually(t, "three pieces are parked", func() bool {
			pieces := 0
			behind = behind[:0]
			for _, x := range dev.Parked() {
				if x.Label != "piece" {
					continue
				}
				pieces++
				for _, w := range x.Waits {
					behind = append(behind, w.Value)
				}
			}
			return pieces == 3
		}, dev)
		slices.Sort(behind)
		if !slices.Equal(behind, []uint64{1, 1, 2}) {
			t.Errorf("the pieces wait for %v", behind)
		}
		must(t, q.Dealloca(gpu.Order{}, b0))
		must(t, s[0].Wait(minute(t), 1))
		if got := bytesOf(t, q, b); !slices.Equal(got, data) {
			t.Error("the pieces are not where they belong")
		}
		must(t, q.Dealloca(gpu.Order{}, b))
	})
}

// TestPoolWaitTurn executes a recording whose executions take turns with memory whose alloca stands in line: another execution, of memory
// that is there, does not wait for it.
func TestPoolWaitTurn(t *testing.T) {
	for name, mode := range map[string]gpu.Mode{"stream": gpu.StreamMode, "auto": gpu.AutoMode} {
		eachCaps(t, "B122 B174 "+name, func(t *testing.T, caps driver.Caps) {
			d := newSim(t, simdriver.Config{Caps: &caps})
			dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
			p := newPool(t, dev, gpu.PoolOptions{MaxSize: half, Portable: true, Wait: true})
			c := commandBuffer(t, dev, mode)
			x, err := c.Binding()
			must(t, err)
			scratch, err := c.Alloca(4096)
			must(t, err)
			recorded(t)(c.Fill(scratch.All(), []byte{1}))
			recorded(t)(c.Barrier())
			recorded(t)(c.Copy(x.Range(0, 4096), scratch.All()))
			must(t, c.End())
			q, other, s := dev.Queue(0), dev.Queue(1), semaphores(t, 2)
			b0 := alloca(t, q, gpu.Order{}, p, half)
			b1, err := q.Alloca(gpu.Order{}, p, half)
			must(t, err)
			must(t, q.Execute(gpu.Order{Signal: pts(s[0], 1)}, c, b1.All()))
			waiting(t, p, 1)
			must(t, other.Execute(gpu.Order{Signal: pts(s[1], 1)}, c, b0.All()))
			must(t, other.Dealloca(order(s[1], 1, s[1], 2), b0))
			must(t, gpu.WaitAll(minute(t), gpu.Point{Semaphore: s[0], Value: 1}, gpu.Point{Semaphore: s[1], Value: 2}))
			must(t, q.Dealloca(gpu.Order{}, b1))
		})
	}
}

// TestPoolWaitGivenBack has an alloca find no memory while another one has taken it, which then has to wait for a device of another driver and gives
// it back.
func TestPoolWaitGivenBack(t *testing.T) {
	sim, other := newSim(t, simdriver.Config{}), newSim(t, simdriver.Config{})
	dev, far := openDevice(t, sim, 0, gpu.Options{Queues: 2}), openDevice(t, other, 0, gpu.Options{})
	p, s := newPool(t, dev, gpu.PoolOptions{MaxSize: half, Portable: true, Wait: true}), semaphores(t, 4)
	must(t, other.StallDevice(0))
	must(t, far.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 1)}, allocate(t, far, 1<<20).All(), []byte{1}))
	began, end := make(chan struct{}), make(chan struct{})
	go dev.Queue(0).Native(gpu.Order{Signal: pts(s[1], 1)}, func(gpu.Native) error { // which holds up the queue
		close(began)
		<-end
		return nil
	})
	<-began
	go dev.Queue(0).Alloca(order(s[0], 1, s[2], 1), p, half)
	eventually(t, "the memory is taken", func() bool {
		st, err := p.Stats()
		must(t, err)
		return st.Used > 0
	}, dev)
	b := alloca(t, dev.Queue(1), gpu.Order{Signal: pts(s[3], 1)}, p, half)
	waiting(t, p, 1)
	close(end)
	must(t, s[3].Wait(soon(t), 1))
	must(t, b.Dealloca(gpu.Order{}))
	must(t, other.ResumeDevice(0))
	must(t, s[2].Wait(minute(t), 1))
	must(t, dev.Close())
	must(t, far.Close())
}

func TestPoolWaitEnds(t *testing.T) {
	eachWaitPool(t, "B182 what never fits fails", 2*half, func(t *testing.T, x waitPool) {
		s, q := semaphores(t, 4), x.dev.Queue(0)
		a := alloca(t, q, gpu.Order{Signal: pts(s[0], 1)}, x.p, half)
		must(t, s[0].Wait(minute(t), 1))
		alloca(t, q, gpu.Order{Signal: pts(s[1], 1)}, x.p, 2*half) // waits
		for i, size := range []uint64{2*half + 1, 1 << 63} {
			alloca(t, q, gpu.Order{Signal: pts(s[2+i], 1)}, x.p, size)
			if err := s[2+i].Wait(minute(t), 1); !errors.Is(err, driver.ErrOutOfMemory) {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
		must(t, a.Dealloca(gpu.Order{}))
		must(t, s[1].Wait(minute(t), 1))
	})
	eachCaps(t, "B182 what never fits a buffer that is no multiple of the alignment fails", func(t *testing.T, caps driver.Caps) {
		dev, s := openDevice(t, newSim(t, simdriver.Config{Caps: &caps}), 0, gpu.Options{}), semaphores(t, 2)
		p := newPool(t, dev, gpu.PoolOptions{Over: allocate(t, dev, 1000), Wait: true})
		alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, p, 768)
		must(t, s[0].Wait(minute(t), 1))
		alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s[1], 1)}, p, 769)
		if err := s[1].Wait(soon(t), 1); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%v", err)
		}
		must(t, dev.Close())
	})
	eachWaitPool(t, "B182 the pool is closed, or the device", 2*half, func(t *testing.T, x waitPool) {
		s := semaphores(t, 4)
		a := alloca(t, x.dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, x.p, 2*half)
		must(t, s[0].Wait(minute(t), 1))
		alloca(t, x.dev.Queue(0), gpu.Order{Signal: pts(s[1], 1)}, x.p, half)
		alloca(t, x.dev.Queue(1), gpu.Order{Signal: pts(s[2], 1)}, x.p, half)
		waiting(t, x.p, 2)
		must(t, x.p.Close())
		for i := range 2 {
			if err := s[1+i].Wait(minute(t), 1); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("%v", err)
			}
		}
		must(t, a.Dealloca(gpu.Order{Signal: pts(s[0], 2)}))
		must(t, s[0].Wait(minute(t), 2))
		p := newPool(t, x.dev, gpu.PoolOptions{MaxSize: 2 * half, Portable: x.p.Options().Portable, Wait: true})
		alloca(t, x.dev.Queue(0), gpu.Order{}, p, 2*half)
		alloca(t, x.dev.Queue(1), gpu.Order{Signal: pts(s[3], 1)}, p, half)
		waiting(t, p, 1)
		must(t, x.dev.Close())
		if err := s[3].Wait(minute(t), 1); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
	eachWaitPool(t, "B182 the device is lost", 2*half, func(t *testing.T, x waitPool) {
		s, mem := semaphores(t, 5), allocate(t, x.dev, 64)
		alloca(t, x.dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, x.p, 2*half)
		must(t, s[0].Wait(minute(t), 1))
		for i := range 3 {
			alloca(t, x.dev.Queue(i), gpu.Order{Signal: pts(s[1+i], 1)}, x.p, half)
		}
		waiting(t, x.p, 3)
		x.sim.LoseDevice(0, nil)
		err := x.dev.Queue(3).Fill(gpu.Order{Signal: pts(s[4], 1)}, mem.All(), []byte{1}) // which finds the loss, unless an alloca has
		if err != nil && !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
		for i := range 3 {
			if err := s[1+i].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("%v", err)
			}
		}
		x.dev.Close()
	})
	eachWaitPool(t, "B183 an alloca is given up", 2*half, func(t *testing.T, x waitPool) {
		s := semaphores(t, 4)
		a := alloca(t, x.dev.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, x.p, half)
		must(t, s[0].Wait(minute(t), 1))
		large := alloca(t, x.dev.Queue(0), gpu.Order{Signal: pts(s[1], 1)}, x.p, 2*half)
		next := alloca(t, x.dev.Queue(1), gpu.Order{Signal: pts(s[2], 1)}, x.p, 2*half)
		last := alloca(t, x.dev.Queue(2), gpu.Order{Signal: pts(s[3], 1)}, x.p, half)
		waiting(t, x.p, 3)
		must(t, large.Close())
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("%v", err)
		}
		waiting(t, x.p, 2)
		told, parked := errors.New("told"), x.parked(t, 2)
		if len(parked[0].Waits) != 1 || parked[0].Waits[0].Pool != x.p || parked[0].Waits[0].Size != 2*half || parked[1].Waits[0].Ahead != 1 {
			t.Fatalf("%v", parked)
		}
		parked[0].Waits[0].Semaphore.Fail(told)
		if err := s[2].Wait(minute(t), 1); !errors.Is(err, told) {
			t.Errorf("%v", err)
		}
		must(t, s[3].Wait(minute(t), 1)) // for which there was room all the time
		must(t, a.Dealloca(gpu.Order{}))
		must(t, last.Dealloca(gpu.Order{}))
		must(t, next.Close())
		unused(t, x.p)
	})
	eachWaitPool(t, "B183 allocas that wait for each other's deallocas are told", 2*half, func(t *testing.T, x waitPool) {
		s := semaphores(t, 3)
		var b [2]*gpu.Buffer
		for i := range b {
			b[i] = alloca(t, x.dev.Queue(0), gpu.Order{Signal: pts(s[0], uint64(i+1))}, x.p, half)
			must(t, s[0].Wait(minute(t), uint64(i+1)))
		}
		for i := range b {
			alloca(t, x.dev.Queue(1), gpu.Order{Signal: pts(s[1+i], 1)}, x.p, half)
			must(t, b[i].Dealloca(order(s[1+i], 1, s[1+i], 2)))
		}
		waiting(t, x.p, 2)
		parked := x.parked(t, 4)
		ahead := 0
		for _, p := range parked {
			line := p.String()
			switch {
			case p.Op == "alloca" && (!strings.Contains(line, fmt.Sprintf("waits for %d bytes of a pool of at most %d", half, 2*half)) ||
				!strings.Contains(line, fmt.Sprintf("%d ahead", ahead)) || !strings.Contains(line, "by: dealloca on queue 0")),
				p.Op == "dealloca" && !strings.Contains(line, "by: alloca on queue 1"):
				t.Errorf("%s", line)
			}
			if p.Op == "alloca" {
				ahead++
				must(t, p.Waits[0].Semaphore.Close())
			}
		}
		if ahead != 2 {
			t.Errorf("%v", parked)
		}
		if err := s[2].Wait(minute(t), 2); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("%v", err)
		}
		must(t, b[0].Close())
		must(t, b[1].Close())
		unused(t, x.p)
	})
}
