package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

func pts(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

func order(w *gpu.Semaphore, wv uint64, s *gpu.Semaphore, sv uint64) gpu.Order {
	return gpu.Order{Wait: pts(w, wv), Signal: pts(s, sv)}
}

func semaphores(t testing.TB, n int) (all []*gpu.Semaphore) {
	t.Helper()
	for range n {
		s, err := gpu.NewSemaphore(0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func openDevice(t testing.TB, d driver.Driver, i int, o gpu.Options) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(d, i, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func allocate(t testing.TB, d *gpu.Device, size uint64) *gpu.Buffer {
	t.Helper()
	b, err := d.Alloc(gpu.DeviceMem, size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func minute(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// scenario uses all that a program may use, on two devices, and ends whatever fails on the way. It reports what never ended.
func scenario(ctx context.Context, d driver.Driver) (err error) {
	var devs []*gpu.Device
	defer func() {
		for _, dev := range devs {
			dev.Close() // with its error, if the fault meets it
		}
	}()
	for i := range 2 {
		dev, err := gpu.Open(d, i, gpu.Options{Queues: 2, Events: 2, StageSize: 4096, Spin: -1, Poll: -1}) // what asks little makes few calls
		if err != nil {
			return nil
		}
		devs = append(devs, dev)
	}
	var bufs []*gpu.Buffer
	for _, dev := range devs {
		b, err := dev.Alloc(gpu.DeviceMem, 256)
		if err != nil {
			return nil
		}
		bufs = append(bufs, b)
	}
	x, err := devs[0].Load(kernels.Basic)
	if err != nil {
		return nil
	}
	k, err := x.Kernel("index")
	if err != nil {
		return nil
	}
	var sems []*gpu.Semaphore
	for range 12 {
		s, _ := gpu.NewSemaphore(0)
		sems = append(sems, s)
	}
	data := make([]byte, 256)
	n, one, ptr := uint64(64), uint32(1), bufs[0].Ptr()
	a, b := bufs[0], bufs[1]
	q := func(dev, i int) *gpu.Queue { return devs[dev].Queue(i) }
	host := sems[0]
	for i, submit := range []func(o gpu.Order) error{
		func(o gpu.Order) error { return q(0, 0).Fill(o, a.All(), []byte{1}) },
		func(o gpu.Order) error { return q(0, 1).Update(o, a.Range(0, 128), data[:128]) },
		func(o gpu.Order) error { return q(1, 0).Copy(o, b.All(), a.All()) },
		func(o gpu.Order) error {
			return q(0, 0).Dispatch(o, gpu.Dispatch{Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64}, Sizes: []int{8, 4, 4, 8},
				Args: []unsafe.Pointer{unsafe.Pointer(&n), unsafe.Pointer(&one), unsafe.Pointer(&one), unsafe.Pointer(&ptr)}})
		},
		func(o gpu.Order) error { return q(0, 1).Copy(o, a.Range(0, 64), a.Range(64, 64)) },
		func(o gpu.Order) error { return q(1, 1).Barrier(o) },
		func(o gpu.Order) error { return q(1, 1).HostCall(o, func() error { return nil }) },
		func(o gpu.Order) error { return q(1, 0).Fill(o, b.All(), []byte{3}) },
		func(o gpu.Order) error { return q(0, 0).Download(o, data, b.All()) },
		func(o gpu.Order) error { return q(0, 1).Fill(o, a.All(), []byte{4}) },
	} {
		o := order(sems[i], 1, sems[i+1], 1)
		if i >= 5 {
			o.Wait = append(o.Wait, gpu.Point{Semaphore: sems[i-3], Value: 1})
		}
		if i == 4 {
			host.Signal(1) // what came before was parked
		}
		if err := submit(o); err != nil {
			sems[i+1].Fail(err)
		}
	}
	if err := q(1, 1).Fill(order(host, 1, sems[11], 1), b.Range(0, 0), []byte{1}); err != nil {
		sems[11].Fail(err)
	}
	b.Close()
	x.Close()
	for i, s := range sems {
		if s.Wait(ctx, 1); ctx.Err() != nil {
			return fmt.Errorf("semaphore %d is neither reached nor failed", i)
		}
	}
	return nil
}

// TestFaults fails the n-th native call, for every n: nobody hangs, nothing is left behind, every signal is reached or
// fails, and no memory is given back while the device uses it.
func TestFaults(t *testing.T) {
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	for name, caps := range map[string]*driver.Caps{"cuda": &cuda, "hip": &hip} {
		for kind, fault := range map[string]simdriver.Fault{
			"a call":                    {},
			"a call out of memory":      {OOM: true},
			"a call that loses":         {Lost: true},
			"an operation when it runs": {AtExecution: true},
		} {
			t.Run("B77 B80 B81 B85 B87 "+name+", "+kind, func(t *testing.T) {
				now := goleak.IgnoreCurrent()
				total := uint64(1)
				for n := uint64(0); n <= total+10; n++ {
					var mu sync.Mutex
					var broken error
					d := simdriver.New(simdriver.Config{Devices: 2, Caps: caps, Strict: true, Kernels: simKernels, OnExecute: func(e simdriver.Executed) {
						if e.Err != nil {
							mu.Lock()
							broken = e.Err
							mu.Unlock()
						}
					}})
					var hit *simdriver.Injected
					if n > 0 {
						f := fault
						f.Device, f.N = simdriver.AnyDevice, n
						hit = d.Inject(f)
					}
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					err := scenario(ctx, d)
					cancel()
					if n == 0 {
						total = d.Calls()
						t.Logf("%d calls", total)
					}
					if err != nil {
						t.Errorf("call %d: %v", n, err)
					}
					mu.Lock()
					if broken != nil && !fault.Lost && !fault.AtExecution {
						t.Errorf("call %d: %v", n, broken)
					}
					mu.Unlock()
					for _, name := range d.Leaks() {
						// A stream that waits for a lost device ends when its goroutine finds out, and until then it and
						// what it waits for cannot be destroyed.
						if (fault.Lost || fault.AtExecution) && (strings.HasPrefix(name, "stream ") || strings.HasPrefix(name, "event ")) {
							continue
						}
						t.Errorf("call %d: left behind: %s", n, name)
					}
					if t.Failed() {
						t.Fatalf("call %d failed %v", n, hit != nil && hit.Hits() > 0)
					}
				}
				goleak.VerifyNone(t, now)
			})
		}
	}
}

func TestLost(t *testing.T) {
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
	t.Run("B81 a lost device fails what it has and what it gets, and no other device", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2})
		lost, other := openDevice(t, d, 0, gpu.Options{Queues: 2}), openDevice(t, d, 1, gpu.Options{})
		ctx, cause := minute(t), errors.New("fell off the bus")
		s := semaphores(t, 6)
		a, b := allocate(t, lost, 64), allocate(t, other, 64)
		d.StallDevice(0)
		must(t, lost.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 1)}, a.All(), []byte{1}))                                                                               // in flight
		must(t, lost.Queue(1).Fill(order(s[1], 1, s[2], 1), a.All(), []byte{1}))                                                                                       // parked
		must(t, other.Queue(0).Fill(gpu.Order{Wait: []gpu.Point{{Semaphore: s[0], Value: 1}, {Semaphore: s[1], Value: 1}}, Signal: pts(s[3], 1)}, b.All(), []byte{1})) // parked elsewhere
		waiter := make(chan error, 1)
		go func() { waiter <- s[0].Wait(ctx, 1) }()
		d.LoseDevice(0, cause)
		if err := <-waiter; !errors.Is(err, cause) || !errors.Is(err, driver.ErrLost) {
			t.Errorf("the waiter got %v", err)
		}
		must(t, s[1].Signal(1))
		for _, i := range []int{2, 3} {
			if err := s[i].Wait(ctx, 1); !errors.Is(err, cause) || !errors.Is(err, driver.ErrLost) {
				t.Errorf("semaphore %d: %v", i, err)
			}
		}
		if err := lost.Queue(0).Barrier(gpu.Order{Signal: pts(s[4], 1)}); !errors.Is(err, driver.ErrLost) {
			t.Errorf("a submission to a lost device: %v", err)
		}
		if err := s[4].Wait(ctx, 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("its signal: %v", err)
		}
		if _, err := lost.Alloc(gpu.DeviceMem, 16); !errors.Is(err, driver.ErrLost) {
			t.Errorf("an allocation: %v", err)
		}
		must(t, other.Queue(0).Fill(gpu.Order{Signal: pts(s[5], 1)}, b.All(), []byte{1}))
		must(t, s[5].Wait(ctx, 1))
	})
	t.Run("B78 B81 what another device has been given behind a lost one fails", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2})
		lost, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		ctx := minute(t)
		s := semaphores(t, 5)
		a, b := allocate(t, lost, 64), allocate(t, other, 64)
		d.StallDevice(0)
		must(t, lost.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 1)}, a.All(), []byte{1}))
		must(t, other.Queue(0).Fill(order(s[0], 1, s[1], 1), b.All(), []byte{1}))
		must(t, other.Queue(0).Fill(order(s[1], 1, s[2], 1), b.All(), []byte{1}))
		d.LoseDevice(0, nil)
		for _, i := range []int{2, 1, 0} {
			if err := s[i].Wait(ctx, 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("semaphore %d: %v", i, err)
			}
		}
		must(t, other.Queue(0).Fill(gpu.Order{Signal: pts(s[4], 1)}, b.All(), []byte{1}))
		must(t, s[4].Wait(ctx, 1))
	})
	t.Run("B81 a kernel that does what it must not", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{})
		x, err := dev.Load(kernels.Basic)
		must(t, err)
		k, err := x.Kernel("index")
		must(t, err)
		s := semaphores(t, 2)
		n, one, ptr := uint64(64), uint32(1), driver.Ptr(0xdead0000)
		must(t, dev.Queue(0).Dispatch(gpu.Order{Signal: pts(s[0], 1)}, gpu.Dispatch{Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64},
			Args: []unsafe.Pointer{unsafe.Pointer(&n), unsafe.Pointer(&one), unsafe.Pointer(&one), unsafe.Pointer(&ptr)}}))
		dev.Queue(0).Barrier(order(s[0], 1, s[1], 1))
		for _, s := range s {
			var access *simdriver.AccessError
			if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) || !errors.As(err, &access) {
				t.Errorf("Wait = %v", err)
			}
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStuck closes a device whose work does not end.
func TestStuck(t *testing.T) {
	t.Run("B85 Close ends in bounded time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := simdriver.New(simdriver.Config{Devices: 2, Kernels: simKernels})
			dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
			s := semaphores(t, 4)
			a, b := allocate(t, dev, 64), allocate(t, other, 64)
			d.StallDevice(0)
			must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s[0], 1)}, a.All(), []byte{1}))
			must(t, dev.Queue(0).Fill(order(s[3], 1, s[1], 1), a.All(), []byte{1}))
			must(t, other.Queue(0).Fill(gpu.Order{Wait: []gpu.Point{{Semaphore: s[1], Value: 1}, {Semaphore: s[0], Value: 1}}, Signal: pts(s[2], 1)}, b.All(), []byte{1}))
			got := make(chan error, 1)
			go func() { got <- s[0].Wait(context.Background(), 1) }()
			start := time.Now()
			dev.Close()
			if took := time.Since(start); took > 11*time.Second {
				t.Errorf("Close took %v", took)
			}
			if err := <-got; !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("the waiter got %v", err)
			}
			for i := range 3 {
				if err := s[i].Wait(context.Background(), 1); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("semaphore %d: %v", i, err)
				}
			}
			d.LoseDevice(0, nil)
			d.ResumeDevice(0)
			other.Close()
		})
	})
}
