//go:build linux && (amd64 || arm64) && !nogpu

package toolkittest

import (
	"math"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/curand"
)

// TestGPUCuRAND checks that one seed gives the same numbers twice, and checks their mean and
// deviation.
func TestGPUCuRAND(t *testing.T) {
	g := OpenGPU(t)
	l, err := curand.Open(curand.Options{})
	g.Check("Open", err)
	const n = 1 << 16
	draw := func(seed uint64) (uniform, normal []float32) {
		generator, err := l.NewGenerator(curand.RNGPseudoPhilox4_32_10)
		g.Check("NewGenerator", err)
		g.Check("SetPseudoRandomGeneratorSeed", l.SetPseudoRandomGeneratorSeed(generator.Handle(), seed))
		data := g.Alloc(4 * n)
		g.Check("GenerateUniform", l.GenerateUniform(generator.Handle(), data, n))
		uniform = Download[float32](g, data, n)
		g.Check("GenerateNormal", l.GenerateNormal(generator.Handle(), data, n, 3, 2))
		normal = Download[float32](g, data, n)
		g.Check("Close", generator.Close())
		return uniform, normal
	}
	uniform, normal := draw(42)
	for what, c := range map[string]struct {
		numbers         []float32
		mean, deviation float64
	}{"uniform": {uniform, 0.5, 1 / math.Sqrt(12)}, "normal": {normal, 3, 2}} {
		var sum, squares float64
		for _, x := range c.numbers {
			sum += float64(x)
			squares += float64(x) * float64(x)
		}
		mean := sum / n
		deviation := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean-c.mean) > 0.02*c.deviation || math.Abs(deviation-c.deviation) > 0.02*c.deviation {
			t.Errorf("%s numbers have mean %.4f and deviation %.4f, want %.4f and %.4f", what, mean, deviation, c.mean, c.deviation)
		}
	}
	if slices.Min(uniform) <= 0 || slices.Max(uniform) > 1 {
		t.Errorf("uniform numbers are between %v and %v", slices.Min(uniform), slices.Max(uniform))
	}
	if again, _ := draw(42); !slices.Equal(uniform, again) {
		t.Error("the same seed gives different numbers")
	}
	if other, _ := draw(43); slices.Equal(uniform, other) {
		t.Error("a different seed gives the same numbers")
	}
}
