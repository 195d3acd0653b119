package cublaslt

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

// askVersion asks the library for each part of its version, because releases combine the parts into
// one number in different ways.
func askVersion(l *dl.Library) (dl.Version, error) {
	var parts [3]dl.Version
	for i := range parts {
		part := new(int32)
		if err := check(l.Slow(fnGetProperty, uintptr(cuda.MajorVersion)+uintptr(i), uintptr(unsafe.Pointer(part)))); err != nil {
			return 0, fmt.Errorf("cublasLtGetProperty: %w", err)
		}
		parts[i] = dl.Version(*part)
	}
	return parts[0]*10000 + parts[1]*100 + parts[2], nil
}
