//go:build linux && (amd64 || arm64) && !nogpu

package cublaslt

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
	Library: "cublaslt", File: "libcublasLt.so.12", Release: "12.4.5", Open: open, Format: FormatVersion,
	Needs: "cublasLtMatrixTransform",
	Lacks: "cublasLtEmulationDescCreate",
	Call: func(l toolkittest.Opened) error {
		_, err := l.(*Library).EmulationDescCreate()
		return err
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

func TestMatmulDoesNotAllocate(t *testing.T) {
	if !dl.Fast {
		t.Skip("calls through package purego allocate")
	}
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	one, zero := float32(1), float32(0)
	algo := new(MatmulAlgo)
	algo.Data[7] = 42
	var failed error
	n := testing.AllocsPerRun(100, func() {
		failed = errors.Join(failed, l.Matmul(7, 8, unsafe.Pointer(&one), 0x1000, 9, 0x2000, 10, unsafe.Pointer(&zero), 0x3000, 11, 0x4000, 12, algo, 0x5000, 64, 13))
	})
	if n != 0 || failed != nil {
		t.Errorf("a product allocates %v times: %v", n, failed)
	}
	if err := l.Matmul(7, 8, unsafe.Pointer(&one), 0x1000, 9, 0x2000, 10, unsafe.Pointer(&zero), 0x3000, 11, 0x4000, 12, nil, 0x5000, 64, 13); !errors.Is(err, StatusNotSupported) {
		t.Errorf("the library's error is %v", err)
	}
}

// TestRealDescriptions makes descriptions with the cuBLASLt of this machine, which needs no GPU for
// them.
func TestRealDescriptions(t *testing.T) {
	l := toolkittest.Real(t, "cublaslt", open, FormatVersion).(*Library)
	layout, err := l.MatrixLayoutCreate(cuda.DataTypeR32F, 3, 5, 4)
	if err != nil {
		t.Fatal(err)
	}
	var rows uint64
	n, err := l.MatrixLayoutGetAttribute(layout, MatrixLayoutRows, unsafe.Pointer(&rows), uint64(unsafe.Sizeof(rows)))
	if err != nil || n != 8 || rows != 3 {
		t.Errorf("a layout of 3 rows has %d, in %d bytes: %v", rows, n, err)
	}
	if err := l.MatrixLayoutDestroy(layout); err != nil {
		t.Error(err)
	}
	desc, err := l.MatmulDescCreate(Compute32f, cuda.DataTypeR32F)
	if err != nil {
		t.Fatal(err)
	}
	op := OpT
	if err := l.MatmulDescSetAttribute(desc, MatmulDescTransa, unsafe.Pointer(&op), uint64(unsafe.Sizeof(op))); err != nil {
		t.Error(err)
	}
	if err := l.MatmulDescSetAttribute(desc, MatmulDescTransa, unsafe.Pointer(&op), 1); !errors.Is(err, StatusInvalidValue) {
		t.Errorf("an attribute of 1 byte in place of 4: %v", err)
	}
	if err := l.MatmulDescDestroy(desc); err != nil {
		t.Error(err)
	}
}
