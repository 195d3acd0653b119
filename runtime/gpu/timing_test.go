package gpu_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// sleepers has the kernel "sleep", which takes as many nanoseconds as its argument says.
var sleepers = map[string]simdriver.Kernel{"sleep": simdriver.MustKernel(func(_ *simdriver.Grid, ns uint64) { time.Sleep(time.Duration(ns)) })}

type sleepArgs struct{ Nanoseconds uint64 }

// sleeper opens a simulated device, and loads the sleep kernel.
func sleeper(t testing.TB, caps driver.Caps, o gpu.Options) (*simdriver.Driver, *gpu.Device, *gpu.TypedKernel[sleepArgs]) {
	t.Helper()
	d := simdriver.New(simdriver.Config{Kernels: sleepers, Strict: true, Caps: &caps})
	t.Cleanup(func() {
		for _, name := range d.Leaks() {
			t.Errorf("left behind: %s", name)
		}
	})
	dev := openDevice(t, d, 0, o)
	x, err := dev.Load(simdriver.Image("sleep"))
	must(t, err)
	k, err := x.Kernel("sleep")
	must(t, err)
	kernel, err := gpu.Typed[sleepArgs](k)
	must(t, err)
	return d, dev, kernel
}

// TestTiming checks that a Timing reports how long its operation takes.
func TestTiming(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, dev, sleep := sleeper(t, caps, gpu.Options{})
				timing, err := dev.NewTiming()
				must(t, err)
				s := semaphores(t, 1)[0]
				if _, err := timing.Duration(); err == nil {
					t.Error("a Timing of no operation returns no error")
				}
				at := func(i uint64) gpu.Order { return order(s, i, s, i+1) }
				want := func(what string, i uint64, want time.Duration) {
					t.Helper()
					must(t, s.Wait(context.Background(), i))
					if took, err := timing.Duration(); took != want || err != nil {
						t.Errorf("%s took %v, %v; it was to take %v", what, took, err, want)
					}
				}
				must(t, dev.Queue(0).Submit(at(0), sleep.Launch(gpu.GridFor(1, 1), sleepArgs{12345}).Timed(timing)))
				want("a launch", 1, 12345)
				c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
				must(t, err)
				for i := range 7 {
					if i == 3 {
						_, err := c.Add(gpu.HostCall(func() error { time.Sleep(1000); return nil }))
						must(t, err)
					}
					_, err := c.Add(sleep.Launch(gpu.GridFor(1, 1), sleepArgs{100}))
					must(t, err)
					_, err = c.Add(gpu.Barrier())
					must(t, err)
				}
				must(t, c.End())
				must(t, dev.Queue(0).Submit(at(1), gpu.Execute(c).Timed(timing)))
				must(t, s.Wait(context.Background(), 2))
				if took, err := timing.Duration(); err != nil || took < 1700 {
					t.Errorf("an execution in three parts took %v, %v", took, err)
				}
				must(t, dev.Queue(0).Submit(at(2), gpu.HostCall(func() error { time.Sleep(777); return nil }).Timed(timing)))
				want("a host call", 3, 777)
				must(t, dev.Queue(0).Submit(at(3), gpu.Barrier().Timed(timing)))
				must(t, s.Wait(context.Background(), 4))
				if _, err := timing.Duration(); !errors.Is(err, driver.ErrUnsupported) {
					t.Errorf("a barrier that needs no place in a stream: %v", err)
				}
				must(t, dev.Queue(0).Submit(at(4), sleep.Launch(gpu.GridFor(1, 1), sleepArgs{99}).Timed(timing)))
				must(t, timing.Close()) // while the operation still uses it
				must(t, s.Wait(context.Background(), 5))
				if _, err := timing.Duration(); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("it has been closed: %v", err)
				}
				if err := dev.Queue(0).Submit(at(5), gpu.Barrier().Timed(timing)); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("it has been closed: %v", err)
				}
				if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Barrier().Timed(new(gpu.Timing))); !errors.Is(err, gpu.ErrArgument) {
					t.Errorf("it was not made: %v", err)
				}
				must(t, c.Close())
			})
		})
	}
}

// TestTimingElsewhere frees memory of a native pool on a queue of another device. The Timing of
// this Free must belong to the pool's device, whose stream frees the memory.
func TestTimingElsewhere(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	near, far := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
	own, err := near.NewTiming()
	must(t, err)
	other, err := far.NewTiming()
	must(t, err)
	s := semaphores(t, 2)
	b := alloca(t, near.Queue(0), gpu.Order{Signal: pts(s[0], 1)}, nil, 64)
	o := order(s[0], 1, s[1], 1)
	if err := far.Queue(0).Submit(o, gpu.Free(b).Timed(other)); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "GPU 0, whose stream deallocates it") {
		t.Errorf("%v", err)
	}
	must(t, far.Queue(0).Submit(o, gpu.Free(b).Timed(own)))
	must(t, s[1].Wait(minute(t), 1))
	if took, err := own.Duration(); err != nil || took < 0 {
		t.Errorf("%v, %v", took, err)
	}
}

// TestTimingRefused checks that the error of a wrong Timing says what is wrong with it.
func TestTimingRefused(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	dev, far := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
	other, err := far.NewTiming()
	must(t, err)
	own, err := dev.NewTiming()
	must(t, err)
	copied := reflect.New(reflect.TypeFor[gpu.Timing]())
	copied.Elem().Set(reflect.ValueOf(own).Elem())
	for text, timing := range map[string]*gpu.Timing{"of another device": other, "a copy": copied.Interface().(*gpu.Timing), "not made": new(gpu.Timing)} {
		if err := dev.Queue(0).Submit(gpu.Order{}, gpu.Barrier().Timed(timing)); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v; want %s", err, text)
		}
	}
	if _, err := own.Duration(); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "given to no operation") {
		t.Errorf("%v", err)
	}
}

// TestTimingAlloc gives a Timing to a slow host call, and then to an allocation, a Free or a
// barrier. Duration must not return the time of the host call any more.
func TestTimingAlloc(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		f := newForeign(t, d, 0)
		adopted := f.Adopt(t, dev)
		timing, err := dev.NewTiming()
		must(t, err)
		slow := func(q *gpu.Queue) { // gives the Timing to a host call of 5 ms
			t.Helper()
			s := semaphores(t, 1)[0]
			must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.HostCall(func() error { time.Sleep(5 * time.Millisecond); return nil }).Timed(timing)))
			must(t, s.Wait(minute(t), 1))
		}
		for _, q := range []*gpu.Queue{dev.Queue(0), adopted} {
			s, behind := q.NewStream(), allocate(t, dev, 64)
			check := func(what string) {
				t.Helper()
				must(t, s.Fill(behind.All(), []byte{1}))
				must(t, s.Wait(minute(t)))
				if took, err := timing.Duration(); err == nil && took >= 5*time.Millisecond {
					t.Errorf("%s on %v took %v, as the operation before it did", what, q, took)
				}
			}
			if q == adopted { // queues on adopted streams cannot allocate
				slow(q)
				must(t, q.Submit(gpu.Order{}, gpu.Barrier().Timed(timing)))
				check("a barrier")
				continue
			}
			slow(q)
			var b *gpu.Buffer
			must(t, q.Submit(gpu.Order{}, gpu.Alloc(&b, nil, 64).Timed(timing)))
			check("alloc")
			slow(q)
			must(t, q.Submit(gpu.Order{}, gpu.Free(b).Timed(timing)))
			check("free")
		}
		must(t, adopted.Close())
		must(t, dev.Close())
		f.End(t)
	})
}
