package simdriver_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// A floatType is what a type of floats is made of, written down once more.
type floatType struct {
	t                  driver.ElementType
	exponent, mantissa int
	bias               int
	infinite           bool    // the highest exponent is no number's
	saturates          bool    // what is too great becomes the greatest number
	max, least         float64 // the greatest number, and the smallest above zero
}

var floatTypes = []floatType{
	{driver.Float16, 5, 10, 15, true, false, 65504, 0x1p-24},
	{driver.BFloat16, 8, 7, 127, true, false, 0x1.fep127, 0x1p-133},
	{driver.Float8E4M3, 4, 3, 7, false, true, 448, 0x1p-9},
	{driver.Float8E5M2, 5, 2, 15, true, true, 57344, 0x1p-16},
}

// value returns the number that a code is.
func (f *floatType) value(code int) float64 {
	sign := 1.0
	if code>>(f.exponent+f.mantissa) != 0 {
		sign = -1
	}
	e, m := code>>f.mantissa&(1<<f.exponent-1), code&(1<<f.mantissa-1)
	top := 1<<f.exponent - 1
	switch {
	case e == top && f.infinite && m == 0:
		return math.Inf(int(sign))
	case e == top && f.infinite, e == top && m == 1<<f.mantissa-1:
		return math.NaN()
	case e == 0:
		return math.Copysign(math.Ldexp(float64(m), 1-f.bias-f.mantissa), sign)
	}
	return math.Copysign(math.Ldexp(float64(m+1<<f.mantissa), e-f.bias-f.mantissa), sign)
}

// TestFloatCodes decodes all codes, and encodes again what they are.
func TestFloatCodes(t *testing.T) {
	for _, f := range floatTypes {
		greatest, least := 0.0, math.Inf(1)
		for code := range 1 << (8 * f.t.Size()) {
			want, got := f.value(code), simdriver.DecodeFloat(f.t, uint64(code))
			if math.Float64bits(want) != math.Float64bits(got) && !(want != want && got != got) {
				t.Fatalf("%v: code %#x is %v, want %v", f.t, code, got, want)
			}
			back := simdriver.EncodeFloat(f.t, got)
			switch {
			case got != got:
				if x := f.value(int(back)); x == x {
					t.Fatalf("%v: no number becomes %v", f.t, x)
				}
			case math.IsInf(got, 0) && f.saturates:
				if x := f.value(int(back)); x != math.Copysign(f.max, got) {
					t.Fatalf("%v: %v becomes %v", f.t, got, x)
				}
			case back != uint64(code):
				t.Fatalf("%v: code %#x, which is %v, becomes %#x", f.t, code, got, back)
			}
			if x := math.Abs(got); x > 0 && !math.IsInf(x, 0) {
				greatest, least = max(greatest, x), min(least, x)
			}
		}
		if greatest != f.max || least != f.least {
			t.Errorf("%v: numbers from %v to %v, want %v to %v", f.t, least, greatest, f.least, f.max)
		}
	}
}

// A ruler is the numbers of a type that are not negative, in order, with their codes.
type ruler struct {
	f     *floatType
	xs    []float64
	codes []uint64
}

func newRuler(f *floatType) *ruler {
	s := &ruler{f: f}
	for code := range 1 << (f.exponent + f.mantissa) {
		if x := f.value(code); x == x && !math.IsInf(x, 0) {
			s.codes = append(s.codes, uint64(code))
		}
	}
	slices.SortFunc(s.codes, func(a, b uint64) int { return cmp.Compare(f.value(int(a)), f.value(int(b))) })
	for _, c := range s.codes {
		s.xs = append(s.xs, f.value(int(c)))
	}
	return s
}

// round returns the code of the number that is nearest to x, looked up.
func (s *ruler) round(x float64) uint64 {
	sign := uint64(0)
	if math.Signbit(x) {
		sign = 1 << (s.f.exponent + s.f.mantissa)
	}
	x = math.Abs(x)
	i, found := slices.BinarySearch(s.xs, x)
	last := len(s.xs) - 1
	switch {
	case found:
		return sign | s.codes[i]
	case i > last:
		step := s.xs[last] - s.xs[last-1]
		if !s.f.saturates && x >= s.xs[last]+step/2 { // of an odd number
			return sign | (s.codes[last] + 1)
		}
		return sign | s.codes[last]
	}
	below, above := x-s.xs[i-1], s.xs[i]-x
	if below < above || below == above && s.codes[i-1]%2 == 0 {
		return sign | s.codes[i-1]
	}
	return sign | s.codes[i]
}

// checkRound compares the rounding of x to all types with what is looked up.
func checkRound(t *testing.T, rulers []*ruler, x float64) {
	t.Helper()
	for _, s := range rulers {
		want := s.round(x)
		if got := simdriver.EncodeFloat(s.f.t, x); got != want {
			t.Fatalf("%v: %v (%x) becomes %#x, want %#x", s.f.t, x, x, got, want)
		}
	}
}

func rulers() []*ruler {
	var ss []*ruler
	for i := range floatTypes {
		ss = append(ss, newRuler(&floatTypes[i]))
	}
	return ss
}

// TestFloatRounding rounds what is at, between and next to the numbers of each type.
func TestFloatRounding(t *testing.T) {
	ss := rulers()
	for _, s := range ss {
		one := []*ruler{s}
		for i, x := range s.xs {
			if i > 0 {
				mid := (x + s.xs[i-1]) / 2
				for _, y := range []float64{mid, math.Nextafter(mid, 0), math.Nextafter(mid, 1e300)} {
					checkRound(t, one, y)
					checkRound(t, one, -y)
				}
			}
			checkRound(t, one, math.Nextafter(x, 1e300))
			checkRound(t, one, math.Nextafter(x, -1))
		}
		edge := s.f.max + (s.f.max-s.xs[len(s.xs)-2])/2
		for _, y := range []float64{edge, math.Nextafter(edge, 0), 2 * s.f.max, math.MaxFloat64, math.SmallestNonzeroFloat64} {
			checkRound(t, one, y)
			checkRound(t, one, -y)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50000 {
		if x := math.Float64frombits(r.Uint64()); x == x && !math.IsInf(x, 0) {
			checkRound(t, ss, x)
		}
		checkRound(t, ss, math.Ldexp(r.Float64()*2-1, r.IntN(60)-30))
	}
}

func FuzzFloatRounding(f *testing.F) {
	ss := rulers()
	for _, x := range []float64{0, 1, 464, 465, 65519, 65520, 0x1p-10, 0x1p-25, 1e300} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x float64) {
		if x == x && !math.IsInf(x, 0) {
			checkRound(t, ss, x)
		}
	})
}
