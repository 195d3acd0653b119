package cudadriver

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

// TestGPUCompiledLaunches compiles kernels with nvcc, and runs the suite's launches with them.
// Blocks of a kernel wait for each other or form clusters, or a kernel begins before its
// predecessor has ended.
func TestGPUCompiledLaunches(t *testing.T) {
	keep := openGPU(t)
	if keep.info.Major < 9 {
		t.Skipf("%s has no clusters", keep.info.Arch)
	}
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		nvcc = "/usr/local/cuda/bin/nvcc"
	}
	if _, err := os.Stat(nvcc); err != nil {
		t.Skipf("without nvcc: %v", err)
	}
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skipf("nvcc needs g++: %v", err)
	}
	cubin := filepath.Join(t.TempDir(), "launches.cubin")
	out, err := exec.CommandContext(t.Context(), nvcc, "-cubin", "-arch="+keep.info.Arch, "-o", cubin, "testdata/launches.cu").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", nvcc, err, out)
	}
	image, err := os.ReadFile(cubin)
	ok(t, err)
	t.Logf("%s has made a cubin of %d bytes for %s", nvcc, len(image), keep.info.Arch)
	gputest.RunLaunches(t, func(t *testing.T) gputest.Harness {
		drv, err := New(keep.lib)
		ok(t, err)
		return gputest.Harness{Driver: drv, Kernels: true, Code: map[string][]byte{"ring": image, "meet": image, "lead": image, "follow": image}}
	})
}
