package memory_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// BenchmarkAlloca allocates memory that is free in the pool, and frees it again.
func BenchmarkAlloca(b *testing.B) {
	for name, o := range map[string]gpu.PoolOptions{"driver's pool": {}, "portable pool": {Portable: true}} {
		b.Run(name, func(b *testing.B) {
			dev := idle(b)
			p := newPool(b, dev, o)
			q := dev.Queue(0)
			b.ReportAllocs()
			for b.Loop() {
				m, err := testkit.AllocIn(q, gpu.Order{}, p, 4096)
				if err == nil {
					err = q.Submit(gpu.Order{}, gpu.Free(m))
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
