package memory_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

var seed = flag.Uint64("gpu.seed", 0, "seed of the random tests; 0 takes one")

// TestPoolRandomFaults allocates, fills, reads and frees memory of pools of several kinds, and
// executes recordings that bind this memory, while driver calls fail at random. If a signal is
// reached, the data must be right. No memory may have two owners, nothing may hang, and nothing may
// leak.
func TestPoolRandomFaults(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	for seed := first; seed < first+30 && !t.Failed(); seed++ {
		poolFaults(t, seed)
		if t.Failed() {
			t.Errorf("failed with -gpu.seed=%d", seed)
		}
	}
}

func poolFaults(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	caps := simdriver.CUDACaps()
	switch r.IntN(4) {
	case 0:
		caps = simdriver.HIPCaps()
	case 1:
		caps = hipPoolCaps()
	}
	var mu sync.Mutex
	var broken error
	d := newSim(t, simdriver.Config{Caps: &caps, OnExecute: func(e simdriver.Executed) {
		if e.Err != nil {
			mu.Lock()
			broken = e.Err
			mu.Unlock()
		}
	}})
	dev := openDevice(t, d, 0, gpu.Options{Queues: 3, Events: 1 + r.IntN(4)})
	o := gpu.PoolOptions{Portable: r.IntN(2) == 0, MaxSize: 1 << 20, Zero: r.IntN(3) == 0, Threshold: r.Uint64N(1 << 18)}
	switch r.IntN(4) {
	case 0:
		o.Kind = gpu.HostMem
	case 1:
		o.MaxSize, o.Over = 0, allocate(t, dev, 1<<20)
	}
	p := newPool(t, dev, o)
	words := make([]byte, 4*200)
	source, err := dev.ImportHost(words, nil)
	must(t, err)
	moves := []*gpu.CommandBuffer{nested(t, dev, gpu.StreamMode), nested(t, dev, gpu.GraphMode)}
	ctx := minute(t)
	type look struct {
		got  []byte
		word [4]byte
		done gpu.Point
	}
	var looks []look
	var ends []gpu.Point
	ops := []simdriver.Op{simdriver.OpAllocAsync, simdriver.OpFreeAsync, simdriver.OpAlloc, simdriver.OpFree, simdriver.OpRecord,
		simdriver.OpStreamWait, simdriver.OpFill, simdriver.OpNewEvent, simdriver.OpQuery,
		simdriver.OpNewGraph, simdriver.OpAddNode, simdriver.OpInstantiate, simdriver.OpSetNode, simdriver.OpLaunchGraph, simdriver.OpCopy}
	var fault *simdriver.Injected
	q := func() *gpu.Queue { return dev.Queue(r.IntN(3)) }
	for i := range 200 {
		// At most one fault is pending: if two events cannot be recorded, the device is lost.
		if (fault == nil || fault.Hits() > 0) && r.IntN(4) == 0 {
			fault = d.Inject(simdriver.Fault{Op: ops[r.IntN(len(ops))], N: 1 + r.Uint64N(8)})
		}
		s, v := semaphores(t, 1)[0], uint64(0)
		next := func() gpu.Order { v++; return gpu.Order{Wait: pts(s, v-1), Signal: pts(s, v)} }
		taken := func(err error) bool { // if a call returns an error, its signals are never reached
			if err != nil {
				s.Fail(err)
			}
			return err == nil
		}
		o := next()
		if len(ends) > 0 && r.IntN(2) == 0 {
			if end := ends[r.IntN(len(ends))]; r.IntN(2) == 0 {
				o.Wait = append(o.Wait, end)
			} else {
				end.Semaphore.Wait(ctx, end.Value)
			}
		}
		b, err := testkit.AllocIn(q(), o, p, 4*(2+r.Uint64N(1<<uint(4+r.IntN(10)))))
		if !taken(err) {
			continue
		}
		x := look{got: make([]byte, 4)}
		binary.LittleEndian.PutUint32(x.word[:], uint32(seed)+uint32(i)*0x01010101)
		from := 4 * r.Uint64N(b.Size()/4)
		if r.IntN(3) == 0 { // a recording that binds the memory copies the word
			from = 0
			copy(words[4*i:], x.word[:])
			err = q().Submit(next(), gpu.Execute(moves[r.IntN(2)], b.Range(0, 8), source.Range(4*uint64(i), 4)))
		} else {
			err = q().Submit(next(), gpu.Fill(b.All(), x.word[:]))
		}
		if taken(err) {
			if o := next(); taken(q().Submit(o, gpu.Download(x.got, b.Range(from, 4)))) {
				x.done = o.Signal[0]
				looks = append(looks, x)
			}
		}
		switch {
		case r.IntN(5) == 0:
			b.Close()
		default:
			if o := next(); taken(q().Submit(o, gpu.Free(b))) {
				ends = append(ends, o.Signal[0])
			}
		}
	}
	good := 0
	for i, x := range looks {
		if x.done.Semaphore.Wait(ctx, x.done.Value) != nil {
			continue
		}
		if good++; !bytes.Equal(x.got, x.word[:]) {
			t.Errorf("look %d: %x, want %x", i, x.got, x.word)
		}
	}
	for _, p := range ends {
		p.Semaphore.Wait(ctx, p.Value)
	}
	if ctx.Err() != nil {
		t.Errorf("something is neither reached nor failed\n%s", dump(dev))
	}
	if good < len(looks)/4 {
		t.Errorf("%d of %d rounds succeeded", good, len(looks))
	}
	dev.Close()
	mu.Lock()
	defer mu.Unlock()
	if broken != nil {
		t.Error(broken)
	}
}

// nested records two executions of another recording, which copies 4 bytes. The first execution
// copies bytes 0 to 3 of y to bytes 4 to 7 of x. The second execution copies bytes 4 to 7 of x to
// bytes 0 to 3 of x.
func nested(t *testing.T, dev *gpu.Device, m gpu.Mode) *gpu.CommandBuffer {
	record := func(m gpu.Mode) (c *gpu.CommandBuffer, x, y *gpu.Buffer) {
		c = commandBuffer(t, dev, m)
		x, err := c.Binding()
		must(t, err)
		y, err = c.Binding()
		must(t, err)
		return c, x, y
	}
	child, x, y := record(gpu.AutoMode)
	recorded(t)(child.Add(gpu.Copy(x.Range(0, 4), y.Range(0, 4))))
	must(t, child.End())
	c, x, y := record(m)
	recorded(t)(c.Add(gpu.Execute(child, x.Range(4, 4), y.Range(0, 4))))
	recorded(t)(c.Add(gpu.Barrier()))
	recorded(t)(c.Add(gpu.Execute(child, x.Range(0, 4), x.Range(4, 4))))
	must(t, child.Close())
	must(t, c.End())
	return c
}

// TestFreeRefused makes the driver fail once to free memory or to destroy another object, with an
// error that is not a loss of the device. The object must be neither reused nor freed again, and
// the program must get the error, from the call that frees the object or from Close.
func TestFreeRefused(t *testing.T) {
	fault := simdriver.Fault{Op: simdriver.OpFree, Device: simdriver.AnyDevice, N: 1}
	// use allocates four buffers in two slabs of a pool, fills them, and frees them.
	use := func(t *testing.T, p *gpu.Pool, q *gpu.Queue) {
		t.Helper()
		s := semaphores(t, 1)[0]
		var all []*gpu.Buffer
		for i := range uint64(4) {
			b := alloca(t, q, gpu.Order{}, p, 1<<20)
			must(t, q.Submit(gpu.Order{Signal: pts(s, i+1)}, gpu.Fill(b.All(), []byte{1})))
			all = append(all, b)
		}
		must(t, s.Wait(minute(t), 4))
		for i, b := range all {
			must(t, q.Submit(gpu.Order{Signal: pts(s, uint64(5+i))}, gpu.Free(b)))
		}
		must(t, s.Wait(minute(t), 8))
	}
	for name, giveBack := range map[string]func(p *gpu.Pool, dev *gpu.Device) error{
		"Trim": func(p *gpu.Pool, _ *gpu.Device) error { return p.Trim(0) },
		// This releases one of two slabs.
		"SetThreshold": func(p *gpu.Pool, _ *gpu.Device) error { return p.SetThreshold(2 << 20) },
		"Close of the pool": func(p *gpu.Pool, dev *gpu.Device) error {
			// The reclaimer frees the memory, and the device's Close returns the error.
			return errors.Join(p.Close(), dev.Close())
		},
		"Close of the device": func(_ *gpu.Pool, dev *gpu.Device) error { return dev.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev := openDevice(t, d, 0, gpu.Options{})
				p := newPool(t, dev, gpu.PoolOptions{Portable: true})
				use(t, p, dev.Queue(0))
				d.Inject(fault)
				if err := giveBack(p, dev); !errors.Is(err, simdriver.ErrInjected) {
					t.Errorf("the error is %v", err)
				}
				if st, err := p.Stats(); err == nil {
					if st.Reserved > 0 && name != "SetThreshold" || st.Reserved > 2<<20 {
						t.Errorf("%+v", st)
					}
					use(t, p, dev.Queue(0))
				}
				if err := dev.Close(); name != "Close of the device" && name != "Close of the pool" && err != nil {
					t.Errorf("freed again, or used: %v", err)
				}
			})
		})
	}
	// Each function makes an object and closes it. If the driver does not support the object, the
	// fault is not hit.
	for name, giveBack := range map[simdriver.Op]func(t *testing.T, dev *gpu.Device){
		simdriver.OpFree: func(t *testing.T, dev *gpu.Device) { allocate(t, dev, 64).Close() },
		simdriver.OpUnregister: func(t *testing.T, dev *gpu.Device) {
			b, err := dev.ImportHost(make([]byte, 64), nil)
			if !errors.Is(err, driver.ErrUnsupported) {
				must(t, err)
				b.Close()
			}
		},
		simdriver.OpUnload: func(t *testing.T, dev *gpu.Device) {
			x, err := dev.Load(simdriver.Image("nothing"))
			must(t, err)
			x.Close()
		},
		simdriver.OpDestroyExec: func(t *testing.T, dev *gpu.Device) {
			c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
			if errors.Is(err, driver.ErrUnsupported) {
				return
			}
			must(t, err)
			b := allocate(t, dev, 64)
			for i := range uint64(8) {
				recorded(t)(c.Add(gpu.Fill(b.Range(8*i, 8), []byte{1})))
			}
			must(t, c.End())
			s := semaphores(t, 1)[0]
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c)))
			must(t, s.Wait(minute(t), 1))
			c.Close()
		},
		simdriver.OpDestroyPool: func(t *testing.T, dev *gpu.Device) { newPool(t, dev, gpu.PoolOptions{}).Close() },
		simdriver.OpFreeAsync: func(t *testing.T, dev *gpu.Device) {
			alloca(t, dev.Queue(0), gpu.Order{}, nil, 64).Close()
		},
	} {
		t.Run(string(name)+", for something that has been closed", func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev := openDevice(t, d, 0, gpu.Options{})
				f := d.Inject(simdriver.Fault{Op: name, Device: simdriver.AnyDevice, N: 1})
				giveBack(t, dev)
				synctest.Wait()
				hit := f.Hits() > 0
				f.Remove()
				err := dev.Close()
				if hit != errors.Is(err, simdriver.ErrInjected) || errors.Is(err, simdriver.ErrInvalidHandle) {
					t.Errorf("Close = %v", err)
				}
			})
		})
	}
}

// TestTrimWhileClosing closes a device while a pool is being trimmed, a little later in each round.
// Close must succeed, and Trim may return no error except ErrClosed.
func TestTrimWhileClosing(t *testing.T) {
	for i := range 60 {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{})
		p, err := dev.NewPool(gpu.PoolOptions{Portable: true, Threshold: gpu.KeepAll})
		must(t, err)
		var all []*gpu.Buffer
		q := dev.Queue(0)
		s := semaphores(t, 1)[0]
		for range 60 {
			b, err := testkit.AllocIn(q, gpu.Order{}, p, 1<<20)
			must(t, err)
			all = append(all, b)
		}
		for _, b := range all {
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
		}
		must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		must(t, s.Wait(minute(t), 1))
		done := make(chan error, 1)
		go func() { done <- p.Trim(0) }()
		time.Sleep(time.Duration(i) * 10 * time.Microsecond)
		if err := dev.Close(); err != nil {
			t.Error("close", err)
		}
		if err := <-done; err != nil && !errors.Is(err, gpu.ErrClosed) {
			t.Error("trim", err)
		}
	}
}

// A slowAccess is a driver whose AccessPool gives access and returns a second later. AccessPool
// revokes access at once.
type slowAccess struct{ driver.Driver }

type slowAccessDevice struct {
	driver.Device
	driver.Pools
}

func (d slowAccess) Open(i int) (driver.Device, error) {
	v, err := d.Driver.Open(i)
	if err != nil {
		return nil, err
	}
	return slowAccessDevice{v, v.(driver.Pools)}, nil
}

func (v slowAccessDevice) AccessPool(p driver.Pool, by driver.Device, allow bool) error {
	err := v.Pools.AccessPool(p, by.(slowAccessDevice).Device, allow)
	if allow {
		time.Sleep(time.Second)
	}
	return err
}

// TestAccessTogether gives a device access to a pool, and revokes it while the driver call still
// runs. The driver and the runtime must agree which of the two came last, and the runtime must
// refuse work without access.
func TestAccessTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := slowAccess{newSim(t, simdriver.Config{Devices: 2})}
		dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		p := newPool(t, dev, gpu.PoolOptions{})
		s := semaphores(t, 1)[0]
		b := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s, 1)}, p, 64)
		must(t, s.Wait(minute(t), 1))
		given := make(chan error)
		go func() { given <- p.Access(other, true) }()
		synctest.Wait() // the driver has given access
		must(t, p.Access(other, false))
		must(t, <-given)
		if err := other.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("a fill by a device whose access was taken away: %v", err)
		}
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
	})
}

// TestAccessFails makes the driver refuse to give access to a pool, and to revoke it. The device
// must then have access exactly if it had access before.
func TestAccessFails(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	dev := openDevice(t, d, 0, gpu.Options{})
	other := openDevice(t, d, 1, gpu.Options{})
	p := newPool(t, dev, gpu.PoolOptions{})
	s := semaphores(t, 1)[0]
	b := alloca(t, dev.Queue(0), gpu.Order{Signal: pts(s, 1)}, p, 64)
	must(t, s.Wait(minute(t), 1))
	has := func(want bool) {
		t.Helper()
		err := other.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1}))
		if want && err != nil || !want && !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("access is %v, but a fill by the other device returns %v", want, err)
		}
		must(t, other.Queue(0).Flush())
	}
	fails := func(allow bool) {
		t.Helper()
		d.Inject(simdriver.Fault{Op: simdriver.OpAccessPool, Device: simdriver.AnyDevice, N: 1})
		if err := p.Access(other, allow); !errors.Is(err, simdriver.ErrInjected) {
			t.Errorf("Access(%v) = %v", allow, err)
		}
	}
	has(false)
	fails(true)
	has(false)
	fails(false) // there is no access to revoke
	has(false)
	must(t, p.Access(other, true))
	has(true)
	fails(false)
	has(true)
	end := semaphores(t, 1)[0]
	must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(end, 1)}, gpu.Fill(b.All(), []byte{1})))
	must(t, end.Wait(minute(t), 1)) // the earlier fills of this queue are done too
	must(t, p.Access(other, false))
	has(false)
	must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
}
