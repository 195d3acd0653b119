//go:build linux && (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestAllHeapFrames checks that AllHeapFrames makes calls slow, for libraries that are open already
// and for libraries opened later. The test runs in a separate process, because AllHeapFrames cannot
// be undone.
func TestAllHeapFrames(t *testing.T) {
	const variable = "PUREGPU_TEST_ALL_HEAP_FRAMES"
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAllHeapFrames$")
		cmd.Env = append(os.Environ(), variable+"=1")
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.ENOEXEC) {
			t.Skip("needs to start itself, which under an emulator the system cannot do")
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	before := openFixture(t)
	if fast := Load(&before.fns[fOut2]) != 0; fast != Fast {
		t.Errorf("fast %v before, want %v", fast, Fast)
	}
	AllHeapFrames()
	after := openFixture(t)
	for name, l := range map[string]*lib{"before": before, "after": after} {
		for i := range l.fns {
			if Load(&l.fns[i]) != 0 {
				t.Fatalf("function %d of the library opened %s is still fast", i, name)
			}
		}
		if out, err := l.Out2(7); out != 7 || err != nil {
			t.Errorf("the library opened %s: %d, %v", name, out, err)
		}
	}
}
