package random_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/puregpu/puregpu/curand"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/random"
)

var must = testkit.Must

// open returns a simulated device with the library.
func open(t *testing.T) (*gpu.Device, *random.Library) {
	t.Helper()
	dev := testkit.OpenDevice(t, testkit.NewSim(t, simdriver.Config{}), 0, gpu.Options{Queues: 2})
	lib, err := random.Open(dev, random.Options{})
	must(t, err)
	return dev, lib
}

func generator(t *testing.T, lib *random.Library, o random.GeneratorOptions) *random.Generator {
	t.Helper()
	g, err := lib.NewGenerator(o)
	must(t, err)
	return g
}

func alloc[T any](t *testing.T, dev *gpu.Device, n int) gpu.Slice[T] {
	t.Helper()
	s, err := gpu.AllocSlice[T](dev, gpu.DeviceMem, n)
	must(t, err)
	return s
}

// drawn returns n numbers that an operation draws.
func drawn[T any](t *testing.T, dev *gpu.Device, n int, draw func(gpu.Slice[T]) gpu.Op) []T {
	t.Helper()
	x, got := alloc[T](t, dev, n), make([]T, n)
	st := dev.Queue(0).NewStream()
	must(t, st.Do(draw(x), x.Download(got)))
	must(t, st.Wait(testkit.Within(t, time.Minute)))
	must(t, x.Close())
	return got
}

// TestSample compares drawn numbers with those that NVIDIA's sample program of cuRAND prints for
// seed 1234.
func TestSample(t *testing.T) {
	dev, lib := open(t)
	o := random.GeneratorOptions{Seed: 1234}
	uniform := drawn(t, dev, 12, func(x gpu.Slice[float32]) gpu.Op { return random.Uniform(generator(t, lib, o), x) })
	normal := drawn(t, dev, 12, func(x gpu.Slice[float32]) gpu.Op { return random.Normal(generator(t, lib, o), x, 1, 2) })
	for what, c := range map[string]struct {
		got  []float32
		want []float64
	}{
		"uniform": {uniform, []float64{0.127208, 0.853469, 0.265649, 0.796055, 0.816736, 0.324165, 0.781055, 0.058918, 0.543999, 0.923496, 0.441505, 0.258264}},
		"normal":  {normal, []float64{-2.232981, 3.458311, -2.121081, 1.929243, 2.136910, 0.428207, 1.508686, 2.310768, -0.020449, 2.956819, 3.553997, 0.867263}},
	} {
		for i, want := range c.want {
			if math.Abs(float64(c.got[i])-want) > 2e-6 {
				t.Errorf("%s: %v, want %v", what, c.got, c.want)
				break
			}
		}
	}
	must(t, lib.Close())
	must(t, dev.Close())
}

// TestDistributions checks means and deviations, the limits of uniform numbers, and how many random
// bits are set.
func TestDistributions(t *testing.T) {
	dev, lib := open(t)
	const n = 1 << 16
	g := generator(t, lib, random.GeneratorOptions{Kind: curand.RNGPseudoXORWOW, Seed: 7})
	check := func(what string, x []float64, mean, deviation float64) {
		t.Helper()
		var sum, squares float64
		for _, v := range x {
			sum += v
			squares += v * v
		}
		m := sum / n
		if d := math.Sqrt(squares/n - m*m); math.Abs(m-mean) > 0.02*deviation || math.Abs(d-deviation) > 0.02*deviation {
			t.Errorf("%s: mean %.4f and deviation %.4f, want %.4f and %.4f", what, m, d, mean, deviation)
		}
	}
	wide := func(x []float32) []float64 {
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = float64(v)
		}
		return y
	}
	u32 := wide(drawn(t, dev, n, func(x gpu.Slice[float32]) gpu.Op { return random.Uniform(g, x) }))
	u64 := drawn(t, dev, n, func(x gpu.Slice[float64]) gpu.Op { return random.Uniform(g, x) })
	check("uniform float32", u32, 0.5, 1/math.Sqrt(12))
	check("uniform float64", u64, 0.5, 1/math.Sqrt(12))
	if all := slices.Concat(u32, u64); slices.Min(all) <= 0 || slices.Max(all) > 1 {
		t.Errorf("uniform numbers between %v and %v", slices.Min(all), slices.Max(all))
	}
	check("normal float32", wide(drawn(t, dev, n, func(x gpu.Slice[float32]) gpu.Op { return random.Normal(g, x, 3, 2) })), 3, 2)
	check("normal float64", drawn(t, dev, n, func(x gpu.Slice[float64]) gpu.Op { return random.Normal(g, x, -1, 0.5) }), -1, 0.5)
	ones := 0
	for _, v := range drawn(t, dev, n, func(x gpu.Slice[uint64]) gpu.Op { return random.Bits(g, x) }) {
		for ; v > 0; v &= v - 1 {
			ones++
		}
	}
	if half := 32 * n; ones < half-half/100 || ones > half+half/100 {
		t.Errorf("%d of %d bits are set", ones, 64*n)
	}
	must(t, dev.Close())
}

// TestSequence checks that draws in pieces, or from an offset, give the same numbers as one draw,
// and that another seed gives different numbers.
func TestSequence(t *testing.T) {
	dev, lib := open(t)
	const n = 300
	o := random.GeneratorOptions{Seed: 1<<40 + 5, Offset: 1<<18 - 100}
	whole := drawn(t, dev, n, func(x gpu.Slice[uint32]) gpu.Op { return random.Bits(generator(t, lib, o), x) })
	x, got := alloc[uint32](t, dev, n), make([]uint32, n)
	st, g, at := dev.Queue(0).NewStream(), generator(t, lib, o), 0
	for _, k := range []int{1, 2, 3, 4, 5, 90, 195} {
		must(t, st.Do(random.Bits(g, x.Slice(at, at+k))))
		at += k
	}
	must(t, st.Do(x.Download(got)))
	must(t, st.Wait(testkit.Within(t, time.Minute)))
	if !slices.Equal(got, whole) {
		t.Errorf("in pieces: %v, want %v", got, whole)
	}
	o.Offset += 123
	if tail := drawn(t, dev, n-123, func(x gpu.Slice[uint32]) gpu.Op { return random.Bits(generator(t, lib, o), x) }); !slices.Equal(tail, whole[123:]) {
		t.Errorf("at an offset: %v, want %v", tail, whole[123:])
	}
	o.Seed++
	if other := drawn(t, dev, n, func(x gpu.Slice[uint32]) gpu.Op { return random.Bits(generator(t, lib, o), x) }); slices.Equal(other, whole) {
		t.Error("another seed gives the same numbers")
	}
	must(t, dev.Close())
}

// TestOddNormals checks that a draw of an odd count of normal numbers uses up one more number.
func TestOddNormals(t *testing.T) {
	dev, lib := open(t)
	o := random.GeneratorOptions{Seed: 3}
	whole := drawn(t, dev, 10, func(x gpu.Slice[float64]) gpu.Op { return random.Normal(generator(t, lib, o), x, 0, 1) })
	g := generator(t, lib, o)
	first := drawn(t, dev, 3, func(x gpu.Slice[float64]) gpu.Op { return random.Normal(g, x, 0, 1) })
	second := drawn(t, dev, 5, func(x gpu.Slice[float64]) gpu.Op { return random.Normal(g, x, 0, 1) })
	if !slices.Equal(first, whole[:3]) || !slices.Equal(second, whole[4:9]) {
		t.Errorf("%v and %v of %v", first, second, whole)
	}
	must(t, dev.Close())
}

// TestRecorded checks that each execution of a recording draws the next numbers, in every mode,
// also if the execution binds other memory.
func TestRecorded(t *testing.T) {
	for _, mode := range []gpu.Mode{gpu.AutoMode, gpu.GraphMode, gpu.StreamMode} {
		dev, lib := open(t)
		o := random.GeneratorOptions{Seed: 9}
		whole := drawn(t, dev, 80, func(x gpu.Slice[float32]) gpu.Op { return random.Uniform(generator(t, lib, o), x) })
		g, x := generator(t, lib, o), alloc[float32](t, dev, 8*12)
		c := testkit.CommandBuffer(t, dev, mode)
		a, err := gpu.BindingSlice[float32](c, 10)
		must(t, err)
		b, err := gpu.BindingSlice[float32](c, 10)
		must(t, err)
		testkit.Recorded(t)(c.Add(a.Fill(5)))
		testkit.Recorded(t)(c.Add(random.Uniform(g, a)))
		testkit.Recorded(t)(c.Add(b.CopyFrom(a)))
		testkit.Recorded(t)(c.Add(random.Uniform(g, a)))
		must(t, c.End())
		st, got := dev.Queue(0).NewStream(), make([]float32, 80)
		at := func(i int) gpu.Slice[float32] { return x.Slice(12*i, 12*i+10) }
		for i := range 4 {
			must(t, st.Do(gpu.Execute(c, at(2*i+1).Range(), at(2*i).Range())))
		}
		for i := range 8 {
			must(t, st.Do(at(i).Download(got[10*i:][:10])))
		}
		must(t, st.Wait(testkit.Within(t, time.Minute)))
		if !slices.Equal(got, whole) {
			t.Errorf("%v: %v, want %v", mode, got, whole)
		}
		must(t, st.Do(gpu.Execute(c, x.Slice(1, 11).Range(), at(1).Range())))
		if err := st.Wait(testkit.Within(t, time.Minute)); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%v: a binding that is not aligned: %v", mode, err)
		}
		must(t, c.Close())
		must(t, dev.Close())
	}
}

// TestNested checks that a recording, executed twice by another recording, draws the next numbers
// each time.
func TestNested(t *testing.T) {
	dev, lib := open(t)
	o := random.GeneratorOptions{Seed: 9}
	whole := drawn(t, dev, 40, func(x gpu.Slice[float64]) gpu.Op { return random.Uniform(generator(t, lib, o), x) })
	g, x := generator(t, lib, o), alloc[float64](t, dev, 10)
	child, c := testkit.CommandBuffer(t, dev, gpu.GraphMode), testkit.CommandBuffer(t, dev, gpu.GraphMode)
	testkit.Recorded(t)(child.Add(random.Uniform(g, x)))
	must(t, child.End())
	all := alloc[float64](t, dev, 20)
	for i := range 2 {
		testkit.Recorded(t)(c.Add(gpu.Execute(child)))
		testkit.Recorded(t)(c.Add(gpu.Barrier()))
		testkit.Recorded(t)(c.Add(all.Slice(10*i, 10*i+10).CopyFrom(x)))
		testkit.Recorded(t)(c.Add(gpu.Barrier()))
	}
	must(t, c.End())
	st, got := dev.Queue(0).NewStream(), make([]float64, 40)
	must(t, st.Do(gpu.Execute(c), all.Download(got[:20]), gpu.Execute(c), all.Download(got[20:])))
	must(t, st.Wait(testkit.Within(t, time.Minute)))
	if !slices.Equal(got, whole) {
		t.Errorf("%v, want %v", got, whole)
	}
	must(t, errors.Join(c.Close(), child.Close()))
	must(t, dev.Close())
}

// TestOneQueue checks that a generator draws in one queue, ordered by points or in a stream, and
// that draws in a second queue fail.
func TestOneQueue(t *testing.T) {
	dev, lib := open(t)
	g, x := generator(t, lib, random.GeneratorOptions{}), alloc[float64](t, dev, 100)
	draw := random.Uniform(g, x)
	done := new(gpu.Semaphore)
	must(t, dev.Queue(1).Submit(gpu.Order{Signal: []gpu.Point{done.At(1)}}, x.Fill(0)))
	must(t, dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{done.At(1)}, Signal: []gpu.Point{done.At(2)}}, draw))
	must(t, done.Wait(testkit.Within(t, time.Minute), 2))
	st := dev.Queue(1).NewStream()
	must(t, st.Do(draw))
	if err := st.Wait(testkit.Within(t, time.Minute)); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("a second queue: %v", err)
	}
	must(t, dev.Queue(0).NewStream().Do(draw, random.Bits(g, alloc[uint32](t, dev, 1))))
	must(t, dev.Close())
}

func TestMistakes(t *testing.T) {
	dev, lib := open(t)
	for _, o := range []random.GeneratorOptions{{Kind: curand.RNGQuasiSobol32}, {Kind: 7}, {Kind: curand.RNGPseudoMT19937, Offset: 1}} {
		if _, err := lib.NewGenerator(o); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	g, x := generator(t, lib, random.GeneratorOptions{}), alloc[float32](t, dev, 8)
	do := func(op gpu.Op) error {
		st := dev.Queue(0).NewStream()
		if err := st.Do(op); err != nil {
			return err
		}
		return st.Wait(testkit.Within(t, time.Minute))
	}
	for what, c := range map[string]struct {
		op   gpu.Op
		want error
	}{
		"no memory":              {random.Uniform(g, gpu.Slice[float32]{}), gpu.ErrArgument},
		"no elements":            {random.Uniform(g, x.Slice(2, 2)), gpu.ErrArgument},
		"a negative deviation":   {random.Normal(g, x, 0, -1), gpu.ErrArgument},
		"a deviation of NaN":     {random.Normal(g, x, 0, float32(math.NaN())), gpu.ErrArgument},
		"no generator":           {random.Normal(nil, x, 0, 1), gpu.ErrArgument},
		"a call of no generator": {(*random.Generator)(nil).Call("", nil), gpu.ErrArgument},
		"a zero generator":       {random.Bits(new(random.Generator), alloc[uint32](t, dev, 1)), gpu.ErrArgument},
		"no function":            {g.Call("", nil), gpu.ErrArgument},
		"a call":                 {g.Call("curandGeneratePoisson", func(random.Call) error { return nil }, x.Range()), gpu.ErrUnsupported},
	} {
		if err := do(c.op); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := new(random.Library).NewGenerator(random.GeneratorOptions{}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("a zero library: %v", err)
	}
	must(t, do(random.Uniform(g, x)))
	must(t, g.Close())
	must(t, g.Close())
	must(t, (*random.Generator)(nil).Close())
	must(t, new(random.Generator).Close())
	if err := do(random.Uniform(g, x)); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a closed generator: %v", err)
	}
	must(t, lib.Close())
	if _, err := lib.NewGenerator(random.GeneratorOptions{}); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a generator of a closed library: %v", err)
	}
	must(t, dev.Close())
	if _, err := random.Open(dev, random.Options{}); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a closed device: %v", err)
	}
}
