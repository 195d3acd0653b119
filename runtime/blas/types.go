package blas

import (
	"github.com/puregpu/puregpu/cublaslt"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// An elementType is the type of a matrix's elements.
type elementType uint8

const (
	float64Type elementType = iota
	float32Type
	float16Type
	bfloat16Type
	e4m3Type
	e5m2Type
)

var elementTypes = [...]struct {
	name string
	size int
	cuda cuda.DataType
}{
	{"float64", 8, cuda.DataTypeR64F}, {"float32", 4, cuda.DataTypeR32F}, {"Float16", 2, cuda.DataTypeR16F}, {"BFloat16", 2, cuda.DataTypeR16BF},
	{"Float8E4M3", 1, cuda.DataTypeR8FE4M3}, {"Float8E5M2", 1, cuda.DataTypeR8FE5M2},
}

func (t elementType) String() string { return elementTypes[t].name }

func (t elementType) size() int { return elementTypes[t].size }

// typeOf returns the elementType of T.
func typeOf[T Element]() elementType {
	switch any(*new(T)).(type) {
	case float64:
		return float64Type
	case float32:
		return float32Type
	case smallfloat.Float16:
		return float16Type
	case smallfloat.BFloat16:
		return bfloat16Type
	case smallfloat.Float8E4M3:
		return e4m3Type
	}
	return e5m2Type
}

// typesFit reports whether matrices of these types can be multiplied.
func (k *planKey) typesFit() bool {
	c, a, b := k.types[0], k.types[1], k.types[2]
	switch a.size() {
	case 8, 4:
		return b == a && c == a
	case 2:
		return b == a && (c == a || c == float32Type)
	}
	return b.size() == 1 && (c.size() == 2 || c == float32Type) && (a != e5m2Type || b != e5m2Type)
}

// compute returns cuBLASLt's type of computation, and the type of alpha and beta.
func (k *planKey) compute() (cublaslt.ComputeType, cuda.DataType) {
	switch {
	case k.types[1] == float64Type:
		return cublaslt.Compute64f, cuda.DataTypeR64F
	case k.tf32:
		return cublaslt.Compute32fFastTf32, cuda.DataTypeR32F
	}
	return cublaslt.Compute32f, cuda.DataTypeR32F
}
