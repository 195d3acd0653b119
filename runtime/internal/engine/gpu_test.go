package engine_test

import (
	"bytes"
	"context"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// These tests drive the scheduler through package gpu, and look into it or hold it up in the middle. The
// fields that lead there are unexported in gpu, so they are found by reflection.

func field(of any, name string) reflect.Value { return reflect.ValueOf(of).Elem().FieldByName(name) }

// native returns the scheduler's part of a device.
func native(d *gpu.Device) *engine.Device {
	return (*engine.Device)(field(d, "native").Addr().UnsafePointer())
}

// timeline returns the timeline of a queue.
func timeline(q *gpu.Queue) *engine.Timeline {
	return (*engine.Timeline)(field(q, "tl").UnsafePointer())
}

// inner returns the scheduler's part of a semaphore, which is its first field.
func inner(s *gpu.Semaphore) *sema.Semaphore { return (*sema.Semaphore)(unsafe.Pointer(s)) }

// point returns a point as the scheduler knows it.
func point(s *gpu.Semaphore, value uint64) sema.Point {
	return sema.Point{Semaphore: inner(s), Value: value}
}

// A mutex is a *sync.Mutex, or what stands for one in a test build.
type mutex interface {
	sync.Locker
	TryLock() bool
}

// lockOf returns the mutex of a semaphore.
func lockOf(s *gpu.Semaphore) mutex {
	mu := field(inner(s), "mu")
	return reflect.NewAt(mu.Type(), mu.Addr().UnsafePointer()).Interface().(mutex)
}

// untilIn waits until some goroutine is in a function.
func untilIn(name string) {
	for buf := make([]byte, 1<<20); !bytes.Contains(buf[:runtime.Stack(buf, true)], []byte(name)); {
		runtime.Gosched()
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// checkLeaks reports goroutines that the test leaves behind.
func checkLeaks(t testing.TB) {
	t.Helper()
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
}

// within is a context that ends after a minute, and with the test.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newSemaphore makes a semaphore, or ends the test.
func newSemaphore(t testing.TB, initial uint64) *gpu.Semaphore {
	t.Helper()
	s, err := gpu.NewSemaphore(initial)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signal signals, or ends the test.
func signal(t testing.TB, s *gpu.Semaphore, value uint64) {
	t.Helper()
	if err := s.Signal(value); err != nil {
		t.Fatal(err)
	}
}

// now returns a semaphore's value, and asks no device.
func now(s *gpu.Semaphore) uint64 {
	now, _ := inner(s).Value()
	return now
}
