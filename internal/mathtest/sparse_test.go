//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/sparse"
)

// openSparse returns cuSPARSE on the GPU.
func openSparse(t *testing.T) (*gpu.Device, *sparse.Library) {
	dev := openGPU(t)
	lib, err := sparse.Open(dev, sparse.Options{})
	has(t, err)
	t.Cleanup(func() { must(t, lib.Close()) })
	return dev, lib
}

func TestSparse(t *testing.T) {
	dev, lib := openSparse(t)
	Sparse(t, dev, lib)
	SparseRefused(t, dev, lib)
}
