//go:build linux && (amd64 || arm64) && !race && !nogpu && !puregpu_syscalln

// The test builds its programs without the race detector and without build tags. So a run of the
// test with either of them would prove nothing more.

package examples_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/examples/internal/fakegpu"
)

// TestBindings checks that the examples of packages cuda and nccl report each fault of a fake
// driver and a fake NCCL, and free everything: otherwise the fake's cuCtxSetCurrent fails with 999.
func TestBindings(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	bin := t.TempDir()
	goCommand(t, ".", "build", "-o", bin+string(filepath.Separator), "./saxpy", "./ncclrank")
	absent := filepath.Join(bin, "absent.so")
	for _, test := range []struct {
		program      string
		driver, nccl string // faults; "absent" means no library
		want         string
		fails        bool
	}{
		{"saxpy", "", "", "saxpy: 1048576 elements on Fake GPU: ok\n", false},
		{"saxpy", "absent", "", "cuda: ", true},
		{"saxpy", "NO_DEVICE", "", "start CUDA: cuda: CUDA_ERROR_NO_DEVICE", true},
		{"saxpy", "FEW_ALLOCATIONS=0", "", "allocate 4194304 bytes for x: cuda: CUDA_ERROR_OUT_OF_MEMORY", true},
		{"saxpy", "FEW_ALLOCATIONS=1", "", "allocate 4194304 bytes for y: cuda: CUDA_ERROR_OUT_OF_MEMORY", true},
		{"saxpy", "WRONG_KERNEL=1", "", "element 1048575 of 1048576 is 12861 on Fake GPU, want 12860", true},
		{"ncclrank", "", "", "ncclrank: 1048576 elements by NCCL 2.28.3 on Fake GPU: ok\n", false},
		{"ncclrank", "", "VERSION=2804", "ncclrank: 1048576 elements by NCCL 2.8.4 on Fake GPU: ok\n", false},
		{"ncclrank", "absent", "", "cuda: ", true},
		{"ncclrank", "", "absent", "NCCL not found", true},
		{"ncclrank", "FEW_ALLOCATIONS=1", "", "allocate 4194304 bytes: cuda: CUDA_ERROR_OUT_OF_MEMORY", true},
		{"ncclrank", "", "FAIL_REDUCE", "reduce: nccl: ncclSystemError (2)", true},
		{"ncclrank", "", "WRONG_REDUCE=1", "element 1048575 of 1048576 is 0, want 1048575", true},
	} {
		t.Run(strings.Join(strings.Fields(test.program+" "+test.driver+" "+test.nccl), " "), func(t *testing.T) {
			if t.Setenv("PUREGPU_CUDA_LIBRARY", absent); test.driver != "absent" {
				fakegpu.Driver(t, strings.Fields(test.driver)...)
			}
			if t.Setenv("PUREGPU_NCCL_LIBRARY", absent); test.nccl != "absent" && test.program == "ncclrank" {
				fakegpu.NCCL(t, strings.Fields(test.nccl)...)
			}
			out, err := exec.Command(filepath.Join(bin, test.program)).CombinedOutput()
			if (err != nil) != test.fails || !strings.Contains(string(out), test.want) {
				t.Errorf("%v, printed\n%s\nwant %q", err, out, test.want)
			}
			if strings.Contains(string(out), "(999)") {
				t.Errorf("something was not freed: %s", out)
			}
		})
	}
}
