package smallfloat

import (
	"math"
	"slices"
)

// Float is the constraint for the types of this package.
type Float interface {
	Float16 | BFloat16 | Float8E4M3 | Float8E5M2
	Float32() float32
}

// FromFloat64 returns the T nearest to a number. To convert a float32, convert it to a float64
// first, which is exact.
func FromFloat64[T Float](x float64) T {
	var to T
	f := toOdd(x)
	switch to := any(&to).(type) {
	case *Float16:
		*to = ToFloat16(f)
	case *BFloat16:
		*to = ToBFloat16(f)
	case *Float8E4M3:
		*to = ToFloat8E4M3(f)
	case *Float8E5M2:
		*to = ToFloat8E5M2(f)
	}
	return to
}

// toOdd returns x as a float32. If x lies between two float32 numbers, the result is the one of
// them whose last bit is set. Rounding the result to a type of this package gives the same number
// as rounding x. The reason is that a float32 has many more bits: the result is never a midpoint
// between two numbers of the type, and lies on the same side of each midpoint as x.
func toOdd(x float64) float32 {
	f := float32(x)
	if float64(f) == x || x != x {
		return f
	}
	b := math.Float32bits(f)
	if math.Abs(float64(f)) > math.Abs(x) {
		b--
	}
	return math.Float32frombits(b | 1)
}

// Append converts numbers, as [ToFloat16] and the other functions do, and appends them to dst.
// Append(dst[:0], src) overwrites dst if dst has the capacity.
func Append[T Float](dst []T, src []float32) []T {
	n := len(dst)
	dst = slices.Grow(dst, len(src))[:n+len(src)]
	switch to := any(dst[n:]).(type) {
	case []Float16:
		for i, f := range src {
			to[i] = ToFloat16(f)
		}
	case []BFloat16:
		for i, f := range src {
			to[i] = ToBFloat16(f)
		}
	case []Float8E4M3:
		for i, f := range src {
			to[i] = ToFloat8E4M3(f)
		}
	case []Float8E5M2:
		for i, f := range src {
			to[i] = ToFloat8E5M2(f)
		}
	}
	return dst
}

// AppendFloat32 converts numbers to float32 and appends them to dst. AppendFloat32(dst[:0], src)
// overwrites dst if dst has the capacity.
func AppendFloat32[T Float](dst []float32, src []T) []float32 {
	n := len(dst)
	dst = slices.Grow(dst, len(src))[:n+len(src)]
	to := dst[n:]
	switch src := any(src).(type) {
	case []Float16:
		for i, x := range src {
			to[i] = x.Float32()
		}
	case []BFloat16:
		for i, x := range src {
			to[i] = x.Float32()
		}
	case []Float8E4M3:
		for i, x := range src {
			to[i] = x.Float32()
		}
	case []Float8E5M2:
		for i, x := range src {
			to[i] = x.Float32()
		}
	}
	return dst
}

// Bits of a float32.
const (
	fraction = 23 // number of fraction bits
	infinity = 0xff << fraction
	sign     = 1 << 31
)

// narrow rounds abs, the bits of a float32 without its sign, to a type with fewer fraction bits.
// bits is the number of the type's fraction bits. least is the exponent field of the type's
// smallest normal number, written as a float32. The result is the bits of the type. If the number
// is too large for the type, the result is larger than the bits of the type's largest number.
// Numbers from 2¹⁷ on, infinity and NaN count as 2¹⁷.
func narrow(abs, bits, least uint32) uint32 {
	abs = min(abs, (127+17)<<fraction)
	// e is the exponent of the number; the exponent of all subnormal numbers is the value of least.
	// The addition rounds, because the last bit of the sum has the value of the last bit of the
	// result.
	e := max(abs>>fraction, least)
	base := (e + fraction - bits) << fraction
	n := math.Float32bits(math.Float32frombits(abs)+math.Float32frombits(base)) - base
	// n includes the leading bit of a normal number, and the carry of a number that was rounded up.
	// Both add to the exponent.
	return (e-least)<<bits + n
}

// widen converts abs, the bits of a number without its sign, from a type with fewer bits to a
// float32, and returns the float32's bits. bits and least mean the same as in the function narrow.
// unit is the type's smallest number above zero. top is the smallest value of abs that means
// infinity or NaN.
func widen(abs, bits, least, top uint32, unit float32) uint32 {
	wide := abs<<(fraction-bits) + (least-1)<<fraction
	if abs < 1<<bits {
		wide = math.Float32bits(float32(int32(abs)) * unit)
	}
	if abs >= top {
		wide |= infinity
	}
	return wide
}
