package fft

import (
	"fmt"
	"math/bits"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A Shape says which transforms a plan does. Numbers are in row-major order, as in Go's arrays and
// PyTorch's tensors: the last dimension is contiguous, and the transforms of a batch follow each
// other without gaps.
type Shape struct {
	Dims  []int // one to three sizes, the outermost first
	Batch int   // number of transforms in one operation; 0 means 1

	// Padded extends each row of n real numbers of a [RealPlan] to 2·(n/2+1) numbers, so that the
	// row has room for the complex numbers of its transform. The last one or two real numbers are
	// padding. Transforms may then be in place. Plans of complex numbers cannot be padded.
	Padded bool
}

// Points returns the number of points of one transform: the product of the sizes.
func (s Shape) Points() int {
	n := 1
	for _, d := range s.Dims {
		n *= d
	}
	return n
}

// batch returns the number of transforms.
func (s Shape) batch() int { return max(s.Batch, 1) }

// rows returns the number of rows of all transforms.
func (s Shape) rows() int { return s.Points() / s.row() * s.batch() }

// row returns the number of points of a row.
func (s Shape) row() int {
	if len(s.Dims) == 0 {
		return 1
	}
	return s.Dims[len(s.Dims)-1]
}

// half returns the number of complex numbers in the transform of a row of real numbers.
func (s Shape) half() int { return s.row()/2 + 1 }

// pitch returns the number of real numbers from the beginning of a row to the next one.
func (s Shape) pitch() int {
	if s.Padded {
		return 2 * s.half()
	}
	return s.row()
}

// check returns an error for shapes that no plan can have. If check returns nil, the size in bytes
// of all numbers fits into an int64.
func (s Shape) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("fft: a shape with %s: %w", fmt.Sprintf(format, args...), gpu.ErrArgument)
	}
	if n := len(s.Dims); n < 1 || n > 3 {
		return bad("%d dimensions; it can have 1 to 3", n)
	}
	if s.Batch < 0 {
		return bad("a batch of %d", s.Batch)
	}
	total := uint64(s.batch())
	for _, d := range s.Dims {
		if d < 1 {
			return bad("sizes %d; each must be 1 or more", s.Dims)
		}
		over, n := bits.Mul64(total, uint64(d))
		if over != 0 || n > 1<<56 {
			return bad("sizes %d and batch %d, which are too many numbers", s.Dims, s.batch())
		}
		total = n
	}
	return nil
}

// sizes returns the sizes for cuFFT, with the parameter last in place of the last size.
func (s Shape) sizes(last int) []int64 {
	n := make([]int64, len(s.Dims))
	for i, d := range s.Dims {
		n[i] = int64(d)
	}
	n[len(n)-1] = int64(last)
	return n
}
