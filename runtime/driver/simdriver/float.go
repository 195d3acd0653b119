package simdriver

import (
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A floatFormat is a way to write floats in few bits: a sign, an exponent and a mantissa.
type floatFormat struct {
	exponent int    // bits
	mantissa int    // bits
	greatest uint64 // the greatest finite number's code
	over     uint64 // what becomes of numbers that are too great: infinity, or where GPUs saturate the greatest one
	nan      uint64
}

var (
	float16Format    = floatFormat{exponent: 5, mantissa: 10, greatest: 0x7bff, over: 0x7c00, nan: 0x7e00}
	bfloat16Format   = floatFormat{exponent: 8, mantissa: 7, greatest: 0x7f7f, over: 0x7f80, nan: 0x7fc0}
	float8E4M3Format = floatFormat{exponent: 4, mantissa: 3, greatest: 0x7e, over: 0x7e, nan: 0x7f} // has no infinity
	float8E5M2Format = floatFormat{exponent: 5, mantissa: 2, greatest: 0x7b, over: 0x7b, nan: 0x7f}
)

// format returns the format of an element type's floats that Go does not have, nil if it has them.
func format(t driver.ElementType) *floatFormat {
	switch t {
	case driver.Float16:
		return &float16Format
	case driver.BFloat16:
		return &bfloat16Format
	case driver.Float8E4M3:
		return &float8E4M3Format
	case driver.Float8E5M2:
		return &float8E5M2Format
	}
	return nil
}

// lowest returns the exponent of the smallest normal number, which subnormal ones have too.
func (f *floatFormat) lowest() int { return 2 - 1<<(f.exponent-1) }

// decode returns the number that a code stands for, which a float64 can always have.
func (f *floatFormat) decode(code uint64) float64 {
	sign := code >> (f.exponent + f.mantissa) & 1 << 63
	code &= 1<<(f.exponent+f.mantissa) - 1
	if code > f.greatest {
		if code == f.infinity() {
			return math.Float64frombits(sign | math.Float64bits(math.Inf(1)))
		}
		return math.NaN()
	}
	n, e := code&(1<<f.mantissa-1), int(code>>f.mantissa)
	if e > 0 {
		n |= 1 << f.mantissa
		e--
	}
	x := float64(n) * power(e+f.lowest()-f.mantissa)
	return math.Float64frombits(sign | math.Float64bits(x))
}

// infinity returns the code of infinity, or one that there is not.
func (f *floatFormat) infinity() uint64 {
	if f.mantissa == 3 { // its place is a number's
		return math.MaxUint64
	}
	return f.greatest + 1
}

// encode returns the code of the number that is nearest to x, of two the even one.
func (f *floatFormat) encode(x float64) uint64 {
	b := math.Float64bits(x)
	sign := b >> 63 << (f.exponent + f.mantissa)
	switch {
	case x != x:
		return f.nan
	case math.IsInf(x, 0):
		return sign | f.over
	}
	e := max(int(b>>52&0x7ff)-1023, f.lowest())
	// x in units of its last place there; nothing is lost but by the rounding.
	n := uint64(math.RoundToEven(math.Abs(x) * power(f.mantissa-e)))
	// The leading bit of a normal number adds one to the exponent, and so does that of one rounded up to the next power.
	code := uint64(e-f.lowest())<<f.mantissa + n
	if code > f.greatest {
		code = f.over
	}
	return sign | code
}

// power returns 2ⁿ, for an n that makes it a normal float64.
func power(n int) float64 { return math.Float64frombits(uint64(n+1023) << 52) }
