//go:build nogpu || !((linux && (amd64 || (arm64 && (!puregpu_static || cgo)))) || (windows && amd64))

package dl

import (
	"errors"
	"testing"
)

func TestStub(t *testing.T) {
	var l Library
	spec := &Spec{Name: "CUDA driver", Package: "cuda", Names: []string{"libcuda.so.1"}, Sets: []Set{{Name: "core"}}, Symbols: []Symbol{{Name: "cuInit", Sig: "w"}}}
	fast := make([]uintptr, 1)
	err := l.Open(spec, fast, Options{})
	if !errors.Is(err, ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Open: %v", err)
	}
	if Load(&fast[0]) != 0 {
		t.Error("a fast function")
	}
	if _, err := l.Slow(0, 0); !errors.Is(err, ErrNotOpen) {
		t.Errorf("Slow: %v", err)
	}
	if _, err := Callback(func() {}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Callback: %v", err)
	}
	want := "library: CUDA driver, not open\nerror: cuda: cannot open CUDA driver: " + ErrUnsupported.Error() + "\n"
	if got := l.Explain(); got != want {
		t.Errorf("Explain:\n%s\nwant:\n%s", got, want)
	}
}
