package smallfloat

import "math"

// A BFloat16 is the upper half of a float32: __nv_bfloat16 in CUDA, and __hip_bfloat16 in HIP.
type BFloat16 uint16

const (
	MaxBFloat16             BFloat16 = 0x7f7f // 0x1.fep127, about 3.39e38
	SmallestNonzeroBFloat16 BFloat16 = 0x0001 // 2⁻¹³³
	InfBFloat16             BFloat16 = 0x7f80 // infinity
	NaNBFloat16             BFloat16 = 0x7fff // the NaN of conversions
)

// ToBFloat16 returns the BFloat16 nearest to f. Numbers from 0x1.ffp127 on become infinity.
func ToBFloat16(f float32) BFloat16 {
	b := math.Float32bits(f)
	x := (b + 0x7fff + b>>16&1) >> 16
	if b&^sign > infinity {
		x = uint32(NaNBFloat16)
	}
	return BFloat16(x)
}

// Float32 returns x as a float32. A NaN keeps its sign and its fraction.
func (x BFloat16) Float32() float32 { return math.Float32frombits(uint32(x) << 16) }
