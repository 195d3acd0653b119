//go:build linux && (amd64 || arm64) && !nogpu

package nvrtc

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
)

// TestOutputsNeedRoom: the library knows no length of the slices that it fills. A method with a
// slice that is too short does not call the library, which would write past the slice's end.
func TestOutputsNeedRoom(t *testing.T) {
	l, err := Open(Options{Path: testlib.Fake{File: "libnvrtc.so.12", Source: "nvrtc.c"}.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.CreateProgram("an odd source", "x.cu", nil, nil) // odd: the log has a warning
	if err != nil {
		t.Fatal(err)
	}
	defer l.DestroyProgram(&p)
	options, err := Texts("--gpu-architecture=compute_80")
	if err == nil {
		err = l.CompileProgram(p, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range []struct {
		name string
		size func(Program) (uint64, error)
		get  func(Program, []byte) error
	}{
		{"PTX", l.GetPTXSize, l.GetPTX},
		{"log", l.GetProgramLogSize, l.GetProgramLog},
	} {
		n, err := output.size(p)
		if err != nil || n < 3 {
			t.Fatalf("%s: %d bytes, %v", output.name, n, err)
		}
		memory := make([]byte, n+10)
		for _, short := range []uint64{0, 1, n - 1} {
			err := output.get(p, memory[:short])
			if e, ok := errors.AsType[*dl.ShortError](err); !ok || e.Need != n || e.Len != int(short) {
				t.Errorf("%s into %d bytes of %d: %v", output.name, short, n, err)
			}
			for i, b := range memory {
				if b != 0 {
					t.Fatalf("%s into %d bytes of %d wrote byte %d", output.name, short, n, i)
				}
			}
		}
		for _, enough := range []uint64{n, n + 10} {
			if err := output.get(p, memory[:enough]); err != nil {
				t.Errorf("%s into %d bytes of %d: %v", output.name, enough, n, err)
			}
		}
	}
	archs, err := l.GetNumSupportedArchs()
	if err != nil || archs < 2 {
		t.Fatalf("%d architectures, %v", archs, err)
	}
	const want = "nvrtc: nvrtcGetSupportedArchs: supportedArchs has 1 elements, but the library writes 3, the result of GetNumSupportedArchs"
	if err := l.GetSupportedArchs(make([]int32, 1)); err == nil || err.Error() != want {
		t.Errorf("GetSupportedArchs: %v, want %q", err, want)
	}
}
