//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// TestProcAddress checks which function each ABI of a versioned function reaches. If the driver has
// a look-up function, the function that it returns must be used. Otherwise the loader must find the
// exact exported name. Under the plain name the loader finds the oldest ABI, and the driver the
// newest.
func TestProcAddress(t *testing.T) {
	for _, c := range []struct {
		name    string
		release dl.Version
		defines []string
		way     Context // how the existing ABIs are found: 'P' is the driver's look-up, 'D' the loader
		newest  int     // the newest ABI in the driver
	}{
		{"cuGetProcAddress_v2", 13000, []string{"PROC=2"}, 'P', 4},
		{"cuGetProcAddress_v2 before the newest ABI", 12000, []string{"PROC=2"}, 'P', 3},
		{"cuGetProcAddress alone", 11040, []string{"PROC=1"}, 'P', 3},
		{"cuGetProcAddress alone before the third ABI", 11030, []string{"PROC=1"}, 'P', 2},
		{"neither", 11020, []string{"PROC=0"}, 'D', 2},
		{"neither in a new driver", 13000, []string{"PROC=0"}, 'D', 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := openFake(t, c.release, c.defines)
			params := make([]ExecAffinityParam, 2)
			for i, create := range []func() (Context, error){
				func() (Context, error) { return l.CtxCreateV1(7, 9) },
				func() (Context, error) { return l.CtxCreateV2(7, 9) },
				func() (Context, error) { return l.CtxCreateV3(params, 7, 9) },
				func() (Context, error) { return l.CtxCreate(new(CtxCreateParams), 7, 9) },
			} {
				abi := i + 1
				got, err := create()
				if abi > c.newest {
					if _, ok := err.(*dl.SymbolError); !ok {
						t.Errorf("ABI %d: context %#x, %v; want a *dl.SymbolError", abi, got, err)
					}
					continue
				}
				if want := c.way<<24 | Context(abi)<<16 | 7<<8 | 9; got != want || err != nil {
					t.Errorf("ABI %d: context %#x, %v; want %#x", abi, got, err, want)
				}
			}
			// Functions that the driver's look-up lacks are found by exported name.
			if err := l.StreamQuery(600); err != ErrorNotReady {
				t.Errorf("StreamQuery: %v", err)
			}
		})
	}
}

// TestProcAddressSaysWhy checks the reason that Explain gives for a function that neither the
// driver's look-up nor the loader finds.
func TestProcAddressSaysWhy(t *testing.T) {
	for _, c := range []struct {
		name    string
		release dl.Version
		defines []string
		want    string
	}{
		{"not found", 13000, []string{"PROC=2", "PROC_STATUS=1"}, "the driver does not know it; undefined symbol"},
		{"version not sufficient", 13000, []string{"PROC=2", "PROC_STATUS=2"}, "the driver knows it, but not at version 10.1; undefined symbol"},
		{"not found by the first form", 11040, []string{"PROC=1"}, "cuGetProcAddress: cuda: CUDA_ERROR_NOT_FOUND (500): "},
		{"nobody to ask", 11020, []string{"PROC=0"}, "undefined symbol"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := openFake(t, c.release, c.defines, "cuThreadExchangeStreamCaptureMode")
			err := l.ThreadExchangeStreamCaptureMode(new(StreamCaptureMode))
			se, ok := err.(*dl.SymbolError)
			if !ok {
				t.Fatalf("error %v (%T), want a *dl.SymbolError", err, err)
			}
			if se.Symbol != "cuThreadExchangeStreamCaptureMode" || !strings.HasPrefix(se.Why, c.want) {
				t.Errorf("%s is missing because %q, want %q", se.Symbol, se.Why, c.want)
			}
			if line := "\t" + se.Symbol + " (set " + se.Set + ", since 10.1): " + c.want; !strings.Contains(l.Explain(), line) {
				t.Errorf("Explain lacks %q:\n%s", line, l.Explain())
			}
		})
	}

	l := openFake(t, 12000, nil)
	_, err := l.LogsCurrent(0)
	if se, ok := err.(*dl.SymbolError); !ok || se.Why != "newer than the driver; undefined symbol" {
		t.Errorf("a function newer than the driver: %v", err)
	}
}
