package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Scales returns the numbers by which the rows of a quantized weight are multiplied, one for each
// row. The module is the weight's name without ".weight". If the file has one number for all rows,
// Scales repeats it.
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

// number returns number i of data of type F32 or BF16.
func number(d DType, data []byte, i int) float32 {
	if d == BF16 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
}
