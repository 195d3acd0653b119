package cudadriver

import (
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// TestGPUBlockSize compares the runtime's search for the best size of a block with the driver's own.
func TestGPUBlockSize(t *testing.T) {
	d := openGPU(t)
	drv, err := New(d.lib)
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	for _, c := range []struct {
		image []byte
		name  string
	}{{kernels.Basic, "index"}, {kernels.Basic, "ids"}, {kernels.Saxpy, "saxpy"}, {kernels.Dense, "dense"}} {
		fn, info := load(t, d, c.image, c.name)
		x, err := dev.Load(c.image)
		ok(t, err)
		defer x.Close()
		k, err := x.Kernel(c.name)
		ok(t, err)
		for _, shared := range []int{0, 1000, 10_000, d.info.SharedOptIn - info.SharedMem} {
			for _, most := range []int{0, 1, 40, 100, 256, 1000, 1024} {
				grid, want, err := d.lib.OccupancyMaxPotentialBlockSize(cuda.Function(fn), 0, uint64(shared), int32(most))
				ok(t, err)
				threads, blocks, err := k.BlockSize(shared, most)
				if threads*blocks != int(want)*int(grid) || err != nil { // of sizes that are as good either may choose its own
					t.Errorf("%s with %d bytes and at most %d threads: %d blocks of %d, %v; the driver says %d of %d", c.name, shared, most, blocks, threads, err, grid, want)
				}
			}
		}
	}
}

// TestGPUMemInfo has an allocation take memory that was free.
func TestGPUMemInfo(t *testing.T) {
	d := openGPU(t)
	const size = 1 << 30
	before, total, err := d.MemInfo()
	ok(t, err)
	t.Logf("%d of %d bytes are free; the device has %d", before, total, d.info.Memory)
	if before < 2*size {
		t.Skip("there is little memory")
	}
	alloc(t, d, driver.DeviceMem, size)
	after, same, err := d.MemInfo()
	ok(t, err)
	if same != total || after > before-size/2 { // others may have freed some meanwhile
		t.Errorf("%d of %d bytes are free, after %d of %d and an allocation of %d", after, same, before, total, size)
	}
}
