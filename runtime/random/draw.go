package random

import (
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/curand"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Float is the constraint for the numbers of [Uniform] and [Normal].
type Float interface{ float32 | float64 }

// Integer is the constraint for the numbers of [Bits].
type Integer interface{ uint32 | uint64 }

// Uniform returns the Op that writes random numbers to dst, above 0 and up to 1 (C:
// curandGenerateUniform, curandGenerateUniformDouble). A float32 is made from 32 random bits, a
// float64 from 53. If dst does not begin at a multiple of 16 bytes of its buffer, the numbers are
// drawn to scratch memory and copied. The address of the buffer, or of the range that a recording's
// binding is bound to, must be a multiple of 16; otherwise the draw fails with gpu.ErrArgument.
func Uniform[T Float](g *Generator, dst gpu.Slice[T]) gpu.Op {
	var zero T
	d := draw{name: "curandGenerateUniform", size: 4, fill: fill(uniform32), call: func(l *curand.Library, h curand.Handle, to cuda.DevicePtr, n uint64) error {
		return l.GenerateUniform(h, to, n)
	}}
	if _, ok := any(zero).(float64); ok {
		d = draw{name: "curandGenerateUniformDouble", size: 8, fill: fill(uniform64), call: func(l *curand.Library, h curand.Handle, to cuda.DevicePtr, n uint64) error {
			return l.GenerateUniformDouble(h, to, n)
		}}
	}
	return g.op(d, dst.Range(), dst.Len())
}

// Normal returns the Op that writes normally distributed numbers to dst (C: curandGenerateNormal,
// curandGenerateNormalDouble). cuRAND makes them in pairs: for an odd count it draws one more. If
// the count is odd, or dst does not begin at a multiple of 16 bytes, the numbers are drawn to
// scratch memory and copied. See [Uniform] for addresses.
func Normal[T Float](g *Generator, dst gpu.Slice[T], mean, stddev T) gpu.Op {
	if !(stddev >= 0) {
		return gpu.BadOp(fmt.Errorf("random: normal: a standard deviation of %v: %w", stddev, gpu.ErrArgument))
	}
	d := draw{name: "curandGenerateNormal", size: 4, even: true, fill: fill(normal32(float64(mean), float64(stddev))),
		call: func(l *curand.Library, h curand.Handle, to cuda.DevicePtr, n uint64) error {
			return l.GenerateNormal(h, to, n, float32(mean), float32(stddev))
		}}
	if _, ok := any(mean).(float64); ok {
		d = draw{name: "curandGenerateNormalDouble", size: 8, even: true, fill: fill(normal64(float64(mean), float64(stddev))),
			call: func(l *curand.Library, h curand.Handle, to cuda.DevicePtr, n uint64) error {
				return l.GenerateNormalDouble(h, to, n, float64(mean), float64(stddev))
			}}
	}
	return g.op(d, dst.Range(), dst.Len())
}

// Bits returns the Op that writes random integers to dst (C: curandGenerate). All bits of the
// integers are random. A uint64 takes two of the generator's numbers, the first for the low half.
// If dst does not begin at a multiple of 16 bytes, the numbers are drawn to scratch memory and
// copied. See [Uniform] for addresses.
func Bits[T Integer](g *Generator, dst gpu.Slice[T]) gpu.Op {
	n := dst.Len()
	var zero T
	if _, ok := any(zero).(uint64); ok {
		n *= 2
	}
	return g.op(draw{name: "curandGenerate", size: 4, fill: fill(bits32), call: func(l *curand.Library, h curand.Handle, to cuda.DevicePtr, n uint64) error {
		return l.Generate(h, to, n)
	}}, dst.Range(), n)
}
