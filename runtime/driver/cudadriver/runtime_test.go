//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestRuntimeAllocatesNothing submits through the runtime to a fake driver that executes work at
// once. It checks that no submission allocates.
func TestRuntimeAllocatesNothing(t *testing.T) {
	if !dl.Fast {
		t.Skip("no fast path in this build")
	}
	dev, err := gpu.Open(newFake(t, 13000).driver(), 0, gpu.Options{Queues: 2, Spin: -1, Poll: time.Minute})
	ok(t, err)
	defer dev.Close()
	b, err := dev.Alloc(gpu.DeviceMem, 64)
	ok(t, err)
	code, err := dev.Load([]byte(emptyPTX))
	ok(t, err)
	empty, err := code.Kernel("empty")
	ok(t, err)
	s, err := gpu.NewSemaphore(0)
	ok(t, err)
	host, err := gpu.NewSemaphore(0)
	ok(t, err)
	v, wait, signal, data := uint64(0), make([]gpu.Point, 2), make([]gpu.Point, 1), make([]byte, 64)
	var args []any
	for _, size := range empty.Info().Params {
		args = append(args, make([]byte, size))
	}
	launch := gpu.Launch(empty, gpu.Grid{}, args...)
	for name, f := range map[string]func(q *gpu.Queue, o gpu.Order) error{
		"fill": func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, gpu.Fill(b.All(), []byte{1})) },
		"fill of 8": func(q *gpu.Queue, o gpu.Order) error {
			return q.Submit(o, gpu.Fill(b.All(), []byte{1, 2, 3, 4, 5, 6, 7, 8}))
		},
		"copy":     func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, gpu.Copy(b.Range(0, 32), b.Range(32, 32))) },
		"update":   func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, gpu.UploadCopy(b.All(), data)) },
		"download": func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, gpu.Download(data, b.All())) },
		"barrier":  func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, gpu.Barrier()) },
		"launch":   func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, launch) },
	} {
		for parked, how := range map[bool]string{false: "issued at once", true: "parked, and released by a signal"} {
			run := func() {
				at, _ := host.Query()
				if parked {
					at++
				}
				for i := range 2 {
					wait[0], wait[1] = gpu.Point{Semaphore: s, Value: v}, gpu.Point{Semaphore: host, Value: at}
					signal[0] = gpu.Point{Semaphore: s, Value: v + 1}
					if err := f(dev.Queue(i), gpu.Order{Wait: wait, Signal: signal}); err != nil {
						t.Fatal(err)
					}
					v++
				}
				if parked {
					host.Signal(at)
				}
				for {
					if now, err := s.Query(); err != nil || now >= v {
						break
					}
					runtime.Gosched()
				}
			}
			for range 200 {
				run()
			}
			// Reporting the written memory to the race detector allocates.
			if raceEnabled && name == "download" {
				continue
			}
			if n := testing.AllocsPerRun(300, run); n != 0 {
				t.Errorf("%s, %s: %v allocations in two submissions", name, how, n)
			}
			if now, err := s.Query(); now != v || err != nil {
				t.Errorf("%s: at %d, %v", name, now, err)
			}
		}
	}
}

// TestRuntimeLossIdle loses a device that has no work in flight, on a driver whose calls need a
// current context and on one whose calls do not. The next Flush must return the loss.
func TestRuntimeLossIdle(t *testing.T) {
	for _, bound := range []int{0, 1} {
		f := newFake(t, 13000)
		f.Set("bound cuEventQuery", bound)
		dev, err := gpu.Open(f.driver(), 0, gpu.Options{})
		ok(t, err)
		ok(t, dev.Queue(0).Flush())
		f.Set("cuEventQuery", int(cuda.ErrorLaunchFailed))
		if err := dev.Queue(0).Flush(); !errors.Is(err, driver.ErrLost) || !errors.Is(err, cuda.ErrorLaunchFailed) || !dev.Stats().Lost {
			t.Errorf("bound %d: %v", bound, err)
		}
		f.Set("cuEventQuery", 0)
		dev.Close()
	}
}

// TestRuntimeBetweenPools copies between the default pools of two devices on threads without a
// context. The fake library crashes if such a thread's copy does not name the devices too.
func TestRuntimeBetweenPools(t *testing.T) {
	drv := newFake(t, 13000, "CRASHES").driver()
	var devs [2]*gpu.Device
	var bufs [2]*gpu.Buffer
	for i := range devs {
		var err error
		devs[i], err = gpu.Open(drv, i, gpu.Options{})
		ok(t, err)
		defer devs[i].Close()
		bufs[i], err = testkit.AllocIn(devs[i].Queue(0), gpu.Order{}, nil, 64)
		ok(t, err)
	}
	s, err := gpu.NewSemaphore(0)
	ok(t, err)
	v := uint64(0)
	next := func() (o gpu.Order) {
		o = gpu.Order{Wait: []gpu.Point{{Semaphore: s, Value: v}}, Signal: []gpu.Point{{Semaphore: s, Value: v + 1}}}
		v++
		return o
	}
	for i, d := range devs {
		mine, there := bufs[i], bufs[1-i]
		q, got := d.Queue(0), make([]byte, 64)
		data := bytes.Repeat([]byte{byte(i + 1)}, 64)
		ok(t, q.Submit(next(), gpu.UploadCopy(there.All(), data)))
		ok(t, q.Submit(next(), gpu.Copy(mine.All(), there.All())))
		ok(t, q.Submit(next(), gpu.Fill(mine.Range(0, 4), []byte{9})))
		for _, m := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
			c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: m})
			ok(t, err)
			b, err := c.Binding()
			ok(t, err)
			for _, r := range []func() (gpu.Command, error){
				func() (gpu.Command, error) { return c.Add(gpu.Copy(there.Range(0, 8), mine.Range(0, 8))) },
				func() (gpu.Command, error) { return c.Add(gpu.UploadCopy(there.Range(8, 4), []byte{5, 6, 7, 8})) },
				func() (gpu.Command, error) { return c.Add(gpu.Copy(b.Range(8, 4), mine.Range(0, 4))) },
			} {
				_, err := r()
				ok(t, err)
			}
			ok(t, c.End())
			for _, bound := range []*gpu.Buffer{mine, there, mine} {
				ok(t, q.Submit(next(), gpu.Execute(c, bound.Range(48, 16))))
			}
			ok(t, c.Close())
		}
		ok(t, q.Submit(next(), gpu.Download(got, there.All())))
		if err := s.Wait(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		want := append([]byte{9, 9, 9, 9, data[0], data[0], data[0], data[0], 5, 6, 7, 8}, data[12:]...)
		copy(want[56:], []byte{9, 9, 9, 9})
		if !bytes.Equal(got, want) {
			t.Errorf("%x, want %x", got, want)
		}
	}
}
