package main

import (
	"unsafe"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// Steps are submissions of which each waits for the one before: step n signals n. After an error there are no more.
type steps struct {
	q    *gpu.Queue
	pool *gpu.Pool
	done *gpu.Semaphore
	n    uint64
	err  error
}

func newSteps(dev *gpu.Device) (*steps, error) {
	pool, err := dev.NewPool(gpu.PoolOptions{})
	if err != nil {
		return nil, err
	}
	done, err := gpu.NewSemaphore(0)
	return &steps{q: dev.Queue(0), pool: pool, done: done}, err
}

// step submits the next one.
func (s *steps) step(submit func(gpu.Order) error) {
	if s.err != nil {
		return
	}
	s.n++
	s.err = submit(gpu.Order{
		Wait:   []gpu.Point{{Semaphore: s.done, Value: s.n - 1}},
		Signal: []gpu.Point{{Semaphore: s.done, Value: s.n}},
	})
}

func (s *steps) alloca(size uint64) (b *gpu.Buffer) {
	s.step(func(o gpu.Order) (err error) { b, err = s.q.Alloca(o, s.pool, size); return err })
	return b
}

func (s *steps) dealloca(b *gpu.Buffer) {
	s.step(func(o gpu.Order) error { return s.q.Dealloca(o, b) })
}

func (s *steps) update(b *gpu.Buffer, data []float32) {
	s.step(func(o gpu.Order) error { return s.q.Update(o, b.All(), raw(data)) })
}

func (s *steps) download(data []float32, b *gpu.Buffer) {
	s.step(func(o gpu.Order) error { return s.q.Download(o, raw(data), b.All()) })
}

func (s *steps) execute(c *gpu.CommandBuffer, in, out *gpu.Buffer) {
	s.step(func(o gpu.Order) error { return s.q.Execute(o, c, in.All(), out.All()) })
}

// raw is the memory of floats.
func raw(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
}
