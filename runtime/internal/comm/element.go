package comm

import (
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// encode returns a number as an element of a type, in the first bytes of b.
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
		put(uint64(smallfloat.FromFloat64[smallfloat.Float16](v)))
	case driver.BFloat16:
		put(uint64(smallfloat.FromFloat64[smallfloat.BFloat16](v)))
	case driver.Float8E5M2:
		put(uint64(smallfloat.FromFloat64[smallfloat.Float8E5M2](v)))
	case driver.Float8E4M3:
		put(uint64(smallfloat.FromFloat64[smallfloat.Float8E4M3](v)))
	}
	return b
}
