package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// heldCalls are calls that may block in the driver for long: for example while the driver compiles,
// allocates or pins memory.
var heldCalls = []struct {
	name string
	op   simdriver.Op // the driver's slow call
	call func(x *heldStand) error
}{
	{"load", simdriver.OpLoad, func(x *heldStand) error {
		code, err := x.dev.Load(simdriver.Image("nothing"))
		return errors.Join(err, code.Close())
	}},
	{"kernel", simdriver.OpFunction, func(x *heldStand) error {
		_, err := x.code.Kernel("nothing")
		return err
	}},
	{"global", simdriver.OpGlobal, func(x *heldStand) error {
		b, err := x.code.Global("table")
		return errors.Join(err, b.Close())
	}},
	{"alloc", simdriver.OpAlloc, func(x *heldStand) error {
		b, err := x.dev.Alloc(gpu.DeviceMem, 64)
		return errors.Join(err, b.Close())
	}},
	{"import", simdriver.OpRegister, func(x *heldStand) error {
		b, err := x.dev.ImportHost(make([]byte, 64), nil)
		return errors.Join(err, b.Close())
	}},
	{"timestamp", simdriver.OpNewTimer, func(x *heldStand) error {
		c, err := x.dev.NewCommandBuffer(gpu.CommandOptions{})
		if err == nil {
			_, err = c.Timestamp()
		}
		return errors.Join(err, c.End(), c.Close())
	}},
	{"peers", simdriver.OpEnablePeer, func(x *heldStand) error {
		_, err := gpu.NewGroup(x.dev, x.other)
		return err
	}},
}

type heldStand struct {
	dev, other *gpu.Device
	code       *gpu.Module
	b          *gpu.Buffer
}

func newHeldStand(t *testing.T, d *simdriver.Driver, opt gpu.Options) *heldStand {
	x := &heldStand{dev: openDevice(t, d, 0, opt), other: openDevice(t, d, 1, gpu.Options{})}
	code, err := x.dev.Load(simdriver.Image("nothing", "table=64"))
	must(t, err)
	x.code, x.b = code, allocate(t, x.dev, 64)
	return x
}

// TestHeldCalls blocks calls of the program in the driver. Meanwhile parked work must be issued and
// end.
func TestHeldCalls(t *testing.T) {
	for _, held := range heldCalls {
		t.Run(held.name, func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				x := newHeldStand(t, d, gpu.Options{})
				s, returned := semaphores(t, 2), make(chan error, 1)
				for i := range uint64(100) {
					must(t, x.dev.Queue(0).Submit(order(s[0], 1, s[1], i+1), gpu.Fill(x.b.Range(i%64, 1), []byte{1})))
				}
				d.SetLatency(held.op, time.Hour)
				go func() { returned <- held.call(x) }()
				synctest.Wait()
				if len(returned) > 0 { // the device lacks the feature
					if err := <-returned; err != nil && !errors.Is(err, driver.ErrUnsupported) {
						t.Error(err)
					}
					return
				}
				must(t, s[0].Signal(1))
				must(t, s[1].Wait(in(t, time.Minute), 100))
				if len(returned) > 0 {
					t.Error("the fills have waited for the call")
				}
				must(t, <-returned)
				d.SetLatency(held.op, 0)
				must(t, x.dev.Close())
			})
		})
	}
}

// TestHeldWhileClosing closes a device while a call blocks in the driver. No native object may be
// destroyed before that call returns.
func TestHeldWhileClosing(t *testing.T) {
	for _, held := range heldCalls {
		t.Run(held.name, func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				x := newHeldStand(t, d, gpu.Options{})
				returned := make(chan error, 1)
				d.SetLatency(held.op, 5*time.Second)
				go func() { returned <- held.call(x) }()
				synctest.Wait()
				must(t, x.dev.Close())
				<-returned
			})
		})
	}
}

// TestManyCallsAtOnce makes many allocations at once. The runtime must limit how many of them call
// the driver at the same time.
func TestManyCallsAtOnce(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		const n = 1000
		dev, made := openDevice(t, d, 0, gpu.Options{}), make(chan error, n)
		d.SetLatency(simdriver.OpAlloc, time.Second)
		start := time.Now()
		for range n {
			go func() {
				b, err := dev.Alloc(gpu.DeviceMem, 64)
				made <- errors.Join(err, b.Close())
			}()
		}
		for range n {
			must(t, <-made)
		}
		if took := time.Since(start); took < n/100*time.Second { // time of the synctest bubble
			t.Errorf("it took %v, so that each may have had a thread of its own", took)
		}
		d.SetLatency(simdriver.OpAlloc, 0)
		must(t, dev.Close())
	})
}

// TestHeldGrowth blocks the growth of a portable pool for an alloc that was parked. Meanwhile other
// parked work must be issued. The alloc must be issued when there is memory, and fail if there is
// none, or if the device is closed or lost.
func TestHeldGrowth(t *testing.T) {
	for name, end := range map[string]func(d *simdriver.Driver, dev *gpu.Device) error{
		"grown": func(*simdriver.Driver, *gpu.Device) error { return nil },
		"closed": func(_ *simdriver.Driver, dev *gpu.Device) error {
			dev.Close()
			return gpu.ErrClosed
		},
		"lost": func(d *simdriver.Driver, dev *gpu.Device) error {
			d.LoseDevice(0, nil)
			return driver.ErrLost
		},
		"none": func(d *simdriver.Driver, _ *gpu.Device) error {
			return driver.ErrOutOfMemory
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
				dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 4)
				q, b := dev.Queue(0), allocate(t, dev, 64)
				p, err := dev.NewPool(gpu.PoolOptions{Portable: true, Threshold: 1})
				must(t, err)
				m := alloca(t, q, order(s[0], 1, s[1], 1), p, 1<<20)
				must(t, q.Submit(order(s[1], 1, s[1], 2), gpu.Fill(m.All(), []byte{1})))
				must(t, q.Submit(order(s[2], 1, s[3], 1), gpu.Fill(b.All(), []byte{1})))
				d.SetLatency(simdriver.OpAlloc, time.Minute)
				if name == "none" {
					d.Inject(simdriver.Fault{Op: simdriver.OpAlloc, Device: 0, OOM: true})
				}
				// The signal of this host call makes the parked work ready.
				must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.HostCall(func() error { return nil })))
				synctest.Wait()
				start := time.Now()
				must(t, s[2].Signal(1))
				must(t, s[3].Wait(in(t, time.Second), 1))
				if time.Since(start) >= time.Second {
					t.Error("the fill has waited for the pool")
				}
				want := end(d, dev)
				if err := s[1].Wait(in(t, time.Hour), 2); !errors.Is(err, want) {
					t.Errorf("%v; want %v", err, want)
				}
				d.SetLatency(simdriver.OpAlloc, 0)
				if want == nil {
					must(t, dev.Queue(0).Submit(order(s[1], 2, s[1], 3), gpu.Free(m)))
					must(t, s[1].Wait(in(t, time.Minute), 3))
				}
				time.Sleep(time.Hour) // of the synctest bubble; meanwhile the blocked driver call returns
				if st := dev.Stats(); st.Parked+st.InFlight != 0 {
					t.Errorf("%+v", st)
				}
				dev.Close()
			})
		})
	}
}

// TestHeldInstantiate blocks the creation of a graph for an execution that was parked. Meanwhile
// other parked work must be issued, also on the same queue, and new submissions to that queue must
// not wait for the graph.
func TestHeldInstantiate(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Graphs {
			t.Skip("no graphs")
		}
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 5)
		q, b, m := dev.Queue(0), allocate(t, dev, 64), allocate(t, dev, 64)
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
		must(t, err)
		to, err := c.Binding()
		must(t, err)
		for i := range uint64(8) {
			_, err := c.Add(gpu.Fill(to.Range(i, 1), []byte{byte(i)}))
			must(t, err)
		}
		// Refuse the memory that a graph uses in place of the binding (see standInSize in package
		// recording), so that End makes no graph.
		d.Inject(simdriver.Fault{Op: simdriver.OpAlloc, N: 1, OOM: true})
		must(t, c.End())
		must(t, q.Submit(order(s[0], 1, s[1], 1), gpu.Execute(c, m.All())))
		must(t, q.Submit(order(s[2], 1, s[3], 1), gpu.Fill(b.All(), []byte{1})))
		d.SetLatency(simdriver.OpInstantiate, time.Minute)
		// The signal of this host call makes the parked work ready.
		must(t, q.Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.HostCall(func() error { return nil })))
		synctest.Wait()
		start := time.Now()
		must(t, s[2].Signal(1))
		must(t, s[3].Wait(in(t, time.Second), 1))
		must(t, q.Submit(gpu.Order{Signal: pts(s[4], 1)}, gpu.Fill(b.All(), []byte{2})))
		must(t, s[4].Wait(in(t, time.Second), 1))
		if time.Since(start) >= time.Second {
			t.Error("the fills have waited for the graph")
		}
		must(t, s[1].Wait(in(t, time.Hour), 1))
		if got := bytesOf(t, q, m); got[7] != 7 {
			t.Errorf("the recording has written %v", got[:8])
		}
		must(t, c.Close())
		must(t, dev.Close())
	})
}
