package testkit

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// field returns an unexported field. Package gpu keeps the scheduler's parts of its types in such
// fields.
func field(of any, name string) reflect.Value { return reflect.ValueOf(of).Elem().FieldByName(name) }

// Native returns the scheduler's part of a device.
func Native(d *gpu.Device) *engine.Device {
	return (*engine.Device)(field(d, "native").Addr().UnsafePointer())
}

// Timeline returns the timeline of a queue.
func Timeline(q *gpu.Queue) *engine.Timeline {
	return (*engine.Timeline)(field(q, "tl").UnsafePointer())
}

// Semaphore returns the scheduler's part of a semaphore, which is the first field of gpu.Semaphore.
func Semaphore(s *gpu.Semaphore) *sema.Semaphore { return (*sema.Semaphore)(unsafe.Pointer(s)) }

// A Mutex is a *sync.Mutex, or the watched mutex in a build of tools/locks.
type Mutex interface {
	sync.Locker
	TryLock() bool
}

// MutexOf returns the mutex of a semaphore.
func MutexOf(s *sema.Semaphore) Mutex {
	mu := field(s, "mu")
	return reflect.NewAt(mu.Type(), mu.Addr().UnsafePointer()).Interface().(Mutex)
}
