//go:build linux && (amd64 || arm64) && !nogpu

package cusparse

import (
	"errors"
	"testing"
	"unsafe"

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
	Library: "cusparse", File: "libcusparse.so.11", Release: "11.7.5", Open: open, Format: FormatVersion,
	Needs: "cusparseSpMM",
	Lacks: "cusparseCreateConstCsr",
	Call: func(l toolkittest.Opened) error {
		_, err := l.(*Library).CreateConstCsr(1, 1, 1, 0, 0, 0, Index32i, Index32i, IndexBaseZero, cuda.DataTypeR32F)
		return err
	},
}

func TestOpen(t *testing.T) { toolkittest.Run(t, release) }

// TestDroppedFunction checks the errors for functions that CUDA 12 has dropped.
func TestDroppedFunction(t *testing.T) {
	newer := release
	newer.File, newer.Release = "libcusparse.so.12", "12.3.1"
	l, err := Open(Options{Path: newer.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	err = l.Saxpyi(7, 1, nil, 0, 0, 0, IndexBaseZero)
	if e, ok := errors.AsType[*dl.SymbolError](err); !ok || FormatVersion(e.Until) != "11.7.5" {
		t.Errorf("the error of a function that CUDA 12 dropped: %v", err)
	}
}

func TestContextIsDestroyedOnce(t *testing.T) {
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.NewContext()
	if err != nil {
		t.Fatal(err)
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

func TestSpMVDoesNotAllocate(t *testing.T) {
	if !dl.Fast {
		t.Skip("calls through package purego allocate")
	}
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	one, zero := float32(1), float32(0)
	var failed error
	n := testing.AllocsPerRun(100, func() {
		failed = errors.Join(failed, l.SpMV(7, OperationTranspose, unsafe.Pointer(&one), 8, 9, unsafe.Pointer(&zero), 10, cuda.DataTypeR32F, SpMVCSRAlg1, 0x1000))
	})
	if n != 0 || failed != nil {
		t.Errorf("a product allocates %v times: %v", n, failed)
	}
	err = l.SpMV(7, OperationTranspose, unsafe.Pointer(&one), 8, 9, unsafe.Pointer(&one), 10, cuda.DataTypeR32F, SpMVCSRAlg1, 0x1000)
	if !errors.Is(err, StatusInvalidValue) {
		t.Errorf("the library's error is %v", err)
	}
}

// TestRealDescriptors makes descriptors with this machine's cuSPARSE, which needs no GPU.
func TestRealDescriptors(t *testing.T) {
	l := toolkittest.Real(t, "cusparse", open, FormatVersion).(*Library)
	if name, err := l.GetErrorName(StatusZeroPivot); err != nil || name != "CUSPARSE_STATUS_ZERO_PIVOT" {
		t.Errorf("the library calls a code %q: %v", name, err)
	}
	m, err := l.CreateCsr(3, 4, 5, 0x1000, 0x2000, 0x3000, Index32i, Index32i, IndexBaseZero, cuda.DataTypeR64F)
	if err != nil {
		t.Fatal(err)
	}
	rows, cols, nnz, offsets, columns, values, _, index, base, kind, err := l.CsrGet(m)
	if err != nil || rows != 3 || cols != 4 || nnz != 5 || offsets != 0x1000 || columns != 0x2000 || values != 0x3000 ||
		index != Index32i || base != IndexBaseZero || kind != cuda.DataTypeR64F {
		t.Errorf("a matrix of 3 by 4 with 5 elements is of %d by %d with %d, at %#x, %#x and %#x, of %v, %v and %v: %v", rows, cols, nnz, offsets, columns, values, index, base, kind, err)
	}
	if err := l.DestroySpMat(m); err != nil {
		t.Error(err)
	}
}
