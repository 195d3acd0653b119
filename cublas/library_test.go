//go:build linux && (amd64 || arm64) && !nogpu

package cublas

import (
	"errors"
	"testing"

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
	Library: "cublas", File: "libcublas.so.11", Release: "11.11.3", Open: open, Format: FormatVersion,
	Needs: "cublasDgemm_v2",
	Lacks: "cublasSgemm_v2_64",
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
	one, zero := float32(1), float32(0) // a scalar escapes to the heap; a program makes the scalar once
	n := testing.AllocsPerRun(100, func() {
		failed = errors.Join(failed, l.Sgemm(7, OpN, OpT, 2, 3, 4, &one, 0x1000, 2, 0x2000, 3, &zero, 0x3000, 2))
	})
	if n != 0 || failed != nil {
		t.Errorf("a product allocates %v times: %v", n, failed)
	}
}

// TestRealSymbols opens this machine's cuBLAS. Opening it needs no GPU.
func TestRealSymbols(t *testing.T) {
	l := toolkittest.Real(t, "cublas", open, FormatVersion).(*Library)
	if text, err := l.GetStatusName(StatusNotSupported); err == nil && text != "CUBLAS_STATUS_NOT_SUPPORTED" {
		t.Errorf("the library calls a code %q", text)
	}
	if err := l.Destroy(0); !errors.Is(err, StatusNotInitialized) {
		t.Errorf("destroying no handle: %v", err)
	}
}
