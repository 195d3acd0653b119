package cuda

import "unsafe"

// tensorMapAlign is the alignment of a tensor map that CUDA 13 requires; CUDA 12 required 64.
const tensorMapAlign = 128

// NewTensorMap returns a tensor map whose address is a multiple of 128, as the functions that
// encode tensor maps require. A TensorMap from new or in a Go variable is aligned to 8 bytes.
// Copies do not keep the alignment.
func NewTensorMap() *TensorMap {
	const size = unsafe.Sizeof(TensorMap{})
	b := make([]byte, size+tensorMapAlign-1)
	skip := -uintptr(unsafe.Pointer(&b[0])) % tensorMapAlign
	return (*TensorMap)(unsafe.Pointer(&b[skip]))
}
