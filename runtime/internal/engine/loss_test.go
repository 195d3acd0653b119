package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// TestLossBelow loses a device whose work in flight signals a lower value than the waiters need.
// The waiters must get the error too, although no work in flight signals the value that they wait
// for.
func TestLossBelow(t *testing.T) {
	for name, wait := range waiters {
		for _, when := range []string{"before the work", "behind the work", "behind the work again"} {
			t.Run(name+" "+when, func(t *testing.T) {
				onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
					dev, other, s := openDevice(t, d, 0, gpu.Options{Spin: -1, Poll: -1}), openDevice(t, d, 1, gpu.Options{Spin: -1, Poll: -1}), semaphores(t, 1)[0]
					b := allocate(t, dev, 64)
					d.StallDevice(0)
					var ended <-chan error
					switch when {
					case "before the work":
						ended = wait(t, other, s, 2)
					case "behind the work again":
						s.OnReached(2, func(error) {})()
					}
					must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
					inFlight(t, dev, 1)
					if ended == nil {
						ended = wait(t, other, s, 2)
					}
					time.Sleep(time.Second) // time of the synctest bubble: the waiters have parked by now
					d.LoseDevice(0, nil)
					ends(t, ended, driver.ErrLost)
				})
			})
		}
	}
}

// TestLossIdle loses a device that has no work in flight. The next Flush must return the loss.
func TestLossIdle(t *testing.T) {
	for _, used := range []bool{false, true} {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev, cause := openDevice(t, d, 0, gpu.Options{}), errors.New("fell off the bus")
			if used {
				b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
				must(t, s.Wait(t.Context(), 1))
			}
			must(t, dev.Queue(0).Flush())
			d.LoseDevice(0, cause)
			if err := dev.Queue(0).Flush(); !errors.Is(err, cause) || !errors.Is(err, driver.ErrLost) {
				t.Errorf("used before: %t: %v", used, err)
			}
			if !dev.Stats().Lost {
				t.Errorf("used before: %t: Stats does not report the loss", used)
			}
		})
	}
}

// TestOpenLost opens a simulated device that was lost and is still open.
func TestOpenLost(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	lost, err := gpu.Open(d, 0, gpu.Options{})
	must(t, err)
	must(t, d.LoseDevice(0, errors.New("fell off the bus")))
	const want = "gpu: open device 0 of sim: sim: bind: fell off the bus: close every gpu.Device of it, then open it again (the device is lost)"
	if _, err := gpu.Open(d, 0, gpu.Options{}); fmt.Sprint(err) != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	lost.Close()
	again, err := gpu.Open(d, 0, gpu.Options{})
	must(t, err)
	must(t, again.Close())
}

// TestLossAtOnce makes the work of devices wait for one another in a chain. When the call that
// finds the loss of the first device returns, all devices of the chain must be lost. Other devices
// must not be lost: neither a device whose stream has passed its wait, nor a device that has copied
// from the lost device's memory.
func TestLossAtOnce(t *testing.T) {
	onEach(t, 5, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		const chain = 3
		var devs []*gpu.Device
		var mem, spare []*gpu.Buffer
		for i := range 5 {
			devs = append(devs, openDevice(t, d, i, gpu.Options{Spin: -1, Poll: -1, Queues: 2}))
			mem, spare = append(mem, allocate(t, devs[i], 64)), append(spare, allocate(t, devs[i], 64))
		}
		s, done, own := semaphores(t, chain), semaphores(t, 2), semaphores(t, 5)
		must(t, devs[0].Queue(0).Submit(gpu.Order{Signal: pts(done[0], 1)}, gpu.Fill(mem[0].All(), []byte{1})))
		must(t, devs[3].Queue(0).Submit(order(done[0], 1, done[1], 1), gpu.Fill(mem[3].All(), []byte{1})))
		must(t, devs[4].Queue(0).Submit(gpu.Order{Signal: pts(own[4], 1)}, gpu.Copy(mem[4].All(), spare[0].All())))
		for _, i := range []int{0, 3, 4} {
			eventually(t, "the work is done, for which nobody has asked", func() bool { return devs[i].Stats().Parked == 0 && d.Counters().Devices[i].Pending == 0 })
		}
		d.StallDevice(0)
		d.StallDevice(4)
		must(t, devs[0].Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(mem[0].All(), []byte{1})))
		must(t, devs[1].Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(mem[1].All(), []byte{1})))
		must(t, devs[2].Queue(0).Submit(order(s[1], 1, s[2], 1), gpu.Fill(mem[2].All(), []byte{1})))
		must(t, devs[4].Queue(0).Submit(gpu.Order{Signal: pts(own[4], 2)}, gpu.Fill(mem[4].All(), []byte{1})))
		for _, dev := range devs[:chain] {
			eventually(t, "it is issued", func() bool { return dev.Stats().Parked == 0 && dev.Stats().InFlight > 0 })
		}
		d.LoseDevice(0, nil)
		began := time.Now() // time of the synctest bubble
		if _, err := devs[0].Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
			t.Errorf("it is not lost: %v", err)
		}
		for i, dev := range devs {
			err := dev.Queue(1).Submit(gpu.Order{Signal: pts(own[i], 3)}, gpu.Fill(spare[i].All(), []byte{2}))
			if behind := i < chain; behind != dev.Stats().Lost || behind && (!errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), devs[0].Info().Name)) {
				t.Errorf("device %d: lost is %v, and later work gets %v", i, dev.Stats().Lost, err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		d.ResumeDevice(4)
		for _, s := range s {
			if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("in the chain: %v", err)
			}
		}
		for _, i := range []int{3, 4} {
			must(t, own[i].Wait(minute(t), 3))
		}
	})
}

// TestLossFar makes devices wait in a long chain, each for the next one. It loses the last device,
// and then waits for the first device's work. That wait must find the loss, so the other devices of
// the chain must be polled too.
func TestLossFar(t *testing.T) {
	const devices = 8
	onEach(t, devices, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		d.StallDevice(devices - 1)
		s := semaphores(t, devices+1)
		must(t, s[devices].Signal(1))
		for i := devices - 1; i >= 0; i-- {
			dev := openDevice(t, d, i, gpu.Options{})
			must(t, dev.Queue(0).Submit(order(s[i+1], 1, s[i], 1), gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
			inFlight(t, dev, 1)
		}
		d.LoseDevice(devices-1, nil)
		ctx, cancel := context.WithTimeout(t.Context(), devices*time.Second) // time of the synctest bubble
		defer cancel()
		if err := s[0].Wait(ctx, 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("the first: %v", err)
		}
	})
}

// TestLossBehindRefused submits an allocation that waits for work of another device. The stream
// gets the wait, and the driver refuses the allocation. Then the other device is lost. Later work
// of the stream must not hang behind the wait.
func TestLossBehindRefused(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Pools {
			return
		}
		lost, dev := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		p, s := newPool(t, dev, gpu.PoolOptions{MaxSize: 1 << 20}), semaphores(t, 3)
		alloca(t, dev.Queue(0), gpu.Order{}, p, 1<<20)
		d.StallDevice(0)
		must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, lost, 64).All(), []byte{1})))
		alloca(t, dev.Queue(0), order(s[0], 1, s[1], 1), p, 1<<20) // no memory is free
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		d.LoseDevice(0, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // time of the synctest bubble
		defer cancel()
		if err := s[2].Wait(ctx, 1); err != nil && !errors.Is(err, driver.ErrLost) {
			t.Errorf("the work behind the wait: %v", err)
		}
		if !dev.Stats().Lost {
			t.Error("the device is not lost, although its stream waits for the lost device")
		}
	})
}

// BenchmarkOnReachedBehind measures OnReached for the last of many submissions in flight.
func BenchmarkOnReachedBehind(b *testing.B) {
	for _, n := range []int{1, 100, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			d := newSim(b, simdriver.Config{})
			dev, s := openDevice(b, d, 0, gpu.Options{}), semaphores(b, 1)[0]
			buf := allocate(b, dev, 64)
			d.StallDevice(0)
			for i := range n {
				must(b, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, uint64(i)+1)}, gpu.Fill(buf.All(), []byte{1})))
			}
			for b.Loop() {
				s.OnReached(uint64(n), func(error) {})()
			}
			d.ResumeDevice(0)
		})
	}
}

func TestLost(t *testing.T) {
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
	t.Run("B81 a lost device fails its present and later work, and no other device", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2})
		lost, other := openDevice(t, d, 0, gpu.Options{Queues: 2}), openDevice(t, d, 1, gpu.Options{})
		ctx, cause := minute(t), errors.New("fell off the bus")
		s := semaphores(t, 6)
		a, b := allocate(t, lost, 64), allocate(t, other, 64)
		d.StallDevice(0)
		must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(a.All(), []byte{1}))) // in flight
		must(t, lost.Queue(1).Submit(order(s[1], 1, s[2], 1), gpu.Fill(a.All(), []byte{1})))         // parked
		// This fill is parked on the other device.
		must(t, other.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s[0], Value: 1}, {Semaphore: s[1], Value: 1}}, Signal: pts(s[3], 1)}, gpu.Fill(b.All(), []byte{1})))
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
		if err := lost.Queue(0).Submit(gpu.Order{Signal: pts(s[4], 1)}, gpu.Barrier()); !errors.Is(err, driver.ErrLost) {
			t.Errorf("a submission to a lost device: %v", err)
		}
		if err := s[4].Wait(ctx, 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("its signal: %v", err)
		}
		if _, err := lost.Alloc(gpu.DeviceMem, 16); !errors.Is(err, driver.ErrLost) {
			t.Errorf("an allocation: %v", err)
		}
		must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s[5], 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, s[5].Wait(ctx, 1))
	})
	t.Run("B78 B81 a device with a stream that waits for a lost one is lost too, as a whole, and others stay usable", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 3})
		lost, other, third := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Queues: 2}), openDevice(t, d, 2, gpu.Options{})
		ctx := minute(t)
		s := semaphores(t, 5)
		a, b := allocate(t, lost, 64), allocate(t, other, 64)
		d.StallDevice(0)
		must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(a.All(), []byte{1})))
		must(t, other.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.All(), []byte{1})))
		must(t, other.Queue(0).Submit(order(s[1], 1, s[2], 1), gpu.Fill(b.All(), []byte{1})))
		d.LoseDevice(0, nil)
		for _, i := range []int{2, 1, 0} {
			if err := s[i].Wait(ctx, 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("semaphore %d: %v", i, err)
			}
		}
		err := other.Queue(1).Submit(gpu.Order{Signal: pts(s[3], 1)}, gpu.Fill(b.All(), []byte{1}))
		if first := lost.Info().Name; !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), "waits for work of another device") ||
			!strings.Contains(err.Error(), first) {
			t.Errorf("another queue of it, which is lost after %s: %v", first, err)
		}
		must(t, third.Queue(0).Submit(gpu.Order{Signal: pts(s[4], 1)}, gpu.Fill(allocate(t, third, 64).All(), []byte{1})))
		must(t, s[4].Wait(ctx, 1))
	})
	t.Run("B78 B81 work after a barrier of a lost device fails, although the work before it does not", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2})
		lost, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Queues: 2})
		s, b := semaphores(t, 4), allocate(t, other, 64)
		d.StallDevice(1)
		must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, lost.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Barrier()))
		must(t, other.Queue(1).Submit(order(s[1], 1, s[2], 1), gpu.Fill(b.All(), []byte{1})))
		d.LoseDevice(0, nil)
		if _, err := lost.Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
			t.Errorf("it is not lost: %v", err)
		}
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("the barrier: %v", err)
		}
		d.ResumeDevice(1)
		if err := s[2].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("the work after it: %v", err)
		}
		must(t, s[0].Wait(minute(t), 1))
		must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s[3], 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, s[3].Wait(minute(t), 1))
	})
	t.Run("B78 B81 a device that follows completed work of a lost one stays usable", func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2})
		lost, other := openDevice(t, d, 0, gpu.Options{Spin: -1}), openDevice(t, d, 1, gpu.Options{Queues: 2})
		s, b := semaphores(t, 3), allocate(t, other, 64)
		must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, lost, 64).All(), []byte{1})))
		must(t, other.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(b.All(), []byte{1})))
		for i := range 2 {
			eventually(t, "both devices have done their parts, for which nobody has asked", func() bool { return d.Counters().Devices[i].Pending == 0 })
		}
		d.LoseDevice(0, nil)
		if _, err := lost.Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
			t.Errorf("it is not lost: %v", err)
		}
		// The host does not know that the lost device's work has completed.
		if err := s[1].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
		must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, s[2].Wait(minute(t), 1))
	})
	t.Run("B81 B85 a device closes although another one, stuck behind a lost one, waits for it", func(t *testing.T) {
		for _, caps := range []driver.Caps{simdriver.CUDACaps(), simdriver.HIPCaps()} {
			d := newSim(t, simdriver.Config{Devices: 3, Caps: &caps})
			lost, healthy, stuck := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{}), openDevice(t, d, 2, gpu.Options{})
			s := semaphores(t, 4)
			a, b, c := allocate(t, lost, 64), allocate(t, healthy, 64), allocate(t, stuck, 64)
			d.StallDevice(0)
			d.StallDevice(1)
			must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(a.All(), []byte{1})))
			must(t, healthy.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, stuck.Queue(0).Submit(order(s[0], 1, s[2], 1), gpu.Fill(c.All(), []byte{1})))
			given := func(waits uint64) {
				for d.Counters().Calls[simdriver.OpStreamWait] < waits {
					runtime.Gosched()
				}
			}
			given(1)
			must(t, stuck.Queue(0).Submit(order(s[1], 1, s[3], 1), gpu.Copy(c.All(), b.All())))
			given(2)
			d.LoseDevice(0, nil)
			d.ResumeDevice(1)
			for i, s := range s {
				if err := s.Wait(minute(t), 1); i != 1 && !errors.Is(err, driver.ErrLost) {
					t.Errorf("semaphore %d: %v", i, err)
				}
			}
			must(t, healthy.Close())
			must(t, stuck.Close())
		}
	})
	t.Run("B81 a faulty kernel", func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{})
		x, err := dev.Load(kernels.Basic)
		must(t, err)
		k, err := x.Kernel("index")
		must(t, err)
		s := semaphores(t, 2)
		ptr := driver.Ptr(0xdead0000)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Launch(k, gpu.Grid{Threads: [3]uint32{64}}, uint64(64), uint32(1), uint32(1), ptr)))
		dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Barrier())
		for _, s := range s {
			var access *simdriver.AccessError
			if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) || !errors.As(err, &access) {
				t.Errorf("Wait = %v", err)
			}
		}
	})
}

// TestRecover loses a device with work in flight and parked work. It closes the device, opens it
// again, and continues with a new semaphore.
func TestRecover(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		bystander := openDevice(t, d, 1, gpu.Options{})
		for range 3 {
			dev, err := gpu.Open(d, 0, gpu.Options{})
			must(t, err)
			s, b := semaphores(t, 4), allocate(t, dev, 5<<20)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Upload(b.All(), make([]byte, b.Size()))))
			must(t, s[0].Wait(minute(t), 1))
			d.StallDevice(0) // stall the device until everything is submitted
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, Device: 0, N: 2, AtExecution: true})
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 2)}, gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, dev.Queue(0).Submit(gpu.Order{Wait: pts(s[1], 1), Signal: pts(s[2], 1)}, gpu.Download(make([]byte, b.Size()), b.All())))
			must(t, dev.Queue(0).Submit(order(semaphores(t, 1)[0], 1, s[3], 1), gpu.Fill(b.All(), []byte{1})))
			d.ResumeDevice(0)
			for _, s := range s[1:] {
				if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) || !errors.Is(err, simdriver.ErrInjected) {
					t.Errorf("%v; want the loss", err)
				}
			}
			must(t, dev.Close())

			if dev, err = gpu.Open(d, 0, gpu.Options{}); err != nil {
				t.Fatalf("open again: %v", err)
			}
			again := semaphores(t, 1)[0]
			b = allocate(t, dev, 64)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(again, 1)}, gpu.Fill(b.All(), []byte{7})))
			if got := bytesOf(t, dev.Queue(0), b, gpu.Point{Semaphore: again, Value: 1}); got[0] != 7 || got[63] != 7 {
				t.Errorf("memory has %d", got)
			}
			must(t, dev.Close())
		}
		b := allocate(t, bystander, 64)
		must(t, bystander.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{3})))
		if got := bytesOf(t, bystander.Queue(0), b); got[0] != 3 {
			t.Errorf("memory of the other device has %d", got)
		}
	})
}

// TestLostHoldsUp makes queue 0 of a device wait for a second device. Inside the driver, queue 1 of
// the first device then waits for queue 0, and the runtime does not know of that wait. Then the
// second device is lost. The work must fail or complete, and the first device must be lost too.
func TestLostHoldsUp(t *testing.T) {
	begin := func(t *testing.T) (d *simdriver.Driver, stuck, other *gpu.Queue, s []*gpu.Semaphore) {
		// Do not use newSim: its check for leaks fails if Close leaves streams to the driver.
		d = simdriver.New(simdriver.Config{Devices: 2})
		lost, dev := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Queues: 2})
		t.Cleanup(func() {
			began := time.Now()
			if err := dev.Close(); err != nil && !errors.Is(err, driver.ErrBusy) {
				t.Error(err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("Close took %v", took)
			}
		})
		s = semaphores(t, 5)
		d.StallDevice(0)
		must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, lost, 64).All(), []byte{1})))
		return d, dev.Queue(0), dev.Queue(1), s
	}
	end := func(t *testing.T, s *gpu.Semaphore) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		err := s.Wait(ctx, 1)
		if ctx.Err() != nil {
			t.Fatal("neither reached nor failed")
		}
		if err != nil && !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
	}
	t.Run("B81 launches of the same graph", func(t *testing.T) {
		d, stuck, other, s := begin(t)
		b, c := allocate(t, stuck.Device(), 64), commandBuffer(t, stuck.Device(), gpu.GraphMode)
		recorded(t)(c.Add(gpu.Fill(b.All(), []byte{1})))
		must(t, c.End())
		must(t, stuck.Submit(order(s[0], 1, s[1], 1), gpu.Execute(c)))
		must(t, other.Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Execute(c)))
		d.LoseDevice(0, nil)
		end(t, s[2]) // first, while nobody waits for the stuck queue
		end(t, s[1])
		if err := other.Submit(gpu.Order{Signal: pts(s[3], 1)}, gpu.Execute(c)); !errors.Is(err, driver.ErrLost) {
			t.Errorf("later work: %v", err)
		}
	})
	t.Run("B81 memory of a driver's pool", func(t *testing.T) {
		d, stuck, other, s := begin(t)
		p := newPool(t, stuck.Device(), gpu.PoolOptions{MaxSize: 1 << 16})
		a := alloca(t, stuck, gpu.Order{Signal: pts(s[1], 1)}, p, 1<<16)
		must(t, stuck.Submit(order(s[0], 1, s[2], 1), gpu.Free(a)))
		alloca(t, other, gpu.Order{Signal: pts(s[3], 1)}, p, 1<<16)
		d.LoseDevice(0, nil)
		end(t, s[2])
		end(t, s[3])
		if _, err := testkit.AllocIn(other, gpu.Order{Signal: pts(s[4], 1)}, p, 1<<16); !errors.Is(err, driver.ErrLost) {
			t.Errorf("another device: %v", err)
		}
	})
}

// loseWith loses device 0, and makes a call that finds the loss. It checks that the work that
// signals s fails, because the device of that work is lost too.
func loseWith(t *testing.T, d *simdriver.Driver, lost *gpu.Device, s *gpu.Semaphore) {
	t.Helper()
	must(t, d.LoseDevice(0, nil))
	if _, err := lost.Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Alloc = %v", err)
	}
	if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the device goes on: %v", err)
	}
}

// TestCloseBehind closes a device that is lost because its stream waits for another lost device.
// The closed device still runs other work. Close must wait for that work, and then signal the
// points of Order.Free. If the work does not end in time, or if the driver makes no stream in which
// pool memory can be freed, everything is left to the driver, and the points must fail.
func TestCloseBehind(t *testing.T) {
	for name, of := range map[string]struct{ resumed, refused bool }{
		"work that ends":                     {resumed: true},
		"work that does not end":             {},
		"work that does not end, no streams": {refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
				lost, dev := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Queues: 3})
				s, b := semaphores(t, 6), allocate(t, dev, 64)
				must(t, d.StallDevice(0))
				must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, lost, 64).All(), []byte{1})))
				allocated := semaphores(t, 1)[0]
				pooled := alloca(t, dev.Queue(2), gpu.Order{Signal: pts(allocated, 1)}, nil, 64)
				must(t, allocated.Wait(minute(t), 1))
				busy := d.Streams(1)[0]
				must(t, d.StallStream(busy))
				must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(pooled.All(), []byte{1})))
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1), Free: pts(s[2], 1)}, gpu.Fill(b.Range(0, 8), []byte{1})))
				// This fill waits for work that is still running.
				must(t, dev.Queue(1).Submit(order(s[1], 1, s[3], 1), gpu.Fill(b.Range(8, 8), []byte{1})))
				// This fill waits for work of the lost device.
				must(t, dev.Queue(1).Submit(order(s[0], 1, s[4], 1), gpu.Fill(b.Range(16, 8), []byte{1})))
				// This fill waits for the previous submission.
				must(t, dev.Queue(2).Submit(gpu.Order{Wait: []gpu.Point{s[4].At(1)}, Signal: pts(s[5], 1)}, gpu.Fill(b.Range(24, 8), []byte{1})))
				loseWith(t, d, lost, s[1])
				if of.refused { // Close gets no stream to free native pool memory in
					d.Inject(simdriver.Fault{Op: simdriver.OpNewStream, Device: 1})
				}
				closed := make(chan error, 1)
				go func() { closed <- dev.Close() }()
				time.Sleep(100 * time.Millisecond) // time of the synctest bubble
				// If of.refused is true, Close leaves everything to the driver at once, and the
				// point fails.
				if v, err := s[2].Query(); v != 0 || err != nil && !of.refused {
					t.Errorf("the point of Free is at %d, %v", v, err)
				}
				if n := calls(d, 1, simdriver.OpFreeAsync); n != 0 {
					t.Error("memory of a pool is freed while a stream has work that uses it")
				}
				if of.resumed {
					must(t, d.ResumeStream(busy))
					if err := <-closed; err != nil {
						t.Errorf("Close = %v", err)
					}
					must(t, s[2].Wait(minute(t), 1))
				} else {
					if err := <-closed; !errors.Is(err, driver.ErrBusy) {
						t.Errorf("Close = %v", err)
					}
					if err := s[2].Wait(minute(t), 1); !errors.Is(err, driver.ErrBusy) {
						t.Errorf("the point of Free after Close: %v", err)
					}
					d.LoseDevice(1, nil) // the simulated streams end
					must(t, d.ResumeStream(busy))
				}
				lost.Close()
			})
		})
	}
}

// TestCloseLentBehind closes a device whose memory a second device uses. The second device is lost
// because its stream waits for a third device, which is lost. The second device still runs work
// that uses the memory. The memory must not be freed before that work has completed. If the work
// does not end, the memory must not be freed at all.
func TestCloseLentBehind(t *testing.T) {
	for _, resumed := range []bool{true, false} {
		t.Run(fmt.Sprintf("resumed %v", resumed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := simdriver.New(simdriver.Config{Devices: 3, Kernels: simKernels, Strict: true})
				defer d.Kill() // ends the stalled work
				lost, lender := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
				dev := openDevice(t, d, 2, gpu.Options{})
				s, b := semaphores(t, 3), allocate(t, lender, 64)
				must(t, d.StallDevice(0))
				must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, lost, 64).All(), []byte{1})))
				busy := d.Streams(2)[0]
				must(t, d.StallStream(busy))
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Copy(allocate(t, dev, 64).All(), b.All())))
				must(t, dev.Queue(0).Submit(order(s[0], 1, s[2], 1), gpu.Copy(allocate(t, dev, 64).All(), b.All()))) // this copy never begins to run
				loseWith(t, d, lost, s[1])
				closed := make(chan error, 1)
				go func() { closed <- lender.Close() }()
				time.Sleep(100 * time.Millisecond) // time of the synctest bubble
				if n := calls(d, 1, simdriver.OpFree); n != 0 {
					t.Error("the memory is freed while it is used")
				}
				if resumed {
					must(t, d.ResumeStream(busy))
				}
				if err := <-closed; resumed && err != nil || !resumed && !errors.Is(err, driver.ErrBusy) {
					t.Errorf("Close = %v", err)
				}
				if n := calls(d, 1, simdriver.OpFree); !resumed && n != 0 {
					t.Error("the memory is freed though it is used")
				}
				must(t, d.ResumeStream(busy))
				dev.Close()
				lost.Close()
			})
		})
	}
}

// TestCloseLentBehindQueue closes a device whose memory is used by work of a second device. That
// work waits for queue 1 of a third device. The third device is lost because its queue 0 waits for
// a device that the driver has lost. Queue 1 goes on, so the work that uses the memory begins
// later. The memory must not be freed.
func TestCloseLentBehindQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := simdriver.New(simdriver.Config{Devices: 4, Kernels: simKernels, Strict: true})
		defer d.Kill() // ends the stalled work
		dead, half := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{Queues: 2})
		dev, lender := openDevice(t, d, 2, gpu.Options{}), openDevice(t, d, 3, gpu.Options{})
		s, b := semaphores(t, 4), allocate(t, lender, 64)
		running := d.Streams(1)[1]
		must(t, d.StallDevice(0))
		must(t, d.StallStream(running))
		must(t, dead.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, dead, 64).All(), []byte{1})))
		must(t, half.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Fill(allocate(t, half, 64).All(), []byte{1})))
		must(t, half.Queue(1).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(allocate(t, half, 64).All(), []byte{1})))
		must(t, dev.Queue(0).Submit(order(s[2], 1, s[3], 1), gpu.Copy(b.All(), allocate(t, dev, 64).All())))
		loseWith(t, d, dead, s[3])
		if err := lender.Close(); !errors.Is(err, driver.ErrBusy) {
			t.Errorf("Close = %v", err)
		}
		if n := calls(d, 3, simdriver.OpFree); n != 0 {
			t.Error("the memory is freed before the work has begun")
		}
		must(t, d.ResumeStream(running))
		dev.Close()
		half.Close()
		dead.Close()
	})
}

// TestCloseLentBehindRunning closes a device whose memory is used by a second device. The second
// device is lost because its stream waits for a third device. The runtime counts the third device
// as lost, but the third device continues to run. So the work that uses the memory begins later.
// The memory must be freed after that work has completed, or not at all.
func TestCloseLentBehindRunning(t *testing.T) {
	for _, when := range []string{"work that ends", "work that begins after Close", "work that ends after Close, of a closed device"} {
		t.Run("B87 "+when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := simdriver.New(simdriver.Config{Devices: 3, Kernels: simKernels, Strict: true})
				defer d.Kill() // ends the stalled work
				lost, lender := openDevice(t, d, 0, gpu.Options{Queues: 2}), openDevice(t, d, 1, gpu.Options{})
				dev := openDevice(t, d, 2, gpu.Options{})
				s, b := semaphores(t, 3), allocate(t, lender, 64)
				first, next := d.Streams(0)[0], d.Streams(2)[0]
				must(t, d.StallStream(first))
				must(t, d.StallStream(next))
				must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, lost, 64).All(), []byte{1})))
				must(t, dev.Queue(0).Submit(order(s[0], 1, s[1], 1), gpu.Copy(b.All(), allocate(t, dev, 64).All())))
				fault := d.Inject(simdriver.Fault{Op: simdriver.OpRecord, Device: 0})
				must(t, lost.Queue(1).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Fill(allocate(t, lost, 64).All(), []byte{1})))
				fault.Remove()
				if err := s[1].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
					t.Errorf("the device goes on: %v", err)
				}
				ends := when == "work that ends"
				if strings.HasSuffix(when, "closed device") {
					must(t, d.ResumeStream(first))
					time.Sleep(time.Second) // time of the bubble: the stream has passed its work
					lost.Close()
				}
				closed := make(chan error, 1)
				go func() { closed <- lender.Close() }()
				time.Sleep(100 * time.Millisecond)
				if n := calls(d, 1, simdriver.OpFree); n != 0 {
					t.Error("the memory is freed before the work has begun")
				}
				if ends {
					must(t, d.ResumeStream(first))
					must(t, d.ResumeStream(next))
				}
				if err := <-closed; ends && err != nil || !ends && !errors.Is(err, driver.ErrBusy) {
					t.Errorf("Close = %v", err)
				}
				if n := calls(d, 1, simdriver.OpFree); !ends && n != 0 {
					t.Error("the memory is freed before the work has begun")
				}
				d.ResumeStream(first) // the stream may have been destroyed
				must(t, d.ResumeStream(next))
				dev.Close()
				lost.Close()
			})
		})
	}
}

// TestCloseLentUnrecorded closes a device whose memory is used by work of a second device. The
// second device is lost before an event is recorded behind that work, and continues to run. The
// memory must not be freed before that work has completed. If nobody can know whether the work has
// completed, the memory must not be freed at all.
func TestCloseLentUnrecorded(t *testing.T) {
	copyTo := func(t *testing.T, q *gpu.Queue, b *gpu.Buffer) gpu.Op {
		return gpu.Copy(b.All(), allocate(t, q.Device(), 64).All())
	}
	const ( // when the driver refuses to record events
		never = iota
		behindTheWork
		always
	)
	for _, of := range []struct {
		name            string
		op              func(t *testing.T, q *gpu.Queue, b *gpu.Buffer) gpu.Op
		queued, adopted bool // the work is on a queue, not in a Stream; the queue is adopted
		pooled          bool // the memory is from a pool
		refused         int
	}{
		{name: "a Stream copies to it", op: copyTo},
		{name: "a Stream copies from it", op: func(t *testing.T, q *gpu.Queue, b *gpu.Buffer) gpu.Op {
			return gpu.Copy(allocate(t, q.Device(), 64).All(), b.All())
		}},
		{name: "a Stream copies to it, and it is from a pool", op: copyTo, pooled: true},
		{name: "a Stream fills it", op: func(_ *testing.T, _ *gpu.Queue, b *gpu.Buffer) gpu.Op { return gpu.Fill(b.All(), []byte{1}) }},
		{name: "a Stream executes a recording with it", op: func(t *testing.T, q *gpu.Queue, b *gpu.Buffer) gpu.Op {
			c := commandBuffer(t, q.Device(), gpu.AutoMode)
			recorded(t)(c.Add(copyTo(t, q, b)))
			must(t, c.End())
			return gpu.Execute(c)
		}},
		{name: "a queue copies to it", op: copyTo, queued: true, refused: behindTheWork},
		{name: "a queue copies to it, and the driver records no event", op: copyTo, queued: true, refused: always},
		{name: "an adopted queue copies to it", op: copyTo, queued: true, adopted: true, refused: behindTheWork},
	} {
		for _, resumed := range []bool{true, false} {
			t.Run(fmt.Sprintf("B87 %s, resumed %v", of.name, resumed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := simdriver.New(simdriver.Config{Devices: 3, Kernels: simKernels, Strict: true})
					defer d.Kill() // ends the stalled work
					lost, lender := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
					dev := openDevice(t, d, 2, gpu.Options{Queues: 2})
					_, err := gpu.NewGroup(lender, dev) // gives dev access to the memory
					must(t, err)
					s, alloc := semaphores(t, 3), allocate
					if of.pooled {
						alloc = func(t testing.TB, dev *gpu.Device, size uint64) *gpu.Buffer {
							return allocated(t, dev.Queue(0), nil, size)
						}
					}
					b := alloc(t, lender, 64)
					frees := func() uint64 { return calls(d, 1, simdriver.OpFree) + calls(d, 1, simdriver.OpFreeAsync) }
					before := frees()
					q, busy := dev.Queue(0), d.Streams(2)[0]
					if of.adopted {
						f := testkit.NewForeign(t, d, 2)
						defer f.End(t)
						q, busy = f.Adopt(t, dev), f.Stream
					}
					must(t, d.StallDevice(0))
					must(t, lost.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, lost, 64).All(), []byte{1})))
					must(t, d.StallStream(busy))

					op, behind := of.op(t, q, b), gpu.Fill(allocate(t, dev, 64).All(), []byte{1})
					fault := new(simdriver.Injected)
					if of.refused != never { // dev is lost at once
						fault = d.Inject(simdriver.Fault{Op: simdriver.OpRecord, Device: 2})
					}
					if of.queued {
						must(t, q.Submit(gpu.Order{Signal: pts(s[1], 1)}, op))
						if err := s[1].Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
							t.Errorf("the work: %v", err)
						}
					} else {
						must(t, q.NewStream().Do(op))
						must(t, dev.Queue(1).Submit(order(s[0], 1, s[1], 1), behind))
						loseWith(t, d, lost, s[1]) // dev is lost too
					}
					if of.refused == behindTheWork {
						fault.Remove()
					}
					d.Inject(simdriver.Fault{Op: simdriver.OpQuery, Device: 2, N: 1}) // means nothing

					if of.pooled {
						must(t, lender.Queue(0).Submit(gpu.Order{Signal: pts(s[2], 1)}, gpu.Free(b)))
						if err := s[2].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
							t.Errorf("Free: %v", err)
						}
					}
					must(t, b.Close())
					closed := make(chan error, 1)
					go func() { closed <- lender.Close() }()
					time.Sleep(100 * time.Millisecond) // time of the bubble
					if frees() != before {
						t.Error("the memory is freed while it is used")
					}
					if resumed {
						must(t, d.ResumeStream(busy))
					}
					// The runtime records no event on a lost device's adopted stream.
					known := resumed && of.refused != always && !of.adopted
					if err := <-closed; known && err != nil || !known && !errors.Is(err, driver.ErrBusy) {
						t.Errorf("Close = %v", err)
					}
					if !known && frees() != before {
						t.Error("the memory is freed though nobody knows whether it is used")
					}
					must(t, d.ResumeStream(busy))
					dev.Close()
					lost.Close()
				})
			})
		}
	}
}

// TestWaitForClosed loses and closes device 0 just before a stream of device 1 is given a wait for
// work of device 0. The work of device 1 must fail.
func TestWaitForClosed(t *testing.T) {
	d := simdriver.New(simdriver.Config{Devices: 2})
	defer d.Kill() // ends the stalled stream
	var devs [2]*gpu.Device
	var mem [2]*gpu.Buffer
	for i := range devs {
		var err error
		if devs[i], err = gpu.Open(d, i, gpu.Options{}); err != nil {
			t.Fatal(err)
		}
		defer devs[i].Close()
		if mem[i], err = devs[i].Alloc(gpu.DeviceMem, 64); err != nil {
			t.Fatal(err)
		}
	}
	d.StallDevice(0)
	s, u := new(gpu.Semaphore), new(gpu.Semaphore)
	if err := devs[0].Queue(0).Submit(gpu.Order{Signal: []gpu.Point{s.At(1)}}, gpu.Fill(mem[0].All(), []byte{1})); err != nil {
		t.Fatal(err)
	}
	loan := native(devs[0])
	loan.LentMutex().Lock() // stops the submission just before its native wait
	result := make(chan error)
	go func() {
		result <- devs[1].Queue(0).Submit(gpu.Order{Wait: []gpu.Point{s.At(1)}, Signal: []gpu.Point{u.At(1)}}, gpu.Fill(mem[1].All(), []byte{1}))
	}()
	untilIn("(*loan).add(")
	native(devs[0]).MarkLost(io.ErrUnexpectedEOF) // lost, but the work in flight has not failed yet
	loan.EndLoan()                                // Close does the same
	loan.LentMutex().Unlock()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if err := u.Wait(t.Context(), 1); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("Wait = %v", err)
	}
	native(devs[0]).FailInFlight()
	if err := s.Wait(t.Context(), 1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the work that waits for the device: %v", err)
	}
}

// TestLostWhileFollowed loses a device after a submission of another device has found the lost
// device's work in flight, and before the submission makes its native wait. The search for waiting
// streams cannot find the wait yet. The submission itself must find the loss, even if the stream
// has received only the waits of the submission.
func TestLostWhileFollowed(t *testing.T) {
	for name, submit := range map[string]func(q *gpu.Queue, p *gpu.Pool, b *gpu.Buffer, o gpu.Order) error{
		"a fill": func(q *gpu.Queue, _ *gpu.Pool, b *gpu.Buffer, o gpu.Order) error {
			return q.Submit(o, gpu.Fill(b.All(), []byte{1}))
		},
		"an allocation without memory": func(q *gpu.Queue, p *gpu.Pool, _ *gpu.Buffer, o gpu.Order) error {
			_, err := testkit.AllocIn(q, o, p, 1<<20)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := simdriver.New(simdriver.Config{Devices: 2})
			var devs [2]*gpu.Device
			var mem [2]*gpu.Buffer
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			for i := range devs {
				var err error
				devs[i], err = gpu.Open(d, i, gpu.Options{Spin: -1, Poll: -1})
				check(err)
				defer devs[i].Close()
				mem[i], err = devs[i].Alloc(gpu.DeviceMem, 64)
				check(err)
			}
			p, err := devs[1].NewPool(gpu.PoolOptions{MaxSize: 1 << 20})
			check(err)
			_, err = testkit.AllocIn(devs[1].Queue(0), gpu.Order{}, p, 1<<20)
			check(err)
			d.StallDevice(0)
			s, u := new(gpu.Semaphore), new(gpu.Semaphore)
			check(devs[0].Queue(0).Submit(gpu.Order{Signal: []gpu.Point{s.At(1)}}, gpu.Fill(mem[0].All(), []byte{1})))
			native(devs[0]).LentMutex().Lock() // stops the submission just before its native wait
			result := make(chan error)
			go func() {
				result <- submit(devs[1].Queue(0), p, mem[1], gpu.Order{Wait: []gpu.Point{s.At(1)}, Signal: []gpu.Point{u.At(1)}})
			}()
			untilIn("(*loan).add(")
			d.LoseDevice(0, nil)
			// Lose the first device, as Lose does, but without the search for devices that wait for it.
			// The search would find none yet.
			native(devs[0]).MarkLost(io.ErrUnexpectedEOF)
			native(devs[0]).FailInFlight()
			native(devs[0]).LentMutex().Unlock()
			check(<-result)
			if err := native(devs[1]).Failed(); !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), native(devs[0]).Info.Name) {
				t.Errorf("the device whose stream waits for the lost one: %v", err)
			}
			if _, err := u.Query(); err == nil {
				t.Error("the work has not failed")
			}
		})
	}
}

// TestFailedByClose checks that work in flight of a lost device has failed when Close returns, even
// if the goroutine that found the loss has not failed the work yet.
func TestFailedByClose(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.Alloc(gpu.DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	d.StallDevice(0)
	s := new(gpu.Semaphore)
	if err := dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{s.At(1)}}, gpu.Fill(b.All(), []byte{1})); err != nil {
		t.Fatal(err)
	}
	native(dev).MarkLost(io.ErrUnexpectedEOF)
	d.LoseDevice(0, nil)
	dev.Close()
	if _, err := s.Query(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Query = %v", err)
	}
}
