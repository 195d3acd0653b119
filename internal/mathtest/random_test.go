//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/curand"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/random"
)

// randomCounts are odd and even, small and large. After 1<<18 numbers cuRAND's generator uses its
// subsequences again.
var randomCounts = []int{4, 1, 2, 3, 7, 1000, 1<<18 + 5, 9, 1 << 19, 30}

// TestRandom checks that the GPU draws the same numbers as the simulated GPU. Numbers with a normal
// distribution need only be nearly the same.
func TestRandom(t *testing.T) {
	real, simulated := openBoth(t)
	lib, err := random.Open(real, random.Options{})
	has(t, err)
	sim, err := random.Open(simulated, random.Options{})
	must(t, err)
	r := record(t, "random")
	for _, offset := range []uint64{0, 5, 1<<18 - 6, 1<<34 + 3} {
		params := map[string]any{"seed": 1<<40 + 7, "offset": offset, "counts": randomCounts}
		libs, devs := [2]*random.Library{lib, sim}, [2]*gpu.Device{real, simulated}
		compareDraws(t, r, params, libs, devs, "bits", same[uint32], random.Bits[uint32])
		compareDraws(t, nil, params, libs, devs, "bits of uint64", same[uint64], random.Bits[uint64])
		compareDraws(t, r, params, libs, devs, "uniform", same[float32], random.Uniform[float32])
		compareDraws(t, r, params, libs, devs, "uniform double", same[float64], random.Uniform[float64])
		compareDraws(t, r, params, libs, devs, "normal", func(t *testing.T, what string, got, want []float32) { near(t, what, got, want, 5e-6) },
			func(g *random.Generator, x gpu.Slice[float32]) gpu.Op { return random.Normal(g, x, 3, 2) })
		compareDraws(t, r, params, libs, devs, "normal double", func(t *testing.T, what string, got, want []float64) { near(t, what, got, want, 1e-13) },
			func(g *random.Generator, x gpu.Slice[float64]) gpu.Op { return random.Normal(g, x, 3, 2) })
	}
	must(t, lib.Close())
	must(t, sim.Close())
}

func same[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i, w := range want {
		if got[i] != w {
			t.Errorf("%s: number %d of %d is %v, want %v", what, i, len(got), got[i], w)
			return
		}
	}
}

// compareDraws draws randomCounts numbers on both devices, and compares them. It draws twice: first
// each draw has memory of its own, then all draws fill one memory, one behind the other.
func compareDraws[T any](t *testing.T, r *recorder, params map[string]any, libs [2]*random.Library, devs [2]*gpu.Device, name string,
	check func(*testing.T, string, []T, []T), draw func(*random.Generator, gpu.Slice[T]) gpu.Op) {
	t.Helper()
	total := 0
	for _, n := range randomCounts {
		total += n
	}
	for _, how := range []string{"aligned", "anywhere"} {
		var results [2][]T
		for i, dev := range devs {
			g, err := libs[i].NewGenerator(random.GeneratorOptions{Seed: 1<<40 + 7, Offset: params["offset"].(uint64)})
			must(t, err)
			at, all := 0, slice(t, dev, make([]T, total))
			for _, n := range randomCounts {
				to := all.Slice(at, at+n)
				if how == "aligned" {
					to = slice(t, dev, make([]T, n))
				}
				do(t, dev, draw(g, to))
				results[i] = append(results[i], contents(t, dev, to)...)
				at += n
			}
			must(t, g.Close())
		}
		check(t, fmt.Sprintf("%s at offset %v, %s", name, params["offset"], how), results[0], results[1])
		if how == "aligned" {
			r.add(name, params, arrayOf("x", results[0], total))
		}
	}
}

// TestRandomRecorded checks that each execution of a recording draws the generator's next numbers.
func TestRandomRecorded(t *testing.T) {
	dev := openGPU(t)
	lib, err := random.Open(dev, random.Options{})
	has(t, err)
	for _, kind := range []curand.RNGType{curand.RNGPseudoPhilox4_32_10, curand.RNGPseudoXORWOW, curand.RNGPseudoMRG32K3A, curand.RNGPseudoMTGP32, curand.RNGPseudoMT19937} {
		const n, times = 1 << 12, 5
		g, err := lib.NewGenerator(random.GeneratorOptions{Kind: kind, Seed: 3})
		must(t, err)
		all := slice(t, dev, make([]float32, n*times))
		for i := range times {
			do(t, dev, random.Uniform(g, all.Slice(i*n, i*n+n)))
		}
		want := contents(t, dev, all)
		must(t, g.Close())

		g, err = lib.NewGenerator(random.GeneratorOptions{Kind: kind, Seed: 3})
		must(t, err)
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
		must(t, err)
		to, err := gpu.BindingSlice[float32](c, n)
		must(t, err)
		x, y := slice(t, dev, make([]float32, n)), slice(t, dev, make([]float32, n))
		for _, op := range []gpu.Op{x.Fill(0), y.CopyFrom(x), random.Uniform(g, x), y.CopyFrom(x), to.CopyFrom(y), x.Fill(1)} {
			_, err = c.Add(op)
			must(t, err)
			_, err = c.Add(gpu.Barrier())
			must(t, err)
		}
		must(t, c.End())
		for i := range times {
			do(t, dev, gpu.Execute(c, all.Slice(i*n, i*n+n).Range()))
		}
		same(t, fmt.Sprintf("%v in a recording", kind), contents(t, dev, all), want)
		must(t, c.Close())
		must(t, g.Close())
	}
	must(t, lib.Close())
}

// TestRandomCall checks that Call runs a function of cuRAND, curandGeneratePoisson.
func TestRandomCall(t *testing.T) {
	dev := openGPU(t)
	lib, err := random.Open(dev, random.Options{})
	has(t, err)
	g, err := lib.NewGenerator(random.GeneratorOptions{Seed: 1})
	must(t, err)
	const n = 1 << 16
	x := slice(t, dev, make([]uint32, n))
	do(t, dev, g.Call("curandGeneratePoisson", func(c random.Call) error {
		return c.GeneratePoisson(c.Handle, cuda.DevicePtr(c.Ptrs[0]), n, 10)
	}, x.Range()))
	sum := 0.0
	for _, v := range contents(t, dev, x) {
		sum += float64(v)
	}
	if mean := sum / n; mean < 9.9 || mean > 10.1 {
		t.Errorf("numbers with mean 10 have mean %v", mean)
	}
	must(t, lib.Close())
}

// randomTimes returns the rows of draws.
func randomTimes() (rows []timed) {
	for _, n := range []int{1 << 10, 1 << 26} {
		add := func(name, dtype, run string, open func(t *testing.T, dev *gpu.Device, g *random.Generator) gpu.Op) {
			rows = append(rows, timed{
				name: fmt.Sprintf("random %s %s [%d]", name, dtype, n), small: n < 1e4,
				open: func(t *testing.T, dev *gpu.Device) gpu.Op {
					lib, err := random.Open(dev, random.Options{})
					has(t, err)
					t.Cleanup(func() { must(t, lib.Close()) })
					g, err := lib.NewGenerator(random.GeneratorOptions{})
					must(t, err)
					return open(t, dev, g)
				},
				setup: fmt.Sprintf("x = torch.empty(%d, dtype=torch.%s, device='cuda')", n, dtype), run: run,
			})
		}
		add("uniform", "float32", "x.uniform_()", func(t *testing.T, dev *gpu.Device, g *random.Generator) gpu.Op {
			return random.Uniform(g, slice(t, dev, make([]float32, n)))
		})
		add("uniform", "float64", "x.uniform_()", func(t *testing.T, dev *gpu.Device, g *random.Generator) gpu.Op {
			return random.Uniform(g, slice(t, dev, make([]float64, n)))
		})
		add("normal", "float32", "x.normal_()", func(t *testing.T, dev *gpu.Device, g *random.Generator) gpu.Op {
			return random.Normal(g, slice(t, dev, make([]float32, n)), 0, 1)
		})
		add("normal", "float64", "x.normal_()", func(t *testing.T, dev *gpu.Device, g *random.Generator) gpu.Op {
			return random.Normal(g, slice(t, dev, make([]float64, n)), 0, 1)
		})
	}
	return rows
}
