//go:build linux && (amd64 || arm64) && !nogpu

package hiprand

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
	Library: "hiprand", File: "libhiprand.so.1", Release: "3.3", Open: open, Format: FormatVersion,
	Needs: "hiprandSetGeneratorOffset",
	Lacks: "hiprandCreatePoissonDistribution", Without: true,
	Call: func(l toolkittest.Opened) error {
		_, err := l.(*Library).CreatePoissonDistribution(0.5)
		return err
	},
}

func TestOpen(t *testing.T) { toolkittest.Run(t, release) }

func TestGeneratorIsDestroyedOnce(t *testing.T) {
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := l.NewGenerator(RNGPseudoDefault)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.GenerateUniform(g.Handle(), 0x1000, 8); err != nil {
		t.Errorf("numbers: %v", err)
	}
	if err := l.GenerateUniform(g.Handle(), 0, 8); !errors.Is(err, StatusOutOfRange) {
		t.Errorf("the library's error is %v", err)
	}
	if err := l.GenerateNormal(g.Handle(), 0x1000, 8, 1.5, 0.25); err != nil {
		t.Errorf("numbers of a normal distribution: %v", err)
	}
	for range 2 {
		if err := g.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	other, err := l.NewGenerator(RNGPseudoDefault)
	if err != nil || other.Handle() != g.Handle() {
		t.Errorf("%d handles are left: %v", other.Handle()-g.Handle(), err)
	}
}

func TestGenerateUniformDoesNotAllocate(t *testing.T) {
	if !dl.Fast {
		t.Skip("calls through package purego allocate")
	}
	l, err := Open(Options{Path: release.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if n := testing.AllocsPerRun(100, func() { failed = errors.Join(failed, l.GenerateUniform(7, 0x1000, 8)) }); n != 0 || failed != nil {
		t.Errorf("a call allocates %v times: %v", n, failed)
	}
}

// TestRealSymbols opens this machine's hipRAND. Opening it needs no GPU.
func TestRealSymbols(t *testing.T) {
	l := toolkittest.Real(t, "hiprand", open, FormatVersion).(*Library)
	if err := l.SetPseudoRandomGeneratorSeed(0, 42); !errors.Is(err, StatusNotInitialized) {
		t.Errorf("seeding no generator: %v", err)
	}
}
