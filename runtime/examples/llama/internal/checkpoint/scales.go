package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Scales returns the numbers by which the rows of a quantized weight are multiplied, one for each
// row. The module is the weight's name without ".weight". The file may have one number for each row
// or one for all of them.
func (c *Checkpoint) Scales(module string) ([]float32, error) {
	weight, err := c.Tensor(module + ".weight")
	if err != nil {
		return nil, err
	}
	t, err := c.Tensor(module + ".weight_scale")
	if err != nil {
		return nil, err
	}
	data := make([]byte, t.Size)
	if n, err := t.ReadAt(data, 0); n < len(data) {
		return nil, fmt.Errorf("checkpoint: %s: %w", t.Name, err)
	}
	scales := make([]float32, weight.Shape[0])
	numbers := len(data) / t.DType.Size()
	for i := range scales {
		scales[i] = number(t.DType, data, min(i, numbers-1))
	}
	return scales, nil
}

// number returns number i of data of a float type with 16 or 32 bits.
func number(d DType, data []byte, i int) float32 {
	switch d {
	case BF16:
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
	case F16:
		return fromF16(binary.LittleEndian.Uint16(data[2*i:]))
	default:
		return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
}

// fromF16 converts a number of IEEE half precision.
func fromF16(h uint16) float32 {
	sign, exponent, mantissa := uint32(h>>15)<<31, int(h>>10&31), uint32(h&1023)
	switch exponent {
	case 31: // infinity or not a number
		return math.Float32frombits(sign | 0xff<<23 | mantissa<<13)
	case 0: // zero or subnormal
		return math.Float32frombits(sign | math.Float32bits(float32(mantissa)/(1<<24)))
	}
	return math.Float32frombits(sign | uint32(exponent+127-15)<<23 | mantissa<<13)
}
