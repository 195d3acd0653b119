//go:build linux && (amd64 || arm64) && !nogpu

package random_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/curand"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/random"
)

// TestRealPhilox compares the simulated GPU's numbers with numbers that this machine's cuRAND draws
// on the host, without a GPU.
func TestRealPhilox(t *testing.T) {
	l, err := curand.Open(curand.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		t.Skip(err)
	}
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, offset := range []uint64{0, 1, 1<<18 - 6, 1<<34 + 3, 1<<50 + 2} {
		const seed, most = 0x123456789a, 1<<18 + 100
		h, err := l.CreateGeneratorHost(curand.RNGPseudoPhilox4_32_10)
		must(t, err)
		must(t, l.SetPseudoRandomGeneratorSeed(h, seed))
		must(t, l.SetGeneratorOffset(h, offset))
		dev, lib := open(t)
		g := generator(t, lib, random.GeneratorOptions{Seed: seed, Offset: offset})
		for i := range 30 {
			n := 1 + rng.IntN(10)
			if i%10 == 9 {
				n = most - rng.IntN(100)
			}
			even := n + n%2
			switch rng.IntN(5) {
			case 0:
				compare(t, dev, n, n, 0, func(p cuda.DevicePtr, n uint64) error { return l.Generate(h, p, n) }, func(x gpu.Slice[uint32]) gpu.Op { return random.Bits(g, x) })
			case 1:
				compare(t, dev, n, n, 0, func(p cuda.DevicePtr, n uint64) error { return l.GenerateUniform(h, p, n) }, func(x gpu.Slice[float32]) gpu.Op { return random.Uniform(g, x) })
			case 2:
				compare(t, dev, n, n, 0, func(p cuda.DevicePtr, n uint64) error { return l.GenerateUniformDouble(h, p, n) }, func(x gpu.Slice[float64]) gpu.Op { return random.Uniform(g, x) })
			case 3:
				compare(t, dev, n, even, 1e-5, func(p cuda.DevicePtr, n uint64) error { return l.GenerateNormal(h, p, n, 3, 2) }, func(x gpu.Slice[float32]) gpu.Op { return random.Normal(g, x, 3, 2) })
			case 4:
				compare(t, dev, n, even, 1e-13, func(p cuda.DevicePtr, n uint64) error { return l.GenerateNormalDouble(h, p, n, 3, 2) }, func(x gpu.Slice[float64]) gpu.Op { return random.Normal(g, x, 3, 2) })
			}
		}
		must(t, l.DestroyGenerator(h))
		must(t, lib.Close())
		must(t, dev.Close())
	}
}

// compare draws n numbers on the simulated GPU and count numbers on the host, and compares the
// first n.
func compare[T uint32 | float32 | float64](t *testing.T, dev *gpu.Device, n, count int, eps float64, call func(cuda.DevicePtr, uint64) error, op func(gpu.Slice[T]) gpu.Op) {
	t.Helper()
	want := make([]T, count)
	must(t, call(cuda.DevicePtr(uintptr(unsafe.Pointer(&want[0]))), uint64(count)))
	got := drawn(t, dev, n, op)
	for i, g := range got {
		if w := want[i]; g != w && !(math.Abs(float64(g)-float64(w)) <= eps*math.Max(1, math.Abs(float64(w)))) {
			t.Fatalf("%T: number %d of %d is %v, and cuRAND's is %v", g, i, n, g, w)
		}
	}
}
