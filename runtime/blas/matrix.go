package blas

import (
	"fmt"
	"math/bits"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// Element is the constraint for the types of a matrix's elements.
type Element interface {
	float32 | float64 | smallfloat.Float16 | smallfloat.BFloat16 | smallfloat.Float8E4M3 | smallfloat.Float8E5M2
}

// A Matrix is a matrix in device memory, or several of the same shape. Element (i, j) of matrix k
// is Data[k*BatchStride + i*Stride + j].
type Matrix[T Element] struct {
	Data        gpu.Slice[T]
	Rows, Cols  int  // size of the matrix in memory, even if Transposed is set
	Stride      int  // elements from one row to the next; 0 means Cols
	Transposed  bool // a product uses the transpose: Cols × Rows elements
	Batch       int  // number of matrices; 0 means 1
	BatchStride int  // elements from one matrix to the next; 0 means Rows*Stride
}

// T returns the transpose. It changes nothing in memory.
func (m Matrix[T]) T() Matrix[T] {
	m.Transposed = !m.Transposed
	return m
}

// A shape describes a Matrix without its data. Defaults are filled in.
type shape struct {
	rows, cols, stride, batch, batchStride int
	transposed                             bool
}

// shape checks the matrix and returns its shape.
func (m Matrix[T]) shape(name string) (shape, error) {
	s := shape{m.Rows, m.Cols, m.Stride, m.Batch, m.BatchStride, m.Transposed}
	if s.batch == 0 {
		s.batch = 1
	}
	if s.stride == 0 {
		s.stride = s.cols
	}
	bad := func(format string, args ...any) (shape, error) {
		return s, fmt.Errorf("matrix %s: %s: %w", name, fmt.Sprintf(format, args...), gpu.ErrArgument)
	}
	switch {
	case s.rows < 1 || s.cols < 1:
		return bad("%d rows, %d columns; each must be 1 or more", s.rows, s.cols)
	case s.batch < 1:
		return bad("a Batch of %d", m.Batch)
	case s.stride < s.cols:
		return bad("a stride of %d is below its %d columns", s.stride, s.cols)
	}
	over, size := bits.Mul(uint(s.rows), uint(s.stride))
	if s.batchStride == 0 {
		s.batchStride = int(size)
	}
	last, all := bits.Mul(uint(s.batch-1), uint(s.batchStride))
	switch {
	case s.batchStride < 0:
		return bad("a batch stride of %d", m.BatchStride)
	case over != 0 || last != 0 || int(size) < 0 || int(all) < 0 || int(all)+int(size) < 0:
		return bad("too large")
	}
	if need := int(all) + int(size) - (s.stride - s.cols); need > m.Data.Len() {
		return bad("its data has %d elements, it needs %d", m.Data.Len(), need)
	}
	return s, nil
}

// logicalRows returns the number of rows of the matrix, or of its transpose if Transposed is set.
func (s shape) logicalRows() int {
	if s.transposed {
		return s.cols
	}
	return s.rows
}

// logicalCols returns the number of columns of the matrix, or of its transpose if Transposed is
// set.
func (s shape) logicalCols() int {
	if s.transposed {
		return s.rows
	}
	return s.cols
}
