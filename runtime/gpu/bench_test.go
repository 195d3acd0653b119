package gpu_test

import (
	"context"
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/trace"
)

// BenchmarkNative submits native operations with three ranges. Their function does nothing. Each
// operation waits for the previous one.
func BenchmarkNative(b *testing.B) {
	dev := idle(b)
	buf, s := allocate(b, dev, 4096), semaphores(b, 1)[0]
	var wait, signal [1]gpu.Point
	v := uint64(0)
	nothing := func(gpu.NativeCall) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		wait[0], signal[0] = s.At(v), s.At(v+1)
		v++
		must(b, dev.Queue(0).Submit(gpu.Order{Wait: wait[:], Signal: signal[:]}, gpu.Native("", nothing, buf.Range(0, 1024), buf.Range(1024, 1024), buf.Range(2048, 2048))))
	}
}

// BenchmarkChain submits fills to one queue, or alternately to two queues. Each fill waits for the
// previous fill. The device completes each fill at once.
func BenchmarkChain(b *testing.B) {
	for _, c := range []struct {
		name   string
		queues int
	}{{"one stream", 1}, {"two streams", 2}} {
		b.Run(c.name, func(b *testing.B) {
			dev, err := gpu.Open(idleDriver{}, 0, gpu.Options{Queues: c.queues})
			if err != nil {
				b.Fatal(err)
			}
			defer dev.Close()
			buf, err := dev.Alloc(gpu.DeviceMem, 4096)
			if err != nil {
				b.Fatal(err)
			}
			s, _ := gpu.NewSemaphore(0)
			var wait, signal [1]gpu.Point
			pattern := []byte{1, 2, 3, 4}
			n := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				wait[0], signal[0] = gpu.Point{Semaphore: s, Value: n}, gpu.Point{Semaphore: s, Value: n + 1}
				if err := dev.Queue(int(n)%c.queues).Submit(gpu.Order{Wait: wait[:], Signal: signal[:]}, gpu.Fill(buf.All(), pattern)); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

// BenchmarkTracedChain is BenchmarkChain on one queue with a tracer. The benchmark takes the
// records, or the tracer drops them because its buffer is full.
func BenchmarkTracedChain(b *testing.B) {
	for _, taken := range []bool{false, true} {
		b.Run(map[bool]string{false: "dropped", true: "taken"}[taken], func(b *testing.B) {
			tracer, err := trace.NewTracer(trace.TracerOptions{Records: 1 << 15})
			must(b, err)
			dev, err := gpu.Open(idleDriver{}, 0, gpu.Options{Tracer: tracer})
			must(b, err)
			defer dev.Close()
			buf := allocate(b, dev, 4096)
			s, records := semaphores(b, 1)[0], make([]trace.Record, 256)
			var wait, signal [1]gpu.Point
			pattern, n := []byte{1, 2, 3, 4}, uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				wait[0], signal[0] = s.At(n), s.At(n+1)
				must(b, dev.Queue(0).Submit(gpu.Order{Wait: wait[:], Signal: signal[:]}, gpu.Fill(buf.All(), pattern)))
				if n++; taken && n%256 == 0 {
					tracer.Take(records)
				}
			}
		})
	}
}

// BenchmarkSemaphore measures semaphores without a device.
func BenchmarkSemaphore(b *testing.B) {
	b.Run("create and close", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s, _ := gpu.NewSemaphore(0)
			s.Close()
		}
	})
	b.Run("signal and query", func(b *testing.B) {
		s, _ := gpu.NewSemaphore(0)
		v := uint64(0)
		b.ReportAllocs()
		for b.Loop() {
			v++
			s.Signal(v)
			s.Query()
		}
	})
	b.Run("query", func(b *testing.B) {
		s, _ := gpu.NewSemaphore(0)
		for b.Loop() {
			s.Query()
		}
	})
}

// BenchmarkPoolChain allocates, fills and frees memory. Each operation waits for the previous one.
// The device completes each operation at once. The time is for all three operations.
func BenchmarkPoolChain(b *testing.B) {
	dev := idle(b)
	q, s := dev.Queue(0), semaphores(b, 1)[0]
	pool, err := dev.DefaultPool()
	must(b, err)
	var wait, signal [1]gpu.Point
	v := uint64(0)
	next := func() gpu.Order {
		wait[0], signal[0] = gpu.Point{Semaphore: s, Value: v}, gpu.Point{Semaphore: s, Value: v + 1}
		v++
		return gpu.Order{Wait: wait[:], Signal: signal[:]}
	}
	pattern := []byte{1, 2, 3, 4}
	b.ReportAllocs()
	for b.Loop() {
		m, err := testkit.AllocIn(q, next(), pool, 1<<20)
		if err != nil {
			b.Fatal(err)
		}
		if err := q.Submit(next(), gpu.Fill(m.Range(0, 4096), pattern)); err != nil {
			b.Fatal(err)
		}
		if err := q.Submit(next(), gpu.Free(m)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParked parks 1,000 fills that wait for one point, signals the point, and waits for the
// fills. The time is for one fill.
func BenchmarkParked(b *testing.B) {
	const n = 1000
	dev := idle(b)
	buf, err := dev.Alloc(gpu.DeviceMem, 4096)
	must(b, err)
	host, done := semaphores(b, 1)[0], semaphores(b, n)
	var wait, signal [1]gpu.Point
	pattern := []byte{1, 2, 3, 4}
	ctx := context.Background()
	b.ReportAllocs()
	i, v := 0, uint64(1)
	release := func() {
		if err := host.Signal(v); err != nil {
			b.Fatal(err)
		}
		for k := i - 1; k >= 0; k-- {
			if err := done[k].Wait(ctx, v); err != nil {
				b.Fatal(err)
			}
		}
		i, v = 0, v+1
	}
	for b.Loop() {
		wait[0], signal[0] = gpu.Point{Semaphore: host, Value: v}, gpu.Point{Semaphore: done[i], Value: v}
		if err := dev.Queue(0).Submit(gpu.Order{Wait: wait[:], Signal: signal[:]}, gpu.Fill(buf.All(), pattern)); err != nil {
			b.Fatal(err)
		}
		if i++; i == n {
			release()
		}
	}
	release()
}

// BenchmarkPoolPair allocates and frees memory, without points to wait for or to signal. The time
// is for both operations.
func BenchmarkPoolPair(b *testing.B) {
	dev := idle(b)
	q := dev.Queue(0)
	pool, err := dev.DefaultPool()
	must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		m, err := testkit.AllocIn(q, gpu.Order{}, pool, 1<<20)
		if err == nil {
			err = q.Submit(gpu.Order{}, gpu.Free(m))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPoolHit allocates a hundred times from a portable pool that has the memory, and then
// frees all of it. The time is for one allocation.
func BenchmarkPoolHit(b *testing.B) {
	dev := idle(b)
	q := dev.Queue(0)
	var bufs [100]*gpu.Buffer
	pool, err := dev.NewPool(gpu.PoolOptions{Portable: true, InitialSize: uint64(len(bufs)) << 20})
	must(b, err)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if bufs[n], err = testkit.AllocIn(q, gpu.Order{}, pool, 1<<20); err != nil {
			b.Fatal(err)
		}
		if n++; n < len(bufs) {
			continue
		}
		b.StopTimer()
		for _, m := range bufs {
			must(b, q.Submit(gpu.Order{}, gpu.Free(m)))
		}
		b.StartTimer()
		n = 0
	}
}
