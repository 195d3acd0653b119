//go:build linux && (amd64 || arm64)

package peer

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
)

// TestCompile compiles the kernel and checks that the kernel spills no registers. The test needs
// NVRTC, but no GPU.
func TestCompile(t *testing.T) {
	lib, err := nvrtc.Open(nvrtc.Options{})
	if errors.Is(err, dl.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for arch, ranks := range map[string]int{"sm_80": 8, "sm_86": 3, "sm_90": 2} {
		program, err := lib.CreateProgram(sumText, "sum.cu", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		flags, err := nvrtc.Texts(append(options(ranks), "--gpu-architecture="+arch, "--ptxas-options=-v")...)
		if err != nil {
			t.Fatal(err)
		}
		failed := lib.CompileProgram(program, flags)
		size, err := lib.GetProgramLogSize(program)
		if err != nil {
			t.Fatal(err)
		}
		text := make([]byte, size)
		if err := errors.Join(lib.GetProgramLog(program, text), lib.DestroyProgram(&program)); err != nil {
			t.Fatal(err)
		}
		log := strings.TrimRight(string(text), "\x00\n")
		t.Logf("%s: %s", arch, log)
		if failed != nil {
			t.Errorf("%s: %v", arch, failed)
		} else if strings.Contains(log, "spill stores") && !strings.Contains(log, " 0 bytes spill stores") {
			t.Errorf("%s: the kernel spills registers", arch)
		}
	}
}
