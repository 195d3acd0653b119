package testkit

import (
	"errors"
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// NewPool makes a pool.
func NewPool(t testing.TB, d *gpu.Device, o gpu.PoolOptions) *gpu.Pool {
	t.Helper()
	p, err := d.NewPool(o)
	Must(t, err)
	return p
}

// Alloca allocates in stream order.
func Alloca(t testing.TB, q *gpu.Queue, o gpu.Order, p *gpu.Pool, size uint64) *gpu.Buffer {
	t.Helper()
	b, err := AllocIn(q, o, p, size)
	Must(t, err)
	return b
}

// Allocated is like [Alloca], and waits until the memory is allocated.
func Allocated(t testing.TB, q *gpu.Queue, p *gpu.Pool, size uint64) *gpu.Buffer {
	t.Helper()
	s := Semaphores(t, 1)[0]
	b := Alloca(t, q, gpu.Order{Signal: Points(s, 1)}, p, size)
	Must(t, s.Wait(Minute(t), 1))
	return b
}

// Unused waits until none of a pool's memory is allocated.
func Unused(t testing.TB, p *gpu.Pool) {
	t.Helper()
	for ctx := Minute(t); ; runtime.Gosched() {
		st, err := p.Stats()
		Must(t, err)
		if st.Used == 0 {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%+v", st)
		}
	}
}

// WholePool returns a portable pool with room for exactly one buffer of the returned size.
func WholePool(t *testing.T, dev *gpu.Device) (p *gpu.Pool, size uint64) {
	return NewPool(t, dev, gpu.PoolOptions{MaxSize: 1 << 16, InitialSize: 1 << 16, Portable: true}), 1 << 16
}

// Full checks that a pool made by [WholePool] has no free memory.
func Full(t *testing.T, q *gpu.Queue, p *gpu.Pool) {
	t.Helper()
	s := Semaphores(t, 1)[0]
	b := Alloca(t, q, gpu.Order{Signal: Points(s, 1)}, p, 1<<16)
	if err := s.Wait(Minute(t), 1); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("memory at %#x is allocated again: %v", b.Ptr(), err)
	}
}

// AllocIn allocates from a pool in the order of a queue's work.
func AllocIn(q *gpu.Queue, o gpu.Order, p *gpu.Pool, size uint64) (b *gpu.Buffer, err error) {
	err = q.Submit(o, gpu.Alloc(&b, p, size))
	return b, err
}
