//go:build linux && (amd64 || arm64) && !nogpu

package cusolver

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cuda"
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
	Library: "cusolver", File: "libcusolver.so.11", Release: "11.6.1", Open: open, Format: FormatVersion,
	Needs: "cusolverDnDgetrf",
	Lacks: "cusolverDnXgeev",
	Call: func(l toolkittest.Opened) error {
		f64 := cuda.DataTypeR64F
		return l.(*Library).DnXgeev(7, 8, EigModeNovector, EigModeNovector, 1, f64, 0, 1, f64, 0, f64, 0, 1, f64, 0, 1, f64, 0, 0, nil, 0)
	},
}

func TestOpen(t *testing.T) { toolkittest.Run(t, release) }

func TestContextIsDestroyedOnce(t *testing.T) {
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.NewDnContext()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	other, err := l.NewDnContext()
	if err != nil || other.Handle() != c.Handle() {
		t.Errorf("%d handles are left: %v", other.Handle()-c.Handle(), err)
	}
}

func TestCholeskyDoesNotAllocate(t *testing.T) {
	if !dl.Fast {
		t.Skip("calls through package purego allocate")
	}
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	n := testing.AllocsPerRun(100, func() {
		size, err := l.DnSpotrfBufferSize(7, cublas.FillModeUpper, 5, 0x1000, 6)
		failed = errors.Join(failed, err, l.DnSpotrf(7, cublas.FillModeUpper, 5, 0x1000, 6, 0x2000, size, 0x3000))
	})
	if n != 0 || failed != nil {
		t.Errorf("a factorization allocates %v times: %v", n, failed)
	}
	if err := l.DnSpotrf(7, cublas.FillModeLower, 5, 0x1000, 6, 0x2000, 42, 0x3000); !errors.Is(err, StatusInvalidValue) {
		t.Errorf("the library's error is %v", err)
	}
}

// TestRealSymbols opens this machine's cuSOLVER. Opening it needs no GPU.
func TestRealSymbols(t *testing.T) {
	l := toolkittest.Real(t, "cusolver", open, FormatVersion).(*Library)
	major, err := l.GetProperty(cuda.MajorVersion)
	if err != nil || major != int32(l.Version()/1000) {
		t.Errorf("the property says major version %d: %v", major, err)
	}
	params, err := l.DnIRSParamsCreate()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.DnIRSParamsSetMaxIters(params, 7); err != nil {
		t.Error(err)
	}
	if n, err := l.DnIRSParamsGetMaxIters(params); err != nil || n != 7 {
		t.Errorf("the most iterations are %d, want 7: %v", n, err)
	}
	if err := l.DnIRSParamsDestroy(params); err != nil {
		t.Error(err)
	}
}
