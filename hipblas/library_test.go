//go:build linux && (amd64 || arm64) && !nogpu

package hipblas

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/toolkittest"
	"github.com/puregpu/puregpu/runtime/dl"
)

func open(opt dl.Options) (toolkittest.Opened, error) {
	l, err := Open(opt)
	if err != nil {
		return nil, err // not a nil *Library
	}
	return l, nil
}

var release = toolkittest.Case{
	Library: "hipblas", File: "libhipblas.so.2.4", Release: "2.4", Open: open, Format: FormatVersion,
	Needs: "hipblasDgemm",
	Lacks: "hipblasSgemm_64", Without: true,
	Call: func(l toolkittest.Opened) error {
		return l.(*Library).Sgemm64(7, OpN, OpN, 1, 1, 1, nil, 0, 1, 0, 1, nil, 0, 1)
	},
}

func TestOpen(t *testing.T) { toolkittest.Run(t, release) }

func TestContextIsDestroyedOnce(t *testing.T) {
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	one, zero := float32(1), float32(0)
	if err := l.Sgemm(c.Handle(), OpN, OpT, 2, 3, 4, &one, 0x1000, 2, 0x2000, 3, &zero, 0x3000, 2); err != nil {
		t.Errorf("a product: %v", err)
	}
	if err := l.Sgemm(c.Handle(), OpN, OpT, 2, 3, 4, &zero, 0x1000, 2, 0x2000, 3, &zero, 0x3000, 2); !errors.Is(err, StatusInvalidValue) {
		t.Errorf("the library's error is %v", err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	other, err := l.NewContext()
	if err != nil || other.Handle() != c.Handle() {
		t.Errorf("%d handles are left: %v", other.Handle()-c.Handle(), err)
	}
}

func TestSgemmDoesNotAllocate(t *testing.T) {
	if !dl.Fast {
		t.Skip("calls through package purego allocate")
	}
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	one, zero := float32(1), float32(0) // a scalar escapes to the heap; a program makes it once
	n := testing.AllocsPerRun(100, func() {
		failed = errors.Join(failed, l.Sgemm(7, OpN, OpT, 2, 3, 4, &one, 0x1000, 2, 0x2000, 3, &zero, 0x3000, 2))
	})
	if n != 0 || failed != nil {
		t.Errorf("a product allocates %v times: %v", n, failed)
	}
}

func TestVersionInName(t *testing.T) {
	for path, want := range map[string]dl.Version{
		"/usr/lib/x86_64-linux-gnu/libhipblas.so.2.4": 20400, "/opt/rocm/lib/libhipblas.so.3.1.70002": 30100, "libhipblas.so.0.1.50501": 5400,
		"libhipblas.so.0.1": 5400, "libhipblas.so.2": 0, "libhipblas.so": 0, "hipblas.dll": 0,
	} {
		if got := versionInName(path); got != want {
			t.Errorf("%s: version %d, want %d", path, got, want)
		}
	}
}

func TestChangedFunctionIsNotCalled(t *testing.T) {
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	err = l.DotEx(7, 1, 0x1000, hip.DataTypeR32F, 1, 0x2000, hip.DataTypeR32F, 1, nil, hip.DataTypeR32F, hip.DataTypeR32F)
	if !errors.Is(err, dl.ErrSymbol) || !strings.Contains(err.Error(), "hipblasDatatype_t") || !strings.Contains(err.Error(), "DotExV2") {
		t.Errorf("DotEx of hipBLAS 2.4: %v", err)
	}
	err = l.DotExV2(7, 1, 0x1000, hip.DataTypeR32F, 1, 0x2000, hip.DataTypeR32F, 1, nil, hip.DataTypeR32F, hip.DataTypeR32F)
	if err != nil {
		t.Errorf("DotExV2 of hipBLAS 2.4: %v", err)
	}
}

// TestRealSymbols opens this machine's hipBLAS. Opening it needs no GPU.
func TestRealSymbols(t *testing.T) {
	l := toolkittest.Real(t, "hipblas", open, FormatVersion).(*Library)
	if text, err := l.StatusToString(StatusNotSupported); err == nil && text != "HIPBLAS_STATUS_NOT_SUPPORTED" {
		t.Errorf("the library calls a code %q", text)
	}
	if err := l.Destroy(0); err == nil {
		t.Error("destroying no handle is no error")
	}
}
