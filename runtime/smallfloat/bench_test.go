package smallfloat_test

import (
	"math/rand/v2"
	"testing"

	. "github.com/puregpu/puregpu/runtime/smallfloat"
)

func numbers() []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]float32, 1<<16)
	for i := range all {
		all[i] = float32(r.NormFloat64())
	}
	return all
}

func benchmark[T Float](b *testing.B, size int) {
	wide := numbers()
	small := Append[T](nil, wide)
	b.Run("to", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(wide) * size))
		for b.Loop() {
			small = Append(small[:0], wide)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(wide)), "ns/number")
	})
	b.Run("from", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(wide) * size))
		for b.Loop() {
			wide = AppendFloat32(wide[:0], small)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(wide)), "ns/number")
	})
}

func BenchmarkFloat16(b *testing.B)    { benchmark[Float16](b, 2) }
func BenchmarkBFloat16(b *testing.B)   { benchmark[BFloat16](b, 2) }
func BenchmarkFloat8E4M3(b *testing.B) { benchmark[Float8E4M3](b, 1) }
func BenchmarkFloat8E5M2(b *testing.B) { benchmark[Float8E5M2](b, 1) }
