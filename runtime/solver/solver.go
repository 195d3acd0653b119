package solver

import (
	"cmp"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cusolver"
	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// Element is the constraint for the types of a matrix's elements.
type Element interface{ float32 | float64 }

// Cholesky returns an Op that factorizes a symmetric positive definite matrix: a = L·Lᵀ. The Op
// reads the lower triangle of the matrix and replaces that triangle by L. The elements above the
// diagonal do not change. If info is k > 0, the leading k × k part is not positive definite. C:
// cusolverDnSpotrf.
func Cholesky[T Element](l *Library, a blas.Matrix[T], info gpu.Slice[int32]) gpu.Op {
	m, bad := square("cholesky", l, a, info)
	if bad != nil {
		return gpu.BadOp(bad)
	}
	memory := []libcall.Operand{operandOf("a", a, true), libcall.Whole("info", info, true)}
	f := routinesFor[T]()
	return l.op("cholesky", m,
		func(h cusolver.DnHandle) (int32, error) {
			return f.potrfSize(l.in.Lib, h, cublas.FillModeUpper, m.n, 0, m.stride)
		},
		func(c Call, work cuda.DevicePtr, size int32) error {
			return f.potrf(c.Library, c.Handle, cublas.FillModeUpper, m.n, at(c, 0), m.stride, work, size, at(c, 1))
		},
		func(mem standin.Memory, p []driver.Ptr) error { return cholesky[T](mem, m, p) },
		memory)
}

// CholeskySolve returns an Op that solves A·x = y for each row y of b and replaces the row by x.
// The matrix a has the factor of A that [Cholesky] left there. The solve sets info to 0, whatever
// the matrix is: look at the info of Cholesky. C: cusolverDnSpotrs.
func CholeskySolve[T Element](l *Library, a, b blas.Matrix[T], info gpu.Slice[int32]) gpu.Op {
	m, bad := system("cholesky solve", l, a, b, info)
	if bad != nil {
		return gpu.BadOp(bad)
	}
	f := routinesFor[T]()
	memory := []libcall.Operand{operandOf("a", a, false), operandOf("b", b, true), libcall.Whole("info", info, true)}
	return l.op("cholesky solve", m, nil,
		func(c Call, _ cuda.DevicePtr, _ int32) error {
			return f.potrs(c.Library, c.Handle, cublas.FillModeUpper, m.n, m.sides, at(c, 0), m.stride, at(c, 1), m.sideStride, at(c, 2))
		},
		func(mem standin.Memory, p []driver.Ptr) error { return choleskySolve[T](mem, m, p) },
		memory)
}

// LU returns an Op that factorizes a square matrix with partial pivoting, for [LUSolve]. The Op
// replaces the matrix by the factors and writes the pivots, one for each row. cuSOLVER sees the
// transpose, so the factors are those of aᵀ, stored column by column. If info is k > 0, element k
// of the diagonal of the factor U, counted from 1, is zero, and the matrix is singular. C:
// cusolverDnSgetrf.
func LU[T Element](l *Library, a blas.Matrix[T], pivots, info gpu.Slice[int32]) gpu.Op {
	m, bad := square("lu", l, a, info)
	if bad == nil {
		bad = m.pivots("lu", pivots)
	}
	if bad != nil {
		return gpu.BadOp(bad)
	}
	f := routinesFor[T]()
	memory := []libcall.Operand{operandOf("a", a, true), libcall.Whole("pivots", pivots, true), libcall.Whole("info", info, true)}
	return l.op("lu", m,
		func(h cusolver.DnHandle) (int32, error) { return f.getrfSize(l.in.Lib, h, m.n, m.n, 0, m.stride) },
		func(c Call, work cuda.DevicePtr, _ int32) error {
			return f.getrf(c.Library, c.Handle, m.n, m.n, at(c, 0), m.stride, work, at(c, 1), at(c, 2))
		},
		func(mem standin.Memory, p []driver.Ptr) error { return lu[T](mem, m, p) },
		memory)
}

// LUSolve returns an Op that solves A·x = y for each row y of b and replaces the row by x. The
// matrix a and the slice pivots have the factors of A and the pivots that [LU] left there. The solve
// sets info to 0, whatever the matrix is: look at the info of LU. C: cusolverDnSgetrs.
func LUSolve[T Element](l *Library, a blas.Matrix[T], pivots gpu.Slice[int32], b blas.Matrix[T], info gpu.Slice[int32]) gpu.Op {
	m, bad := system("lu solve", l, a, b, info)
	if bad == nil {
		bad = m.pivots("lu solve", pivots)
	}
	if bad != nil {
		return gpu.BadOp(bad)
	}
	f := routinesFor[T]()
	memory := []libcall.Operand{
		operandOf("a", a, false), libcall.Whole("pivots", pivots, false), operandOf("b", b, true), libcall.Whole("info", info, true),
	}
	return l.op("lu solve", m, nil,
		func(c Call, _ cuda.DevicePtr, _ int32) error {
			return f.getrs(c.Library, c.Handle, cublas.OpT, m.n, m.sides, at(c, 0), m.stride, at(c, 1), at(c, 2), m.sideStride, at(c, 3))
		},
		func(mem standin.Memory, p []driver.Ptr) error { return luSolve[T](mem, m, p) },
		memory)
}

// Eigen returns an Op that computes the eigenvalues of a symmetric matrix, in ascending order, and
// its eigenvectors if vectors is true. The Op reads the lower triangle of the matrix. Afterwards
// row i of the matrix is the eigenvector for values[i], and has length 1. If vectors is false, the
// contents of the matrix are undefined afterwards. If info is k > 0, the algorithm did not
// converge. C: cusolverDnSsyevd.
func Eigen[T Element](l *Library, a blas.Matrix[T], values gpu.Slice[T], vectors bool, info gpu.Slice[int32]) gpu.Op {
	m, bad := square("eigen", l, a, info)
	if bad == nil && values.Len() != int(m.n) {
		bad = fmt.Errorf("solver: eigen: %d values for a matrix of %d rows: %w", values.Len(), m.n, gpu.ErrArgument)
	}
	if bad != nil {
		return gpu.BadOp(bad)
	}
	f, mode := routinesFor[T](), cusolver.EigModeNovector
	if vectors {
		mode = cusolver.EigModeVector
	}
	memory := []libcall.Operand{operandOf("a", a, true), libcall.Whole("values", values, true), libcall.Whole("info", info, true)}
	return l.op("eigen", m,
		func(h cusolver.DnHandle) (int32, error) {
			return f.syevdSize(l.in.Lib, h, mode, cublas.FillModeUpper, m.n, 0, m.stride, 0)
		},
		func(c Call, work cuda.DevicePtr, size int32) error {
			return f.syevd(c.Library, c.Handle, mode, cublas.FillModeUpper, m.n, at(c, 0), m.stride, at(c, 1), work, size, at(c, 2))
		},
		func(mem standin.Memory, p []driver.Ptr) error { return eigen[T](mem, m, vectors, p) },
		memory)
}

// at returns the address of range i of a call. The workspace comes after the ranges.
func at(c Call, i int) cuda.DevicePtr { return cuda.DevicePtr(c.Ptrs[i]) }

// op makes an Op that runs the parameter call, which calls a function of cuSOLVER. On a simulated
// device the Op runs the parameter inGo instead. size returns the number of workspace elements that
// the function of cuSOLVER needs; if size is nil, the function needs none. No graph captures the
// function, because some functions allocate memory in stream order, which a child graph cannot
// contain, and some wait for the device.
func (l *Library) op(name string, m shape, size func(cusolver.DnHandle) (int32, error), call func(c Call, work cuda.DevicePtr, size int32) error,
	inGo func(standin.Memory, []driver.Ptr) error, memory []libcall.Operand) gpu.Op {
	check := func(at []driver.Ptr) error {
		if err := libcall.Check(memory, at); err != nil {
			return fmt.Errorf("solver: %s: %w", name, err)
		}
		return nil
	}
	if err := check(nil); err != nil {
		return gpu.BadOp(err)
	}
	uses := make([]gpu.Range, len(memory))
	for i := range memory {
		uses[i] = memory[i].Range
	}
	if l.in.Dev.Simulated() {
		return libcall.EachExecution(gpu.Native(name, func(n gpu.NativeCall) error {
			if err := check(n.Ptrs); err != nil {
				return err
			}
			p := append([]driver.Ptr(nil), n.Ptrs...)
			return l.in.Handle.StandIn(n, name, nil, func(mem standin.Memory) error { return inGo(mem, p) })
		}, uses...))
	}
	var elements int32
	if size != nil {
		err := l.in.Handle.With(func(h cusolver.DnHandle) (err error) {
			elements, err = size(h)
			return err
		})
		if err != nil {
			return gpu.BadOp(fmt.Errorf("solver: %s: %w", name, err))
		}
	}
	return l.Call(name, uint64(elements)*m.size, func(c Call) error {
		if err := check(c.Ptrs); err != nil {
			return err
		}
		var work cuda.DevicePtr
		if elements > 0 {
			work = at(c, len(uses))
		}
		if err := call(c, work, elements); err != nil {
			return fmt.Errorf("solver: %s: %w", name, err)
		}
		return nil
	}, uses...)
}

// operandOf returns a checked matrix as an operand.
func operandOf[T Element](name string, m blas.Matrix[T], written bool) libcall.Operand {
	size := uint64(routinesFor[T]().size)
	return libcall.Operand{
		Name: name, Range: m.Data.Range(), Written: written, Align: size, Batch: 1, Rows: uint64(m.Rows),
		Width: uint64(m.Cols) * size, Stride: uint64(cmp.Or(m.Stride, m.Cols)) * size,
	}
}

// A shape has the sizes of a square matrix and of its right-hand sides.
type shape struct {
	n, stride         int32
	sides, sideStride int32
	size              uint64 // bytes of an element
}

// square checks a square matrix and info.
func square[T Element](op string, l *Library, a blas.Matrix[T], info gpu.Slice[int32]) (shape, error) {
	bad := func(format string, args ...any) (shape, error) {
		return shape{}, fmt.Errorf("solver: %s: %s: %w", op, fmt.Sprintf(format, args...), gpu.ErrArgument)
	}
	if l.isZero() {
		return shape{}, errZero
	}
	stride, err := dense("a", a)
	switch {
	case err != nil:
		return bad("%v", err)
	case a.Rows != a.Cols:
		return bad("matrix a has %d rows and %d columns", a.Rows, a.Cols)
	case info.Len() != 1:
		return bad("info has %d elements, and needs 1", info.Len())
	}
	return shape{n: int32(a.Rows), stride: stride, size: uint64(routinesFor[T]().size)}, nil
}

// system checks a matrix and its right-hand sides.
func system[T Element](op string, l *Library, a, b blas.Matrix[T], info gpu.Slice[int32]) (shape, error) {
	m, err := square(op, l, a, info)
	if err != nil {
		return m, err
	}
	stride, err := dense("b", b)
	if err == nil && b.Cols != a.Rows {
		err = fmt.Errorf("each row of b is a right-hand side: it has %d elements, and a has %d rows", b.Cols, a.Rows)
	}
	if err != nil {
		return m, fmt.Errorf("solver: %s: %w: %w", op, err, gpu.ErrArgument)
	}
	m.sides, m.sideStride = int32(b.Rows), stride
	return m, nil
}

// dense checks one matrix and returns its stride.
func dense[T Element](name string, m blas.Matrix[T]) (int32, error) {
	stride := m.Stride
	if stride == 0 {
		stride = m.Cols
	}
	switch {
	case m.Rows < 1 || m.Cols < 1 || stride < m.Cols:
		return 0, fmt.Errorf("matrix %s has %d rows, %d columns and a stride of %d", name, m.Rows, m.Cols, m.Stride)
	case m.Rows > math.MaxInt32 || stride > math.MaxInt32:
		return 0, fmt.Errorf("matrix %s is too large", name)
	case m.Batch != 0 && m.Batch != 1:
		return 0, fmt.Errorf("matrix %s is %d matrices", name, m.Batch)
	case m.Transposed:
		return 0, fmt.Errorf("matrix %s is transposed", name)
	case (m.Rows-1)*stride+m.Cols > m.Data.Len():
		return 0, fmt.Errorf("matrix %s has %d elements, and needs %d", name, m.Data.Len(), (m.Rows-1)*stride+m.Cols)
	}
	return int32(stride), nil
}

// pivots checks the length of the slice for pivots.
func (m shape) pivots(op string, pivots gpu.Slice[int32]) error {
	if pivots.Len() != int(m.n) {
		return fmt.Errorf("solver: %s: %d pivots for a matrix of %d rows: %w", op, pivots.Len(), m.n, gpu.ErrArgument)
	}
	return nil
}
