package sparse

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cusparse"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// Element is the constraint for the types of a matrix's elements.
type Element interface{ float32 | float64 }

// A Matrix is a sparse matrix in device memory, in the format CSR: its elements are stored row by
// row. Element k is Values[k], in column Columns[k]. Row i has the elements from RowStarts[i] up
// to, but not including, RowStarts[i+1]. Rows, columns and elements are counted from 0, so
// RowStarts begins with 0 and ends with the number of elements.
type Matrix[T Element] struct {
	Rows, Cols int
	RowStarts  gpu.Slice[int32] // Rows + 1 elements
	Columns    gpu.Slice[int32]
	Values     gpu.Slice[T]
	Transposed bool // a product uses the transpose
}

// T returns the transpose. It changes nothing in memory.
func (m Matrix[T]) T() Matrix[T] {
	m.Transposed = !m.Transposed
	return m
}

// MatVec is [MatVecWith] without options: y = a·x.
func MatVec[T Element](l *Library, y gpu.Slice[T], a Matrix[T], x gpu.Slice[T]) gpu.Op {
	return MatVecWith(l, y, a, x, VecOptions{})
}

// VecOptions are the factors of [MatVecWith]. The zero value means y = a·x.
type VecOptions struct {
	Alpha float64 // multiplies the product; 0 means 1
	Beta  float64 // multiplies the old contents of y; 0 means that y is not read
}

// MatVecWith returns an Op that computes y = alpha·a·x + beta·y. C: cusparseSpMV. y must not overlap
// x or the matrix. A GPU does not check the contents of RowStarts and Columns: numbers outside the
// matrix make it access memory outside the slices. A simulated GPU is lost then. The first product
// with a new shape or a new number of elements makes a description for cuSPARSE. The Library keeps
// some thousands of descriptions. Wrong arguments make an Op that carries the error.
func MatVecWith[T Element](l *Library, y gpu.Slice[T], a Matrix[T], x gpu.Slice[T], o VecOptions) gpu.Op {
	if l.isZero() {
		return gpu.BadOp(errZero)
	}
	k := planKey{rows: a.Rows, cols: a.Cols, count: a.Values.Len(), transposed: a.Transposed}
	_, k.wide = any(*new(T)).(float64)
	in, out := a.Cols, a.Rows
	if a.Transposed {
		in, out = out, in
	}
	bad := func(format string, args ...any) gpu.Op {
		return gpu.BadOp(fmt.Errorf("sparse: mat vec: %s: %w", fmt.Sprintf(format, args...), gpu.ErrArgument))
	}
	switch {
	case a.Rows < 1 || a.Cols < 1 || a.Rows > math.MaxInt32-1 || a.Cols > math.MaxInt32 || k.count > math.MaxInt32:
		return bad("a matrix of %d × %d with %d elements", a.Rows, a.Cols, k.count)
	case k.count < 1:
		return bad("a matrix without elements")
	case a.RowStarts.Len() != a.Rows+1:
		return bad("%d row starts for %d rows; there is one more than rows", a.RowStarts.Len(), a.Rows)
	case a.Columns.Len() != k.count:
		return bad("%d columns for %d values", a.Columns.Len(), k.count)
	case x.Len() != in || y.Len() != out:
		return bad("a product of %d × %d with x of %d and y of %d elements", out, in, x.Len(), y.Len())
	}
	f := factors{o.Alpha, o.Beta}
	if f.alpha == 0 {
		f.alpha = 1
	}
	memory := [...]libcall.Operand{
		libcall.Whole("y", y, true), libcall.Whole("RowStarts", a.RowStarts, false), libcall.Whole("Columns", a.Columns, false),
		libcall.Whole("Values", a.Values, false), libcall.Whole("x", x, false),
	}
	if err := libcall.Check(memory[:], nil); err != nil {
		return gpu.BadOp(fmt.Errorf("sparse: mat vec: %w", err))
	}
	var uses [len(memory)]gpu.Range
	for i := range memory {
		uses[i] = memory[i].Range
	}
	if l.in.Dev.Simulated() {
		return gpu.Native("mat vec", func(n gpu.NativeCall) error {
			if err := libcall.Check(memory[:], n.Ptrs); err != nil {
				return fmt.Errorf("sparse: mat vec: %w", err)
			}
			p := [5]driver.Ptr(n.Ptrs)
			return l.in.Handle.StandIn(n, "mat vec", nil, func(m standin.Memory) error { return multiply[T](m, k, f, p) })
		}, uses[:]...)
	}
	var workspace uint64
	err := l.in.Handle.With(func(h cusparse.Handle) error {
		p, err := l.plan(h, k)
		if err == nil {
			workspace = p.workspace
		}
		return err
	})
	if err != nil {
		return gpu.BadOp(fmt.Errorf("sparse: mat vec: %w", err))
	}
	return l.Call("mat vec", workspace, func(c Call) error {
		err := libcall.Check(memory[:], c.Ptrs)
		var p *plan
		if err == nil {
			p, err = l.plan(c.Handle, k)
		}
		switch {
		case err == nil && p.workspace > workspace:
			err = fmt.Errorf("a workspace of %d bytes, and before %d", p.workspace, workspace)
		case err == nil:
			err = p.multiply(c, f)
		}
		if err != nil {
			return fmt.Errorf("sparse: mat vec: %w", err)
		}
		return nil
	}, uses[:]...)
}

// A planKey is the shape of a product and the type of its elements.
type planKey struct {
	rows, cols, count int
	transposed, wide  bool
}

type factors struct{ alpha, beta float64 }

// A plan has cuSPARSE's descriptions of a product.
type plan struct {
	key         planKey
	matrix      cusparse.SpMatDescr
	x, y        cusparse.DnVecDescr
	workspace   uint64
	alpha, beta [8]byte // factors, in the type of the elements
}

// plan returns the plan for k. It makes the plan if there is none.
func (l *Library) plan(h cusparse.Handle, k planKey) (*plan, error) {
	if p := l.plans[k]; p != nil {
		return p, nil
	}
	if err := libcall.MakeRoom(l.plans, func(p *plan) error { return p.destroy(l.in.Lib) }); err != nil {
		return nil, err
	}
	p := &plan{key: k}
	if err := p.describe(l.in.Lib, h); err != nil {
		return nil, errors.Join(err, p.destroy(l.in.Lib))
	}
	l.plans[k] = p
	return p, nil
}

// anywhere is an address that each call replaces.
const anywhere = cuda.DevicePtr(256)

// describe makes cuSPARSE's descriptions of the product and queries the size of the workspace.
func (p *plan) describe(lib *cusparse.Library, h cusparse.Handle) (err error) {
	k := &p.key
	in, out := k.cols, k.rows
	if k.transposed {
		in, out = out, in
	}
	p.matrix, err = lib.CreateCsr(int64(k.rows), int64(k.cols), int64(k.count), anywhere, anywhere, anywhere, cusparse.Index32i, cusparse.Index32i,
		cusparse.IndexBaseZero, k.dataType())
	if err != nil {
		return err
	}
	if p.x, err = lib.CreateDnVec(int64(in), anywhere, k.dataType()); err != nil {
		return err
	}
	if p.y, err = lib.CreateDnVec(int64(out), anywhere, k.dataType()); err != nil {
		return err
	}
	p.set(factors{1, 1})
	p.workspace, err = lib.SpMVBufferSize(h, k.operation(), unsafe.Pointer(&p.alpha), p.matrix, p.x, unsafe.Pointer(&p.beta), p.y, k.dataType(), cusparse.SpMVAlgDefault)
	return err
}

// set sets the plan's alpha and beta.
func (p *plan) set(f factors) {
	if p.key.wide {
		*(*float64)(unsafe.Pointer(&p.alpha)), *(*float64)(unsafe.Pointer(&p.beta)) = f.alpha, f.beta
		return
	}
	*(*float32)(unsafe.Pointer(&p.alpha)), *(*float32)(unsafe.Pointer(&p.beta)) = float32(f.alpha), float32(f.beta)
}

// multiply puts the product into the call's stream.
func (p *plan) multiply(c Call, f factors) error {
	at := func(i int) cuda.DevicePtr { return cuda.DevicePtr(c.Ptrs[i]) }
	var work cuda.DevicePtr
	if len(c.Ptrs) > 5 {
		work = at(5)
	}
	p.set(f)
	if err := c.CsrSetPointers(p.matrix, at(1), at(2), at(3)); err != nil {
		return err
	}
	if err := c.DnVecSetValues(p.x, at(4)); err != nil {
		return err
	}
	if err := c.DnVecSetValues(p.y, at(0)); err != nil {
		return err
	}
	return c.SpMV(c.Handle, p.key.operation(), unsafe.Pointer(&p.alpha), p.matrix, p.x, unsafe.Pointer(&p.beta), p.y, p.key.dataType(), cusparse.SpMVAlgDefault, work)
}

func (k *planKey) dataType() cuda.DataType {
	if k.wide {
		return cuda.DataTypeR64F
	}
	return cuda.DataTypeR32F
}

func (k *planKey) operation() cusparse.Operation {
	if k.transposed {
		return cusparse.OperationTranspose
	}
	return cusparse.OperationNonTranspose
}

// destroy destroys the plan's cuSPARSE objects.
func (p *plan) destroy(lib *cusparse.Library) error {
	var errs [3]error
	if p.matrix != 0 {
		errs[0] = lib.DestroySpMat(p.matrix)
	}
	if p.x != 0 {
		errs[1] = lib.DestroyDnVec(p.x)
	}
	if p.y != 0 {
		errs[2] = lib.DestroyDnVec(p.y)
	}
	return errors.Join(errs[:]...)
}

// multiply is the stand-in for cusparseSpMV. p has the addresses of y, row starts, columns, values
// and x.
func multiply[T Element](m standin.Memory, k planKey, f factors, p [5]driver.Ptr) error {
	in, out := k.cols, k.rows
	if k.transposed {
		in, out = out, in
	}
	starts, err := standin.Read[int32](m, p[1], k.rows+1)
	if err != nil {
		return err
	}
	columns, err := standin.Read[int32](m, p[2], k.count)
	if err != nil {
		return err
	}
	values, err := standin.Read[T](m, p[3], k.count)
	if err != nil {
		return err
	}
	x, err := standin.Read[T](m, p[4], in)
	if err != nil {
		return err
	}
	y, err := standin.Write[T](m, p[0], out)
	if err != nil {
		return err
	}
	sums := make([]float64, out)
	for row := range k.rows {
		from, to := starts[row], starts[row+1]
		if from < 0 || from > to || int(to) > k.count {
			return fmt.Errorf("row %d has elements %d to %d, of %d", row, from, to, k.count)
		}
		if row == 0 && from != 0 || row == k.rows-1 && int(to) != k.count {
			return fmt.Errorf("row %d has elements %d to %d: RowStarts must begin with 0 and end with %d, the number of elements", row, from, to, k.count)
		}
		for i := from; i < to; i++ {
			col := int(columns[i])
			if col < 0 || col >= k.cols {
				return fmt.Errorf("element %d is in column %d, of %d; columns count from 0", i, col, k.cols)
			}
			if k.transposed {
				sums[col] += float64(values[i]) * float64(x[row])
			} else {
				sums[row] += float64(values[i]) * float64(x[col])
			}
		}
	}
	for i, sum := range sums {
		v := f.alpha * sum
		if f.beta != 0 {
			v += f.beta * float64(y[i])
		}
		y[i] = T(v)
	}
	return nil
}
