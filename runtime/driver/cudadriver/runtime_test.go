//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestRuntimeAllocatesNothing submits through the runtime, down to the calls of a library that does its work at once.
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
	var args []unsafe.Pointer
	for range empty.Info().Params {
		args = append(args, unsafe.Pointer(new(uint64)))
	}
	for name, f := range map[string]func(q *gpu.Queue, o gpu.Order) error{
		"fill":      func(q *gpu.Queue, o gpu.Order) error { return q.Fill(o, b.All(), []byte{1}) },
		"fill of 8": func(q *gpu.Queue, o gpu.Order) error { return q.Fill(o, b.All(), []byte{1, 2, 3, 4, 5, 6, 7, 8}) },
		"copy":      func(q *gpu.Queue, o gpu.Order) error { return q.Copy(o, b.Range(0, 32), b.Range(32, 32)) },
		"update":    func(q *gpu.Queue, o gpu.Order) error { return q.Update(o, b.All(), data) },
		"download":  func(q *gpu.Queue, o gpu.Order) error { return q.Download(o, data, b.All()) },
		"barrier":   func(q *gpu.Queue, o gpu.Order) error { return q.Barrier(o) },
		"dispatch": func(q *gpu.Queue, o gpu.Order) error {
			return q.Dispatch(o, gpu.Dispatch{Kernel: empty, Grid: [3]uint32{1, 1, 1}, Args: args})
		},
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
			if n := testing.AllocsPerRun(300, run); n != 0 {
				t.Errorf("%s, %s: %v allocations in two submissions", name, how, n)
			}
			if now, err := s.Query(); now != v || err != nil {
				t.Errorf("%s: at %d, %v", name, now, err)
			}
		}
	}
}
