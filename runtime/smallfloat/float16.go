package smallfloat

import "math"

// A Float16 is a half-precision number of IEEE 754: __half in CUDA and HIP.
type Float16 uint16

const (
	MaxFloat16             Float16 = 0x7bff // 65504
	SmallestNonzeroFloat16 Float16 = 0x0001 // 2⁻²⁴
	InfFloat16             Float16 = 0x7c00 // infinity
	NaNFloat16             Float16 = 0x7fff // the NaN of conversions
)

// ToFloat16 returns the Float16 nearest to f. If the absolute value of f is 65520 or more, the
// result is an infinity.
func ToFloat16(f float32) Float16 {
	b := math.Float32bits(f)
	abs := b &^ sign
	x := min(narrow(abs, 10, 113), uint32(InfFloat16)) | b>>16&0x8000
	if abs > infinity {
		x = uint32(NaNFloat16)
	}
	return Float16(x)
}

// Float32 returns x as a float32. A NaN keeps its sign and its fraction.
func (x Float16) Float32() float32 {
	return math.Float32frombits(widen(uint32(x&0x7fff), 10, 113, uint32(InfFloat16), 0x1p-24) | uint32(x&0x8000)<<16)
}
