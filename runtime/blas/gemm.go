package blas

import (
	"fmt"

	"github.com/puregpu/puregpu/cublaslt"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// An Activation is a function that [GemmWith] applies to each element of the result.
type Activation uint8

// The activations.
const (
	None Activation = iota
	ReLU            // max(x, 0)
	GELU            // x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))); since CUDA 11.4
)

// Gemm is [GemmWith] without options: c = a·b.
func Gemm[C, A, B Element](l *Library, c Matrix[C], a Matrix[A], b Matrix[B]) gpu.Op {
	return GemmWith(l, c, a, b, GemmOptions[C]{})
}

// GemmOptions are the options of [GemmWith]. The zero value means c = a·b.
type GemmOptions[T Element] struct {
	Alpha float64 // multiplies the product; 0 means 1
	Beta  float64 // multiplies the old contents of c; 0 means that c is not read

	Bias       gpu.Slice[T] // added to each row of the result: one element for each column; a zero Slice means no bias
	Activation Activation   // applied last

	// ScaleA and ScaleB multiply the elements of the matrices a and b. Each Slice has one element.
	// A zero Slice means 1. Only matrices with 8-bit elements can have scales.
	ScaleA, ScaleB gpu.Slice[float32]

	TF32           bool // multiply float32 elements with 10 bits of mantissa: faster, but less precise
	FastAccumulate bool // sum the products of 8-bit elements faster, but with less precision
}

// GemmWith returns an Op that computes c = activation(alpha·a·b + beta·c + bias), where a has M × K
// elements, b K × N and c M × N. C: cublasLtMatmul. If c has a Batch, matrix i of c is the product
// of matrix i of a and matrix i of b. If a or b is a single matrix, all products use it. The
// matrices of c must not overlap: each begins behind the one before, or each row of memory has a
// row of every matrix, like the heads of attention.
//
// The element types may be
//
//	a, b                    c
//	float64                 float64
//	float32                 float32
//	Float16, BFloat16       the same, or float32
//	Float8E4M3, Float8E5M2  Float16, BFloat16 or float32; not both a and b Float8E5M2
//
// Sums are in float32, or in float64 for matrices of float64. Matrices a and b with 8-bit elements
// need an Ada GPU or a later one. Then a must not be Transposed, b must be Transposed, K must be a
// multiple of 16, and all rows of a, b and c must begin at multiples of 16 bytes. With a bias, the
// elements of c must have the type of the elements of a, or have 16 bits.
//
// c must not overlap a, b, the bias or a scale. When a product of a new shape is issued for the
// first time, cuBLASLt chooses an algorithm. The choice takes about 50 µs of host time. The Library
// keeps the choices for some thousands of shapes. Wrong arguments make an Op that carries the error.
// Making an Op allocates; submitting the Op again does not allocate on a GPU.
func GemmWith[C, A, B Element](l *Library, c Matrix[C], a Matrix[A], b Matrix[B], o GemmOptions[C]) gpu.Op {
	g, err := newGemm(l, c, a, b, o)
	if err != nil {
		return gpu.BadOp(fmt.Errorf("blas: gemm: %w", err))
	}
	uses := make([]gpu.Range, 0, 6)
	for i := range g.memory {
		uses = append(uses, g.memory[i].Range)
	}
	if l.dev.Simulated() {
		return gpu.Native("gemm", func(n gpu.NativeCall) error {
			if err := g.check(n); err != nil {
				return err
			}
			at := g.operands(n)
			return l.light.StandIn(n, "gemm", nil, func(m standin.Memory) error { return multiply[C, A, B](m, &g, at) })
		}, uses...)
	}
	return gpu.Native("gemm", func(n gpu.NativeCall) error {
		if err := g.check(n); err != nil {
			return err
		}
		return l.light.Use(n, 0, func(h cublaslt.Handle) error { return l.matmul(h, n, &g) })
	}, uses...).Scratch(l.workspace)
}

// A gemm is a product with its options.
type gemm struct {
	key         planKey
	alpha, beta float64
	memory      []libcall.Operand // c, a, b, then bias, scaleA and scaleB if the product has them
}

// check returns an error for a recording's bindings that make c overlap an operand, or that begin
// at an address that the product cannot use.
func (g *gemm) check(n gpu.NativeCall) error {
	if err := libcall.Check(g.memory, n.Ptrs); err != nil {
		return fmt.Errorf("blas: gemm: %w", err)
	}
	return nil
}

// operandOf returns a matrix as an operand.
func operandOf[T Element](name string, m Matrix[T], s shape) libcall.Operand {
	size := typeOf[T]().size()
	return libcall.Operand{
		Name: name, Range: m.Data.Range(), Align: uint64(size), Batch: uint64(s.batch), Rows: uint64(s.rows),
		Width: uint64(s.cols * size), Stride: uint64(s.stride * size), BatchStride: uint64(s.batchStride * size),
	}
}

// by16 reports whether each row of a matrix begins at a multiple of 16 bytes of the buffer.
func by16[T Element](s shape, data gpu.Slice[T]) bool {
	size := typeOf[T]().size()
	return data.Range().Offset%16 == 0 && s.stride*size%16 == 0 && s.batchStride*size%16 == 0
}

// newGemm checks the arguments of GemmWith.
func newGemm[C, A, B Element](l *Library, c Matrix[C], a Matrix[A], b Matrix[B], o GemmOptions[C]) (gemm, error) {
	if l.isZero() {
		return gemm{}, errZero
	}
	k := planKey{
		types: [3]elementType{typeOf[C](), typeOf[A](), typeOf[B]()}, activation: o.Activation,
		bias: o.Bias != gpu.Slice[C]{}, scaleA: o.ScaleA != gpu.Slice[float32]{}, scaleB: o.ScaleB != gpu.Slice[float32]{},
		tf32: o.TF32, fast: o.FastAccumulate,
	}
	var err error
	if k.c, err = c.shape("c"); err != nil {
		return gemm{}, err
	}
	if k.a, err = a.shape("a"); err != nil {
		return gemm{}, err
	}
	if k.b, err = b.shape("b"); err != nil {
		return gemm{}, err
	}
	bad := func(format string, args ...any) (gemm, error) {
		return gemm{}, fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), gpu.ErrArgument)
	}
	m, n, depth := k.c.rows, k.c.cols, k.a.logicalCols()
	switch {
	case k.c.transposed:
		return bad("matrix c is transposed: swap a and b, and transpose them")
	case k.a.logicalRows() != m || k.b.logicalCols() != n || k.b.logicalRows() != depth:
		return bad("a of %d × %d times b of %d × %d is not c of %d × %d", k.a.logicalRows(), depth, k.b.logicalRows(), k.b.logicalCols(), m, n)
	case k.a.batch != 1 && k.a.batch != k.c.batch || k.b.batch != 1 && k.b.batch != k.c.batch:
		return bad("%d matrices a, %d matrices b, %d matrices c", k.a.batch, k.b.batch, k.c.batch)
	case k.c.batch > 1 && k.c.batchStride < (m-1)*k.c.stride+n && (k.c.batchStride < n || k.c.stride < (k.c.batch-1)*k.c.batchStride+n):
		return bad("matrices c overlap: a batch stride of %d is below %d, the elements of a matrix, and a stride of %d has no room for a row of each matrix",
			k.c.batchStride, (m-1)*k.c.stride+n, k.c.stride)
	case k.types[1] != k.types[2] && (k.types[1].size() > 1 || k.types[2].size() > 1):
		return bad("elements %v × %v: a and b must have the same type", k.types[1], k.types[2])
	case !k.typesFit():
		return bad("elements %v × %v = %v", k.types[1], k.types[2], k.types[0])
	case o.Activation > GELU:
		return bad("activation %d", o.Activation)
	case k.bias && o.Bias.Len() != n:
		return bad("a bias of %d elements for %d columns", o.Bias.Len(), n)
	case k.bias && k.types[0] != k.types[1] && k.types[0].size() != 2:
		return bad("a bias of %v with matrices of %v", k.types[0], k.types[1])
	case k.scaleA && o.ScaleA.Len() != 1 || k.scaleB && o.ScaleB.Len() != 1:
		return bad("%d and %d scales; there is one for a matrix", o.ScaleA.Len(), o.ScaleB.Len())
	case (k.scaleA || k.scaleB || k.fast) && k.types[1].size() != 1:
		return bad("scales and FastAccumulate are for elements of 8 bits")
	case k.types[1].size() == 1 && (k.a.transposed || !k.b.transposed):
		return bad("of matrices with 8 bits b must be transposed, and a must not be")
	case k.types[1].size() == 1 && (depth%16 != 0 || !by16(k.a, a.Data) || !by16(k.b, b.Data) || !by16(k.c, c.Data)):
		return bad("of matrices with 8 bits K, the strides and the first bytes must be multiples of 16")
	case k.tf32 && k.types[1] != float32Type:
		return bad("TF32 is for float32")
	}
	g := gemm{key: k, alpha: o.Alpha, beta: o.Beta}
	if g.alpha == 0 {
		g.alpha = 1
	}
	g.memory = append(make([]libcall.Operand, 0, 6), operandOf("c", c, k.c), operandOf("a", a, k.a), operandOf("b", b, k.b))
	g.memory[0].Written = true
	if k.types[1].size() == 1 {
		for i := range g.memory {
			g.memory[i].Align = 16
		}
	}
	if k.bias {
		g.memory = append(g.memory, libcall.Whole("the bias", o.Bias, false))
	}
	if k.scaleA {
		g.memory = append(g.memory, libcall.Whole("ScaleA", o.ScaleA, false))
	}
	if k.scaleB {
		g.memory = append(g.memory, libcall.Whole("ScaleB", o.ScaleB, false))
	}
	return g, libcall.Check(g.memory, nil)
}
