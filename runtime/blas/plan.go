package blas

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/puregpu/puregpu/cublaslt"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
)

// A planKey has everything that the choice of an algorithm depends on.
type planKey struct {
	types                  [3]elementType // of c, a, b
	c, a, b                shape
	activation             Activation
	bias, scaleA, scaleB   bool
	tf32, fast             bool
	alignC, alignA, alignB uint8 // binary logarithms of the alignments of c, a and b
}

// A plan is a product for which cuBLASLt has chosen an algorithm.
type plan struct {
	desc    cublaslt.MatmulDesc
	layouts [3]cublaslt.MatrixLayout // of c, a, b
	algo    cublaslt.MatmulAlgo

	pointers [3]cuda.DevicePtr // the addresses set in desc: bias, scale of a, scale of b
	alpha    [8]byte           // the factors, in the type of the computation
	beta     [8]byte
}

// operands are the addresses of a product's matrices, bias, scales and workspace. Absent ones are
// 0.
type operands struct {
	c, a, b              driver.Ptr
	bias, scaleA, scaleB driver.Ptr
	workspace            driver.Ptr
}

func (g *gemm) operands(n gpu.NativeCall) operands {
	x := operands{c: n.Ptrs[0], a: n.Ptrs[1], b: n.Ptrs[2]}
	rest := n.Ptrs[3:]
	next := func(have bool) (p driver.Ptr) {
		if have {
			p, rest = rest[0], rest[1:]
		}
		return p
	}
	x.bias, x.scaleA, x.scaleB = next(g.key.bias), next(g.key.scaleA), next(g.key.scaleB)
	x.workspace = next(len(rest) > 0)
	return x
}

// alignment returns the binary logarithm of an address's alignment in bytes, at most 8.
func alignment(p driver.Ptr) uint8 { return uint8(min(bits.TrailingZeros64(uint64(p)), 8)) }

// matmul puts a product into the call's stream. It makes a plan for the product if there is none.
func (l *Library) matmul(h cublaslt.Handle, n gpu.NativeCall, g *gemm) error {
	at, key := g.operands(n), g.key
	key.alignC, key.alignA, key.alignB = alignment(at.c), alignment(at.a), alignment(at.b)
	p := l.plans[key]
	if p == nil {
		err := libcall.MakeRoom(l.plans, func(p *plan) error { return p.destroy(l.lt) })
		if err == nil {
			p, err = l.newPlan(h, &key)
		}
		if err != nil {
			return fmt.Errorf("blas: gemm: %w", err)
		}
		l.plans[key] = p
	}
	want := [3]cuda.DevicePtr{cuda.DevicePtr(at.bias), cuda.DevicePtr(at.scaleA), cuda.DevicePtr(at.scaleB)}
	for i, attr := range [3]cublaslt.MatmulDescAttributes{cublaslt.MatmulDescBiasPointer, cublaslt.MatmulDescBScalePointer, cublaslt.MatmulDescAScalePointer} {
		if p.pointers[i] == want[i] {
			continue
		}
		p.pointers[i] = want[i]
		if err := l.lt.MatmulDescSetAttribute(p.desc, attr, unsafe.Pointer(&p.pointers[i]), 8); err != nil {
			p.pointers[i] = 0 // unknown after a failure: the next call sets it again
			return fmt.Errorf("blas: gemm: %w", err)
		}
	}
	p.factors(g)
	// cuBLASLt reads matrices column by column, so it computes the transpose: bᵀ·aᵀ.
	c, a, b := cuda.DevicePtr(at.c), cuda.DevicePtr(at.a), cuda.DevicePtr(at.b)
	err := l.lt.Matmul(h, p.desc, unsafe.Pointer(&p.alpha), b, p.layouts[2], a, p.layouts[1], unsafe.Pointer(&p.beta), c, p.layouts[0], c, p.layouts[0],
		&p.algo, cuda.DevicePtr(at.workspace), l.workspace, cudadriver.Stream(n.Stream))
	if err != nil {
		return fmt.Errorf("blas: gemm: %w", err)
	}
	return nil
}

func (p *plan) factors(g *gemm) {
	if g.key.types[1] == float64Type {
		*(*float64)(unsafe.Pointer(&p.alpha)), *(*float64)(unsafe.Pointer(&p.beta)) = g.alpha, g.beta
		return
	}
	*(*float32)(unsafe.Pointer(&p.alpha)), *(*float32)(unsafe.Pointer(&p.beta)) = float32(g.alpha), float32(g.beta)
}

// newPlan describes a product, and lets cuBLASLt choose an algorithm.
func (l *Library) newPlan(h cublaslt.Handle, k *planKey) (p *plan, err error) {
	compute, scale := k.compute()
	p = &plan{}
	defer func() {
		if err != nil {
			_ = p.destroy(l.lt) // the error of destroy would add nothing to err
		}
	}()
	if p.desc, err = l.lt.MatmulDescCreate(compute, scale); err != nil {
		return p, err
	}
	set := func(attr cublaslt.MatmulDescAttributes, v uint32, size uint64) {
		if err == nil {
			err = l.lt.MatmulDescSetAttribute(p.desc, attr, unsafe.Pointer(&v), size)
		}
	}
	// cuBLASLt computes the transpose, so its matrix A is b.
	set(cublaslt.MatmulDescTransa, uint32(operation(k.b.transposed)), 4)
	set(cublaslt.MatmulDescTransb, uint32(operation(k.a.transposed)), 4)
	set(cublaslt.MatmulDescEpilogue, uint32(k.epilogue()), 4)
	if k.bias && k.types[1].size() == 1 {
		set(cublaslt.MatmulDescBiasDataType, uint32(elementTypes[k.types[0]].cuda), 4)
	}
	if k.fast {
		set(cublaslt.MatmulDescFastAccum, 1, 1)
	}
	for i, s := range [3]shape{k.c, k.a, k.b} {
		if err == nil {
			p.layouts[i], err = l.layout(k.types[i], s, k.c.batch)
		}
	}
	if err != nil {
		return p, err
	}
	pref, err := l.lt.MatmulPreferenceCreate()
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, l.lt.MatmulPreferenceDestroy(pref)) }()
	workspace := l.workspace
	if err := l.lt.MatmulPreferenceSetAttribute(pref, cublaslt.MatmulPrefMaxWorkspaceBytes, unsafe.Pointer(&workspace), 8); err != nil {
		return p, err
	}
	for _, x := range [...]struct {
		attr  cublaslt.MatmulPreferenceAttributes
		power uint8
	}{{cublaslt.MatmulPrefMinAlignmentABytes, k.alignB}, {cublaslt.MatmulPrefMinAlignmentBBytes, k.alignA},
		{cublaslt.MatmulPrefMinAlignmentCBytes, k.alignC}, {cublaslt.MatmulPrefMinAlignmentDBytes, k.alignC}} {
		align := uint32(1) << x.power
		if err := l.lt.MatmulPreferenceSetAttribute(pref, x.attr, unsafe.Pointer(&align), 4); err != nil {
			return p, err
		}
	}
	var found [1]cublaslt.MatmulHeuristicResult
	n, err := l.lt.MatmulAlgoGetHeuristic(h, p.desc, p.layouts[2], p.layouts[1], p.layouts[0], p.layouts[0], pref, found[:])
	switch {
	case errors.Is(err, cublaslt.StatusNotSupported) || err == nil && n == 0:
		return p, fmt.Errorf("cuBLASLt has no algorithm for %v × %v = %v on this device: %w", k.types[1], k.types[2], k.types[0], errors.Join(gpu.ErrUnsupported, err))
	case err != nil:
		return p, err
	case found[0].State != cublaslt.StatusSuccess:
		return p, found[0].State
	}
	p.algo = found[0].Algo
	return p, nil
}

func operation(transposed bool) cublaslt.Operation {
	if transposed {
		return cublaslt.OpT
	}
	return cublaslt.OpN
}

// epilogue returns cuBLASLt's constant for the bias and the activation.
func (k *planKey) epilogue() cublaslt.Epilogue {
	return [...][2]cublaslt.Epilogue{
		None: {cublaslt.EpilogueDefault, cublaslt.EpilogueBias},
		ReLU: {cublaslt.EpilogueRelu, cublaslt.EpilogueReluBias},
		GELU: {cublaslt.EpilogueGelu, cublaslt.EpilogueGeluBias},
	}[k.activation][b2i(k.bias)]
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// layout describes a matrix to cuBLASLt. cuBLASLt reads column by column, so it sees the transpose.
func (l *Library) layout(t elementType, s shape, batch int) (cublaslt.MatrixLayout, error) {
	m, err := l.lt.MatrixLayoutCreate(elementTypes[t].cuda, uint64(s.cols), uint64(s.rows), int64(s.stride))
	if err != nil || batch == 1 {
		return m, err
	}
	count, stride := int32(batch), int64(s.batchStride)
	if s.batch == 1 {
		stride = 0
	}
	return m, errors.Join(l.lt.MatrixLayoutSetAttribute(m, cublaslt.MatrixLayoutBatchCount, unsafe.Pointer(&count), 4),
		l.lt.MatrixLayoutSetAttribute(m, cublaslt.MatrixLayoutStridedBatchOffset, unsafe.Pointer(&stride), 8))
}

// destroy destroys the plan's cuBLASLt objects.
func (p *plan) destroy(lt *cublaslt.Library) error {
	var errs []error
	for _, m := range p.layouts {
		if m != 0 {
			errs = append(errs, lt.MatrixLayoutDestroy(m))
		}
	}
	if p.desc != 0 {
		errs = append(errs, lt.MatmulDescDestroy(p.desc))
	}
	return errors.Join(errs...)
}
