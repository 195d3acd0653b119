package cudadriver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// TestGPUBlockSize compares the runtime's search for the best block size with the driver's.
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
				// If several sizes are equally good, the choices may differ.
				if threads*blocks != int(want)*int(grid) || err != nil {
					t.Errorf("%s with %d bytes and at most %d threads: %d blocks of %d, %v; the driver says %d of %d", c.name, shared, most, blocks, threads, err, grid, want)
				}
			}
		}
	}
}

// TestGPUOccupancy compares Occupancy with the driver's own answer for a module of the test, for
// every block size and shared memory size that can be launched. For other sizes Occupancy must
// return 0.
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

// TestGPUMemInfo checks that an allocation reduces the free memory.
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
	if same != total || after > before-size/2 { // other processes may have freed memory meanwhile
		t.Errorf("%d of %d bytes are free, after %d of %d and an allocation of %d", after, same, before, total, size)
	}
}

// elsewhereSaid compares facts of a device (ours) with those of another source (theirs). The three
// lists have the same order. The other source must know the first facts, as many as need says.
// Facts that the other source does not know are logged.
func elsewhereSaid(t *testing.T, need int, names, theirs []string, ours ...any) {
	t.Helper()
	if len(theirs) != len(names) || len(ours) != len(names) {
		t.Fatalf("%d facts of %d: %q", len(theirs), len(names), theirs)
	}
	equal, untold := 0, []string(nil)
	for i, name := range names {
		switch got := strings.TrimSpace(theirs[i]); {
		case got == "" || got == "[n/a]" || got == "n/a" || got == "[not supported]":
			untold = append(untold, name)
			if i < need {
				t.Errorf("the other source does not tell %s; ours is %v", name, ours[i])
			}
		case got != fmt.Sprint(ours[i]):
			t.Errorf("%s: %v; want %s", name, ours[i], got)
		default:
			equal++
		}
	}
	t.Logf("%d facts are equal; the other source does not tell %q", equal, untold)
}

// TestGPUFactsElsewhere compares facts of all devices with nvidia-smi, Linux and PyTorch, and their
// links with the matrix of nvidia-smi, as far as these sources are available.
func TestGPUFactsElsewhere(t *testing.T) {
	d := openGPU(t)
	drv, err := New(d.lib)
	ok(t, err)
	infos, err := drv.Devices()
	ok(t, err)
	uuids := make([]string, len(infos))
	for k, i := range infos {
		uuids[k] = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", i.UUID[:4], i.UUID[4:6], i.UUID[6:8], i.UUID[8:10], i.UUID[10:])
	}
	smi := func(t *testing.T, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "nvidia-smi", args...).CombinedOutput()
		if err != nil {
			t.Skipf("nvidia-smi: %v: %s", err, out)
		}
		return string(out)
	}
	for k, i := range infos {
		t.Run(fmt.Sprintf("nvidia-smi/%d", k), func(t *testing.T) {
			if i.MIG {
				t.Skip("nvidia-smi describes the whole GPU")
			}
			names := []string{"name", "uuid", "pci.bus_id", "driver_version", "compute_cap", "clocks.max.sm", "clocks.max.memory", "mig.mode.current"}
			ask := func(names []string) []string {
				return strings.Split(strings.ToLower(smi(t, "--id="+uuids[k], "--format=csv,noheader,nounits", "--query-gpu="+strings.Join(names, ","))), ",")
			}
			elsewhereSaid(t, 5, names, ask(names), strings.ToLower(i.Name), strings.ToLower(uuids[k]), "0000"+strings.ToLower(i.PCI), i.DriverVersion,
				fmt.Sprintf("%d.%d", i.Major, i.Minor), i.Clock/1000, i.MemoryClock/1000, "disabled")
			// The driver reserves some of the memory; both numbers are in MiB.
			memory := ask([]string{"memory.total", "memory.reserved"})
			total, err := strconv.ParseUint(strings.TrimSpace(memory[0]), 10, 64)
			if err != nil {
				t.Fatalf("memory: %q", memory)
			}
			if ours := i.Memory >> 20; ours > total || ours < total*95/100 {
				t.Errorf("memory: %d MiB; nvidia-smi says %d", ours, total)
			}
			if reserved, err := strconv.ParseUint(strings.TrimSpace(memory[1]), 10, 64); err != nil {
				t.Logf("nvidia-smi does not tell how much memory the driver reserves: %q", memory[1])
			} else if ours, want := int(i.Memory>>20), int(total-reserved); ours < want-64 || ours > want+64 {
				t.Errorf("memory: %d MiB; nvidia-smi says %d, of which the driver reserves %d", ours, total, reserved)
			}
		})
	}
	for k, i := range infos {
		t.Run(fmt.Sprintf("NUMA node/%d", k), func(t *testing.T) {
			text, err := os.ReadFile("/sys/bus/pci/devices/" + strings.ToLower(i.PCI) + "/numa_node")
			if err != nil {
				t.Skip(err)
			}
			node, err := strconv.Atoi(strings.TrimSpace(string(text)))
			switch {
			case err != nil:
				t.Errorf("numa_node is %q", text)
			case node < 0: // Linux does not know the node, but the driver may
				t.Logf("NUMA node %d; Linux does not tell it", i.NUMANode)
				if _, err := os.Stat(fmt.Sprintf("/sys/devices/system/node/node%d", i.NUMANode)); err != nil && i.NUMANode >= 0 {
					t.Errorf("NUMA node %d: %v", i.NUMANode, err)
				}
			case i.NUMANode != node:
				t.Errorf("NUMA node %d; Linux says %d", i.NUMANode, node)
			}
		})
	}
	t.Run("links", func(t *testing.T) { linksElsewhere(t, drv, uuids, smi) })
	t.Run("PyTorch", func(t *testing.T) {
		names := []string{"name", "major", "minor", "total_memory", "multi_processor_count", "warp_size", "uuid", "L2_cache_size",
			"max_threads_per_multi_processor", "regs_per_multiprocessor", "shared_memory_per_block", "shared_memory_per_block_optin", "shared_memory_per_multiprocessor",
			"is_integrated", "max_threads_per_block", "clock_rate", "memory_clock_rate", "memory_bus_width"}
		const program = "import json, sys, torch; print(json.dumps([[str(getattr(torch.cuda.get_device_properties(i), n, '')) for n in sys.argv[1:]] for i in range(torch.cuda.device_count())]))"
		out, err := exec.CommandContext(t.Context(), "python3", append([]string{"-c", program}, names...)...).Output()
		if err != nil {
			t.Skipf("PyTorch: %v", err)
		}
		var theirs [][]string
		ok(t, json.Unmarshal(out, &theirs))
		if len(theirs) != len(infos) {
			t.Fatalf("PyTorch has %d devices; ours are %d", len(theirs), len(infos))
		}
		for k, i := range infos {
			integrated := 0
			if i.Integrated {
				integrated = 1
			}
			elsewhereSaid(t, 6, names, theirs[k], i.Name, i.Major, i.Minor, i.Memory, i.Processors, i.WarpSize, strings.TrimPrefix(uuids[k], "GPU-"), i.L2,
				i.ProcessorThreads, i.ProcessorRegisters, i.SharedMem, i.SharedOptIn, i.ProcessorSharedMem,
				integrated, i.MaxThreads, i.Clock, i.MemoryClock, i.MemoryBus)
		}
	})
}

// linksElsewhere compares the links between devices with the matrix of nvidia-smi topo -m. If the
// matrix has NV and a number for a pair of devices, the link must give direct access to memory and
// support all atomic operations. Other links must neither be faster nor support all atomic
// operations. The columns of the matrix are in nvidia-smi's order.
func linksElsewhere(t *testing.T, drv *Driver, uuids []string, smi func(t *testing.T, args ...string) string) {
	if len(uuids) < 2 {
		t.Skipf("needs two GPUs, and there are %d", len(uuids))
	}
	index := map[string]string{} // nvidia-smi's index by UUID
	for line := range strings.Lines(smi(t, "--format=csv,noheader", "--query-gpu=index,uuid")) {
		if number, uuid, found := strings.Cut(strings.TrimSpace(line), ", "); found {
			index[uuid] = number
		}
	}
	matrix := map[[2]string]string{} // by pair of indices
	var columns []string
	for line := range strings.Lines(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(smi(t, "topo", "-m"), "")) {
		cells := strings.Fields(line)
		switch {
		case len(cells) < len(uuids) || !strings.HasPrefix(cells[0], "GPU"):
		case columns == nil:
			columns = cells
		default:
			for k, cell := range cells[1:] {
				if k < len(columns) && strings.HasPrefix(columns[k], "GPU") {
					matrix[[2]string{strings.TrimPrefix(cells[0], "GPU"), strings.TrimPrefix(columns[k], "GPU")}] = cell
				}
			}
		}
	}
	devs := make([]*device, len(uuids))
	for k := range devs {
		dev, err := drv.Open(k)
		ok(t, err)
		defer dev.Close()
		devs[k] = dev.(*device)
	}
	slowest, fastest := -1, -1 // ranks of the slowest NVLink and of the fastest other link
	for a, x := range devs {
		for b, y := range devs {
			cell, told := matrix[[2]string{index[uuids[a]], index[uuids[b]]}]
			link, err := x.Link(y)
			ok(t, err)
			t.Logf("device %d to %d: %+v; nvidia-smi says %s", a, b, link, cell)
			nvlink := strings.HasPrefix(cell, "NV")
			switch {
			case !told:
				t.Errorf("device %d to %d: nvidia-smi says nothing: %q", a, b, matrix)
			case (cell == "X") != (a == b) || (cell == "X") != (link.Kind == driver.LinkSelf):
				t.Errorf("device %d to %d: %+v; nvidia-smi says %s", a, b, link, cell)
			case a == b:
			case nvlink && (link.Kind == driver.LinkNone || link.Rank < 0 || !link.Atomics):
				t.Errorf("device %d to %d: %+v; nvidia-smi says %s", a, b, link, cell)
			case link.PCIe == "": // NVML is missing or does not know the devices
				t.Log("NVML tells nothing")
			case link.Kind != driver.LinkNone && nvlink != (link.Kind == driver.LinkNVLink), nvlink && cell != fmt.Sprintf("NV%d", link.NVLinks), !nvlink && cell != link.PCIe:
				t.Errorf("device %d to %d: %+v; nvidia-smi says %s", a, b, link, cell)
			}
			switch {
			case !told || a == b:
			case !nvlink && link.Atomics:
				t.Errorf("device %d to %d: %+v, with atomic operations; nvidia-smi says %s", a, b, link, cell)
			case nvlink:
				slowest = max(slowest, link.Rank)
			case link.Rank >= 0 && (fastest < 0 || link.Rank < fastest):
				fastest = link.Rank
			}
		}
	}
	if fastest >= 0 && fastest < slowest {
		t.Errorf("a link without NVLink has rank %d, and one with it %d", fastest, slowest)
	}
}
