package smallfloat_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	. "github.com/puregpu/puregpu/runtime/smallfloat"
)

// A format describes a type of floating-point numbers. The tests compare the package's conversions
// with numbers computed from the format.
type format struct {
	name               string
	exponent, fraction int
	infinite           bool // numbers with the highest exponent are infinite or NaN
	saturates          bool // numbers that are too great become the greatest number
	max, least         float64
	from32             func(float32) uint64
	from64             func(float64) uint64
	to32               func(uint64) float32

	numbers []float64 // all finite numbers that are not negative, ascending
	bits    []uint64  // the bits of each number
}

func newFormat[T Float](name string, exponent, fraction int, infinite, saturates bool, max, least float64, from func(float32) T) *format {
	f := &format{
		name: name, exponent: exponent, fraction: fraction, infinite: infinite, saturates: saturates, max: max, least: least,
		from32: func(x float32) uint64 { return uint64(from(x)) },
		from64: func(x float64) uint64 { return uint64(FromFloat64[T](x)) },
		to32:   func(b uint64) float32 { return T(b).Float32() },
	}
	for b := range uint64(1) << (exponent + fraction) {
		if x := f.value(b); x == x && !math.IsInf(x, 0) {
			f.bits = append(f.bits, b)
		}
	}
	slices.SortFunc(f.bits, func(a, b uint64) int { return cmp.Compare(f.value(a), f.value(b)) })
	for _, b := range f.bits {
		f.numbers = append(f.numbers, f.value(b))
	}
	return f
}

var formats = []*format{
	newFormat("Float16", 5, 10, true, false, 65504, 0x1p-24, ToFloat16),
	newFormat("BFloat16", 8, 7, true, false, 0x1.fep127, 0x1p-133, ToBFloat16),
	newFormat("Float8E4M3", 4, 3, false, true, 448, 0x1p-9, ToFloat8E4M3),
	newFormat("Float8E5M2", 5, 2, true, true, 57344, 0x1p-16, ToFloat8E5M2),
}

// each runs a test for each type.
func each(t *testing.T, test func(t *testing.T, f *format)) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) { test(t, f) })
	}
}

func (f *format) width() int { return 1 + f.exponent + f.fraction }

// value computes, from the format's definition, the number that the bits b stand for.
func (f *format) value(b uint64) float64 {
	sign := 1.0
	if b>>(f.width()-1) != 0 {
		sign = -1
	}
	bias, top := 1<<(f.exponent-1)-1, 1<<f.exponent-1
	e, m := int(b>>f.fraction)&top, int(b)&(1<<f.fraction-1)
	switch {
	case e == top && f.infinite && m == 0:
		return math.Inf(int(sign))
	case e == top && f.infinite, e == top && m == 1<<f.fraction-1:
		return math.NaN()
	case e == 0:
		return math.Copysign(math.Ldexp(float64(m), 1-bias-f.fraction), sign)
	}
	return math.Copysign(math.Ldexp(float64(m+1<<f.fraction), e-bias-f.fraction), sign)
}

// nearest returns the bits of the number nearest to x, which is not NaN. It searches all numbers of
// the type.
func (f *format) nearest(x float64) uint64 {
	sign := uint64(0)
	if math.Signbit(x) {
		sign = 1 << (f.width() - 1)
	}
	x = math.Abs(x)
	i, found := slices.BinarySearch(f.numbers, x)
	last := len(f.numbers) - 1
	switch {
	case found:
		return sign | f.bits[i]
	case i > last:
		step := f.numbers[last] - f.numbers[last-1]
		if !f.saturates && x >= f.max+step/2 { // a tie rounds up, because the last bit of the greatest number is 1
			return sign | (f.bits[last] + 1)
		}
		return sign | f.bits[last]
	}
	below, above := x-f.numbers[i-1], f.numbers[i]-x
	if below < above || below == above && f.bits[i-1]%2 == 0 {
		return sign | f.bits[i-1]
	}
	return sign | f.bits[i]
}

// check compares the conversions of x, which is not NaN, with the result of nearest.
func (f *format) check(t *testing.T, x float64) {
	t.Helper()
	if got, want := f.from64(x), f.nearest(x); got != want {
		t.Fatalf("FromFloat64(%v = %x) = %#x, want %#x", x, x, got, want)
	}
	y := float32(x)
	if got, want := f.from32(y), f.nearest(float64(y)); got != want {
		t.Fatalf("%v = %x becomes %#x, want %#x", y, y, got, want)
	}
}

// TestAllBits checks the conversion of all values to float32 and back.
func TestAllBits(t *testing.T) {
	each(t, func(t *testing.T, f *format) {
		if least, max := f.numbers[1], f.numbers[len(f.numbers)-1]; least != f.least || max != f.max {
			t.Errorf("numbers from %v to %v, want %v to %v", least, max, f.least, f.max)
		}
		for b := range uint64(1) << f.width() {
			want, got := f.value(b), f.to32(b)
			back := f.from32(got)
			if want != want {
				if got == got || math.Signbit(float64(got)) != (b>>(f.width()-1) != 0) {
					t.Fatalf("%#x is %x, want a NaN with the same sign", b, math.Float32bits(got))
				}
				if x := f.value(back); x == x || back>>(f.width()-1) != 0 || f.from64(math.NaN()) != back {
					t.Fatalf("NaN becomes %#x, and as a float64 %#x, want the same NaN without sign", back, f.from64(math.NaN()))
				}
				continue
			}
			if math.Float64bits(float64(got)) != math.Float64bits(want) {
				t.Fatalf("%#x is %v, want %v", b, got, want)
			}
			if math.IsInf(want, 0) && f.saturates {
				want = math.Copysign(f.max, want)
			}
			if math.Float64bits(f.value(back)) != math.Float64bits(want) {
				t.Fatalf("%#x, which is %v, becomes %#x", b, got, back)
			}
		}
	})
}

// TestRounding checks the conversion of each number, of each midpoint of two neighbours, and of the
// next float32 and float64 on both sides of each.
func TestRounding(t *testing.T) {
	each(t, func(t *testing.T, f *format) {
		near := func(x float64) {
			up, down := math.Inf(1), math.Inf(-1)
			for _, x := range []float64{x, -x} {
				for _, y := range []float64{
					x, math.Nextafter(x, up), math.Nextafter(x, down),
					float64(math.Nextafter32(float32(x), float32(up))), float64(math.Nextafter32(float32(x), float32(down))),
				} {
					f.check(t, y)
				}
			}
		}
		for i, x := range f.numbers {
			near(x)
			if i > 0 {
				near((x + f.numbers[i-1]) / 2)
			}
		}
		edge := f.max + (f.max-f.numbers[len(f.numbers)-2])/2
		for _, x := range []float64{edge, 2 * f.max, math.MaxFloat32, math.MaxFloat64, math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat64} {
			near(x)
		}
	})
}

func TestRandomNumbers(t *testing.T) {
	each(t, func(t *testing.T, f *format) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 50000 {
			for _, x := range []float64{
				float64(math.Float32frombits(r.Uint32())), math.Float64frombits(r.Uint64()), math.Ldexp(r.Float64()*2-1, r.IntN(60)-30),
			} {
				if x == x {
					f.check(t, x)
				}
			}
		}
	})
}

// TestNaN checks that every NaN of float32 becomes the same NaN, whatever its sign and its bits.
func TestNaN(t *testing.T) {
	each(t, func(t *testing.T, f *format) {
		want := f.from32(float32(math.NaN()))
		for i := range 23 {
			for _, sign := range []uint32{0, 1 << 31} {
				for _, b := range []uint32{1 << i, 1<<i | 1, 1<<23 - 1<<i} {
					if got := f.from32(math.Float32frombits(sign | 0xff<<23 | b)); got != want {
						t.Fatalf("NaN %#x becomes %#x, want %#x", sign|0xff<<23|b, got, want)
					}
				}
			}
		}
	})
}

func FuzzRounding(f *testing.F) {
	for _, x := range []float64{0, 1, 464, 465, 65519, 65520, 0x1p-10, 0x1p-25, 1e300} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x float64) {
		if x == x {
			for _, f := range formats {
				f.check(t, x)
			}
		}
	})
}

func TestConstants(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"MaxFloat16", MaxFloat16.Float32(), float32(65504)},
		{"MaxBFloat16", MaxBFloat16.Float32(), float32(0x1.fep127)},
		{"MaxFloat8E4M3", MaxFloat8E4M3.Float32(), float32(448)},
		{"MaxFloat8E5M2", MaxFloat8E5M2.Float32(), float32(57344)},
		{"SmallestNonzeroFloat16", SmallestNonzeroFloat16.Float32(), float32(0x1p-24)},
		{"SmallestNonzeroBFloat16", SmallestNonzeroBFloat16.Float32(), float32(0x1p-133)},
		{"SmallestNonzeroFloat8E4M3", SmallestNonzeroFloat8E4M3.Float32(), float32(0x1p-9)},
		{"SmallestNonzeroFloat8E5M2", SmallestNonzeroFloat8E5M2.Float32(), float32(0x1p-16)},
		{"InfFloat16", InfFloat16.Float32(), inf},
		{"InfBFloat16", InfBFloat16.Float32(), inf},
		{"InfFloat8E5M2", InfFloat8E5M2.Float32(), inf},
		{"ToFloat16(+Inf)", ToFloat16(inf), InfFloat16},
		{"ToBFloat16(+Inf)", ToBFloat16(inf), InfBFloat16},
		{"ToFloat8E4M3(+Inf)", ToFloat8E4M3(inf), MaxFloat8E4M3},
		{"ToFloat8E5M2(+Inf)", ToFloat8E5M2(inf), MaxFloat8E5M2},
		{"ToFloat16(NaN)", ToFloat16(nan), NaNFloat16},
		{"ToBFloat16(NaN)", ToBFloat16(nan), NaNBFloat16},
		{"ToFloat8E4M3(NaN)", ToFloat8E4M3(nan), NaNFloat8E4M3},
		{"ToFloat8E5M2(NaN)", ToFloat8E5M2(nan), NaNFloat8E5M2},
		{"the size of Float16", unsafe.Sizeof(Float16(0)), uintptr(2)},
		{"the size of BFloat16", unsafe.Sizeof(BFloat16(0)), uintptr(2)},
		{"the size of Float8E4M3", unsafe.Sizeof(Float8E4M3(0)), uintptr(1)},
		{"the size of Float8E5M2", unsafe.Sizeof(Float8E5M2(0)), uintptr(1)},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
}

func testSlices[T Float](t *testing.T) {
	wide := make([]float32, 1000)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range wide {
		wide[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(40)-20))
	}
	first := FromFloat64[T](1)
	small := Append([]T{first}, wide)
	if len(small) != 1+len(wide) || small[0] != first {
		t.Fatalf("Append made %d elements with %v first", len(small), small[0])
	}
	back := AppendFloat32([]float32{7}, small[1:])
	if len(back) != 1+len(wide) || back[0] != 7 {
		t.Fatalf("AppendFloat32 made %d elements with %v first", len(back), back[0])
	}
	for i, x := range wide {
		if want := FromFloat64[T](float64(x)); small[1+i] != want {
			t.Fatalf("Append converts %v to %v, want %v", x, small[1+i], want)
		}
		if want := small[1+i].Float32(); back[1+i] != want {
			t.Fatalf("AppendFloat32 converts %v to %v, want %v", small[1+i], back[1+i], want)
		}
	}
	if a, b := Append[T](nil, nil), AppendFloat32[T](nil, nil); len(a) != 0 || len(b) != 0 {
		t.Errorf("nothing becomes %v and %v", a, b)
	}
	var sum float32
	if n := testing.AllocsPerRun(10, func() {
		small = Append(small[:0], wide)
		back = AppendFloat32(back[:0], small)
		sum += FromFloat64[T](float64(back[0])).Float32()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSlices(t *testing.T) {
	t.Run("Float16", testSlices[Float16])
	t.Run("BFloat16", testSlices[BFloat16])
	t.Run("Float8E4M3", testSlices[Float8E4M3])
	t.Run("Float8E5M2", testSlices[Float8E5M2])
}
