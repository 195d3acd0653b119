package cudadriver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unsafe"

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

// TestGPUOccupancy compares how many blocks of a kernel a multiprocessor holds with what the driver says of a module of the test's own, for
// every size of a block and of its shared memory that can be launched. Of others there are none.
func TestGPUOccupancy(t *testing.T) {
	d := openGPU(t)
	drv, err := New(d.lib)
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	threads := []int{1, 31, 32, 33, 64, 96, 128, 192, 250, 256, 320, 512, 640, 768, 1000, 1024, 1025}
	shared := []int{0, 1, 1000, 1 << 10, 10_000, 16 << 10, 32 << 10, 48 << 10, 48<<10 + 1, 64 << 10, 100_000, 1 << 20}
	different := map[int]bool{}
	for _, c := range []struct {
		image []byte
		name  string
	}{{kernels.Basic, "index"}, {kernels.Saxpy, "saxpy"}, {kernels.Dense, "dense"}, {kernels.Meet, "meet"}, {[]byte(gpuPTX), "odd"}} {
		image := append(bytes.Clone(c.image), 0)
		m, err := d.lib.ModuleLoadData(unsafe.Pointer(unsafe.SliceData(image)))
		ok(t, err)
		defer d.lib.ModuleUnload(m)
		f, err := d.lib.ModuleGetFunction(m, c.name)
		ok(t, err)
		fixed, err := d.lib.FuncGetAttribute(cuda.FuncAttributeSharedSizeBytes, f)
		ok(t, err)
		most, err := d.lib.FuncGetAttribute(cuda.FuncAttributeMaxThreadsPerBlock, f)
		ok(t, err)
		room := d.info.SharedOptIn - int(fixed)
		ok(t, d.lib.FuncSetAttribute(f, cuda.FuncAttributeMaxDynamicSharedSizeBytes, int32(room)))
		x, err := dev.Load(c.image)
		ok(t, err)
		defer x.Close()
		k, err := x.Kernel(c.name)
		ok(t, err)
		for _, n := range threads {
			for _, size := range append(shared, room/2, room-1, room, room+1) {
				want := int32(0)
				if n <= int(most) && size <= room {
					want, err = d.lib.OccupancyMaxActiveBlocksPerMultiprocessor(f, int32(n), uint64(size))
					ok(t, err)
				}
				got, err := k.Occupancy(n, size)
				if got != int(want) || err != nil {
					t.Errorf("%s in blocks of %d threads with %d bytes: %d blocks, %v; the driver says %d", c.name, n, size, got, err, want)
				}
				different[got] = true
			}
		}
	}
	if len(different) < 6 {
		t.Errorf("the numbers are %v only", slices.Sorted(maps.Keys(different)))
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

// TestGPUFactsElsewhere compares facts with those of nvidia-smi and of PyTorch, where there are these.
func TestGPUFactsElsewhere(t *testing.T) {
	d := openGPU(t)
	i := d.Info()
	uuid := fmt.Sprintf("GPU-%x-%x-%x-%x-%x", i.UUID[:4], i.UUID[4:6], i.UUID[6:8], i.UUID[8:10], i.UUID[10:])
	// compare compares texts by name: ours, and in the same order theirs.
	compare := func(t *testing.T, names, theirs []string, ours ...any) {
		t.Helper()
		if len(theirs) != len(names) || len(ours) != len(names) {
			t.Fatalf("%d facts of %d: %q", len(theirs), len(names), theirs)
		}
		for i, name := range names {
			if got := strings.TrimSpace(theirs[i]); got != "" && got != "[N/A]" && got != fmt.Sprint(ours[i]) {
				t.Errorf("%s: %v; want %s", name, ours[i], got)
			}
		}
	}
	t.Run("nvidia-smi", func(t *testing.T) {
		if i.MIG {
			t.Skip("nvidia-smi describes the whole GPU")
		}
		names := []string{"name", "uuid", "pci.bus_id", "driver_version", "clocks.max.sm", "clocks.max.memory", "compute_cap"}
		out, err := exec.CommandContext(t.Context(), "nvidia-smi", "--id="+uuid, "--format=csv,noheader,nounits", "--query-gpu="+strings.Join(names, ",")).CombinedOutput()
		if err != nil {
			t.Skipf("nvidia-smi: %v: %s", err, out)
		}
		compare(t, names, strings.Split(strings.ToLower(string(out)), ","), strings.ToLower(i.Name), strings.ToLower(uuid), "0000"+strings.ToLower(i.PCI), i.DriverVersion,
			i.Clock/1000, i.MemoryClock/1000, fmt.Sprintf("%d.%d", i.Major, i.Minor))
	})
	t.Run("PyTorch", func(t *testing.T) {
		names := []string{"name", "uuid", "major", "minor", "total_memory", "multi_processor_count", "warp_size", "L2_cache_size",
			"max_threads_per_multi_processor", "regs_per_multiprocessor", "shared_memory_per_block", "shared_memory_per_block_optin", "shared_memory_per_multiprocessor"}
		const program = "import json, sys, torch; p = torch.cuda.get_device_properties(0); print(json.dumps([str(getattr(p, n, '')) for n in sys.argv[1:]]))"
		out, err := exec.CommandContext(t.Context(), "python3", append([]string{"-c", program}, names...)...).Output()
		if err != nil {
			t.Skipf("PyTorch: %v", err)
		}
		var theirs []string
		ok(t, json.Unmarshal(out, &theirs))
		compare(t, names, theirs, i.Name, strings.TrimPrefix(uuid, "GPU-"), i.Major, i.Minor, i.Memory, i.Processors, i.WarpSize, i.L2,
			i.ProcessorThreads, i.ProcessorRegisters, i.SharedMem, i.SharedOptIn, i.ProcessorSharedMem)
	})
}
