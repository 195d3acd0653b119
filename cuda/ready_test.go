//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

func TestReady(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "0")
	for _, c := range []struct {
		name    string
		defines []string
		is      []error
		not     []error
		says    string
	}{
		{"no devices counted", nil, []error{dl.ErrNoDevice}, []error{dl.ErrStub}, "no device (cuDeviceGetCount returned 0)"},
		{"no device", []string{"INIT_RESULT=100"}, []error{dl.ErrNoDevice, ErrorNoDevice}, []error{dl.ErrStub}, "no device (cuInit: cuda: CUDA_ERROR_NO_DEVICE (100): "},
		{"stub", []string{"INIT_RESULT=34"}, []error{dl.ErrStub, ErrorStubLibrary}, []error{dl.ErrNoDevice}, "stub library, only for linking (cuInit: "},
		{"failure", []string{"INIT_RESULT=802"}, []error{ErrorSystemNotReady}, []error{dl.ErrStub, dl.ErrNoDevice}, "cuInit: cuda: CUDA_ERROR_SYSTEM_NOT_READY (802): "},
	} {
		err := ready(&openFake(t, 13000, c.defines).Library)
		for _, is := range c.is {
			if !errors.Is(err, is) {
				t.Errorf("%s: %v is not %v", c.name, err, is)
			}
		}
		for _, not := range c.not {
			if errors.Is(err, not) {
				t.Errorf("%s: %v is %v", c.name, err, not)
			}
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestReadyHidden checks that no file has a device if CUDA_VISIBLE_DEVICES is set and empty.
func TestReadyHidden(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	for _, defines := range [][]string{nil, {"INIT_RESULT=100"}} {
		err := ready(&openFake(t, 13000, defines).Library)
		if !errors.Is(err, dl.ErrHidden) || errors.Is(err, dl.ErrNoDevice) || !strings.HasPrefix(err.Error(), `all devices are hidden: CUDA_VISIBLE_DEVICES is "", `) {
			t.Errorf("%q: %v", defines, err)
		}
	}
	if err := ready(&openFake(t, 13000, []string{"INIT_RESULT=999"}).Library); errors.Is(err, dl.ErrHidden) || !errors.Is(err, ErrorUnknown) {
		t.Errorf("%v", err)
	}
}

// TestDiagnose checks that Diagnose adds causes. Package hostinfo tests the text for each code, and
// package gpuinfo tests whole machines.
func TestDiagnose(t *testing.T) {
	l := openFake(t, 13000, []string{"INIT_RESULT=999"})
	err := l.Diagnose(l.Init(0))
	if !errors.Is(err, ErrorUnknown) || !strings.HasPrefix(err.Error(), ErrorUnknown.Error()) || !strings.HasSuffix(err.Error(), "\n\t"+l.Path()+" (Options.Path): "+ErrorUnknown.Error()) {
		t.Errorf("%v", err)
	}
	for _, same := range []error{nil, dl.ErrNotOpen} {
		if got := l.Diagnose(same); got != same {
			t.Errorf("%v becomes %v", same, got)
		}
	}
	if err := new(Library).Diagnose(ErrorNoDevice); !errors.Is(err, ErrorNoDevice) {
		t.Errorf("of a library that is not open: %v", err)
	}
}
