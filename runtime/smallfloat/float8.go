package smallfloat

import "math"

// A Float8E4M3 has 4 bits of exponent and 3 of fraction: __nv_fp8_e4m3 in CUDA, __hip_fp8_e4m3 in
// HIP. It has no infinity. Its bits 0x7f and 0xff are NaN.
type Float8E4M3 uint8

const (
	MaxFloat8E4M3             Float8E4M3 = 0x7e // 448
	SmallestNonzeroFloat8E4M3 Float8E4M3 = 0x01 // 2⁻⁹
	NaNFloat8E4M3             Float8E4M3 = 0x7f // the NaN of conversions
)

// ToFloat8E4M3 returns the Float8E4M3 nearest to f. Numbers beyond 448, and infinity, become 448
// with their sign.
func ToFloat8E4M3(f float32) Float8E4M3 {
	b := math.Float32bits(f)
	abs := b &^ sign
	x := min(narrow(abs, 3, 121), uint32(MaxFloat8E4M3)) | b>>24&0x80
	if abs > infinity {
		x = uint32(NaNFloat8E4M3)
	}
	return Float8E4M3(x)
}

// Float32 returns x as a float32. A NaN keeps its sign.
func (x Float8E4M3) Float32() float32 {
	return math.Float32frombits(widen(uint32(x&0x7f), 3, 121, uint32(NaNFloat8E4M3), 0x1p-9) | uint32(x&0x80)<<24)
}

// A Float8E5M2 has 5 bits of exponent and 2 of fraction: __nv_fp8_e5m2 in CUDA, __hip_fp8_e5m2 in
// HIP.
type Float8E5M2 uint8

const (
	MaxFloat8E5M2             Float8E5M2 = 0x7b // 57344
	SmallestNonzeroFloat8E5M2 Float8E5M2 = 0x01 // 2⁻¹⁶
	InfFloat8E5M2             Float8E5M2 = 0x7c // infinity, which no conversion returns
	NaNFloat8E5M2             Float8E5M2 = 0x7f // the NaN of conversions
)

// ToFloat8E5M2 returns the Float8E5M2 nearest to f. Numbers beyond 57344, and infinity, become
// 57344 with their sign.
func ToFloat8E5M2(f float32) Float8E5M2 {
	b := math.Float32bits(f)
	abs := b &^ sign
	x := min(narrow(abs, 2, 113), uint32(MaxFloat8E5M2)) | b>>24&0x80
	if abs > infinity {
		x = uint32(NaNFloat8E5M2)
	}
	return Float8E5M2(x)
}

// Float32 returns x as a float32. A NaN keeps its sign and its fraction.
func (x Float8E5M2) Float32() float32 {
	return math.Float32frombits(widen(uint32(x&0x7f), 2, 113, uint32(InfFloat8E5M2), 0x1p-16) | uint32(x&0x80)<<24)
}
