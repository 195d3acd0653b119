package simdriver

import (
	"encoding/binary"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// batch is the number of elements that are reduced at a time.
const batch = 256

// reduce writes the reduction of srcs to each of dsts. All these slices have the same length. A
// slice of dsts may be in srcs too. scales holds the factor of each source for PreMulSum. Floats
// are reduced as float64 and rounded once. Integers wrap.
func reduce(t driver.ElementType, r driver.Reduction, dsts, srcs [][]byte, scales [][8]byte) {
	size := t.Size()
	var out [batch * 8]byte
	for at := 0; at < len(srcs[0]); at += batch * size {
		end := min(at+batch*size, len(srcs[0]))
		b := out[:end-at]
		if isFloat(t) {
			reduceFloats(t, r, b, at, srcs, scales)
		} else {
			reduceInts(t, r, b, at, srcs, scales)
		}
		for _, d := range dsts {
			copy(d[at:end], b)
		}
	}
}

func isFloat(t driver.ElementType) bool { return t >= driver.Float16 }

// isSigned reports whether a type is a signed integer.
func isSigned(t driver.ElementType) bool {
	switch t {
	case driver.Int8, driver.Int16, driver.Int32, driver.Int64:
		return true
	}
	return false
}

// reduceFloats reduces len(out) bytes of each of srcs, from offset at on, into out.
func reduceFloats(t driver.ElementType, r driver.Reduction, out []byte, at int, srcs [][]byte, scales [][8]byte) {
	var all, one [batch]float64
	n := len(out) / t.Size()
	for i, src := range srcs {
		next := one[:n]
		if i == 0 {
			next = all[:n]
		}
		loadFloats(t, next, src[at:])
		if r == driver.PreMulSum {
			var scale [1]float64
			loadFloats(t, scale[:], scales[i][:])
			for j := range next {
				next[j] *= scale[0]
			}
		}
		if i == 0 {
			continue
		}
		for j, x := range next {
			y := &all[j]
			switch r {
			case driver.Prod:
				*y *= x
			case driver.Min: // if one operand of Min or Max is NaN, the result is the other one, as on GPUs
				if x < *y || *y != *y {
					*y = x
				}
			case driver.Max:
				if x > *y || *y != *y {
					*y = x
				}
			default:
				*y += x
			}
		}
	}
	if r == driver.Avg {
		for j := range all[:n] {
			all[j] /= float64(len(srcs))
		}
	}
	storeFloats(t, out, all[:n])
}

// reduceInts does for integers what reduceFloats does for floats. It extends them to 64 bits, and
// drops the extra bits of the result.
func reduceInts(t driver.ElementType, r driver.Reduction, out []byte, at int, srcs [][]byte, scales [][8]byte) {
	var all, one [batch]uint64
	n := len(out) / t.Size()
	signed := isSigned(t)
	less := func(x, y uint64) bool {
		if signed {
			return int64(x) < int64(y)
		}
		return x < y
	}
	for i, src := range srcs {
		next := one[:n]
		if i == 0 {
			next = all[:n]
		}
		loadInts(t, next, src[at:])
		if r == driver.PreMulSum {
			var scale [1]uint64
			loadInts(t, scale[:], scales[i][:])
			for j := range next {
				next[j] *= scale[0]
			}
		}
		if i == 0 {
			continue
		}
		for j, x := range next {
			y := &all[j]
			switch r {
			case driver.Prod:
				*y *= x
			case driver.Min:
				if less(x, *y) {
					*y = x
				}
			case driver.Max:
				if less(*y, x) {
					*y = x
				}
			default:
				*y += x
			}
		}
	}
	if r == driver.Avg {
		storeInts(t, out, all[:n]) // an integer sum wraps to its type before the division
		loadInts(t, all[:n], out)
		for j, x := range all[:n] {
			if signed {
				all[j] = uint64(int64(x) / int64(len(srcs)))
			} else {
				all[j] = x / uint64(len(srcs))
			}
		}
	}
	storeInts(t, out, all[:n])
}

// loadFloats reads len(to) floats of a type.
func loadFloats(t driver.ElementType, to []float64, b []byte) {
	switch t {
	case driver.Float64:
		for i := range to {
			to[i] = math.Float64frombits(binary.NativeEndian.Uint64(b[8*i:]))
		}
	case driver.Float32:
		for i := range to {
			to[i] = float64(math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:])))
		}
	case driver.Float16:
		for i := range to {
			to[i] = float64(smallfloat.Float16(binary.NativeEndian.Uint16(b[2*i:])).Float32())
		}
	case driver.BFloat16:
		for i := range to {
			to[i] = float64(smallfloat.BFloat16(binary.NativeEndian.Uint16(b[2*i:])).Float32())
		}
	case driver.Float8E4M3:
		for i := range to {
			to[i] = float64(smallfloat.Float8E4M3(b[i]).Float32())
		}
	case driver.Float8E5M2:
		for i := range to {
			to[i] = float64(smallfloat.Float8E5M2(b[i]).Float32())
		}
	}
}

// storeFloats writes floats, rounded to a type.
func storeFloats(t driver.ElementType, b []byte, from []float64) {
	switch t {
	case driver.Float64:
		for i, x := range from {
			binary.NativeEndian.PutUint64(b[8*i:], math.Float64bits(x))
		}
	case driver.Float32:
		for i, x := range from {
			binary.NativeEndian.PutUint32(b[4*i:], math.Float32bits(float32(x)))
		}
	case driver.Float16:
		for i, x := range from {
			binary.NativeEndian.PutUint16(b[2*i:], uint16(smallfloat.FromFloat64[smallfloat.Float16](x)))
		}
	case driver.BFloat16:
		for i, x := range from {
			binary.NativeEndian.PutUint16(b[2*i:], uint16(smallfloat.FromFloat64[smallfloat.BFloat16](x)))
		}
	case driver.Float8E4M3:
		for i, x := range from {
			b[i] = byte(smallfloat.FromFloat64[smallfloat.Float8E4M3](x))
		}
	case driver.Float8E5M2:
		for i, x := range from {
			b[i] = byte(smallfloat.FromFloat64[smallfloat.Float8E5M2](x))
		}
	}
}

// loadInts reads len(to) integers of a type. It sign-extends signed types.
func loadInts(t driver.ElementType, to []uint64, b []byte) {
	for i := range to {
		switch t {
		case driver.Int8:
			to[i] = uint64(int8(b[i]))
		case driver.Uint8:
			to[i] = uint64(b[i])
		case driver.Int32:
			to[i] = uint64(int32(binary.NativeEndian.Uint32(b[4*i:])))
		case driver.Uint32:
			to[i] = uint64(binary.NativeEndian.Uint32(b[4*i:]))
		default:
			to[i] = binary.NativeEndian.Uint64(b[8*i:])
		}
	}
}

// storeInts writes integers, truncated to the size of the type.
func storeInts(t driver.ElementType, b []byte, from []uint64) {
	for i, x := range from {
		switch t.Size() {
		case 1:
			b[i] = byte(x)
		case 4:
			binary.NativeEndian.PutUint32(b[4*i:], uint32(x))
		default:
			binary.NativeEndian.PutUint64(b[8*i:], x)
		}
	}
}
