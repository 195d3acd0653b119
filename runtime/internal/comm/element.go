package comm

import (
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
)

// encode returns a number as an element of a type.
func encode(t driver.ElementType, v float64) (b [8]byte) {
	put := func(bits uint64) {
		for i := range t.Size() {
			b[i] = byte(bits >> (8 * i))
		}
	}
	switch t {
	case driver.Int8, driver.Int16, driver.Int32, driver.Int64:
		put(uint64(int64(v)))
	case driver.Uint8, driver.Uint16, driver.Uint32, driver.Uint64:
		put(uint64(v))
	case driver.Float64:
		put(math.Float64bits(v))
	case driver.Float32:
		put(uint64(math.Float32bits(float32(v))))
	case driver.Float16:
		put(smallFloat(v, 5, 10, true))
	case driver.BFloat16:
		put(smallFloat(v, 8, 7, true))
	case driver.Float8E5M2:
		put(smallFloat(v, 5, 2, true))
	case driver.Float8E4M3:
		put(smallFloat(v, 4, 3, false))
	}
	return b
}

// smallFloat returns the bits of the nearest float with the given numbers of exponent and fraction
// bits. Ties go to even. Without infinities, too large numbers become the largest number, and NaN
// has all bits but the sign set.
func smallFloat(v float64, exponent, fraction int, infinities bool) uint64 {
	bias := 1<<(exponent-1) - 1
	sign := uint64(0)
	if math.Signbit(v) {
		sign, v = 1<<(exponent+fraction), -v
	}
	nan := uint64(1)<<(exponent+fraction) - 1
	infinity := (uint64(1)<<exponent - 1) << fraction
	largest := infinity - 1
	if !infinities {
		largest = nan - 1
	}
	over := infinity
	if !infinities {
		over = largest
	}
	switch {
	case math.IsNaN(v):
		return sign | nan
	case math.IsInf(v, 0):
		return sign | over
	case v == 0:
		return sign
	}
	_, e := math.Frexp(v) // v = m × 2^e with m in [½, 1)
	e = max(e-1, 1-bias)  // v's exponent; for subnormal numbers the smallest one
	steps := uint64(math.RoundToEven(math.Ldexp(v, fraction-e)))
	// The implicit leading bit carries into the exponent, and so may rounding.
	if bits := steps + uint64(e+bias-1)<<fraction; bits <= largest {
		return sign | bits
	}
	return sign | over
}
