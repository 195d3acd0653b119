//go:build linux && (amd64 || arm64) && !nogpu

package hipfft

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
	Library: "hipfft", File: "libhipfft.so.0", Release: "1.0.32", Open: open, Format: FormatVersion,
	Needs: "hipfftPlan1d",
	Lacks: "hipfftExtPlanScaleFactor", Without: true,
	Call: func(l toolkittest.Opened) error {
		return l.(*Library).ExtPlanScaleFactor(7, 0.5)
	},
}

func TestOpen(t *testing.T) { toolkittest.Run(t, release) }

func TestPlanIsDestroyedOnce(t *testing.T) {
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.NewPlan()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.ExecC2C(p.Handle(), 0x1000, 0x2000, Forward); err != nil {
		t.Errorf("a transform: %v", err)
	}
	if err := l.ExecC2C(p.Handle(), 0x1000, 0x2000, Backward); !errors.Is(err, InvalidValue) {
		t.Errorf("the library's error is %v", err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	other, err := l.NewPlan()
	if err != nil || other.Handle() != p.Handle() {
		t.Errorf("%d handles are left: %v", other.Handle()-p.Handle(), err)
	}
}

// TestRealSymbols opens this machine's hipFFT. Opening it needs no GPU.
func TestRealSymbols(t *testing.T) {
	l := toolkittest.Real(t, "hipfft", open, FormatVersion).(*Library)
	patch, err := l.GetProperty(PatchLevel)
	if err != nil || patch != int32(l.Version()%100) {
		t.Errorf("the property says patch level %d: %v", patch, err)
	}
	if err := l.Destroy(0); err != nil && !errors.Is(err, InvalidPlan) {
		t.Errorf("destroying a handle that is no plan: %v", err)
	}
}

func TestCallsDoNotAllocate(t *testing.T) {
	if !dl.Fast {
		t.Skip("calls through package purego allocate")
	}
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if n := testing.AllocsPerRun(100, func() { failed = errors.Join(failed, l.ExecC2C(7, 0x1000, 0x2000, Forward)) }); n != 0 || failed != nil {
		t.Errorf("a transform allocates %v times: %v", n, failed)
	}
}
