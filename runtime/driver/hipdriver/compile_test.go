//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
)

// withHIPRTC builds testdata/fakes/hiprtc.c as a library with the given file name, and makes
// devices load it. It returns the library's path.
func withHIPRTC(t *testing.T, file string) string {
	t.Helper()
	path := testlib.Fake{File: file, Source: "hiprtc.c"}.Build(t)
	t.Setenv("PUREGPU_HIPRTC_LIBRARY", path)
	return path
}

// TestCompileNames checks the names of source and headers in logs.
func TestCompileNames(t *testing.T) {
	for log, want := range map[string]string{
		"/tmp/comgr-314-2-f5c1be/input/dir/k.hip:2:7: error: x":                "dir/k.hip:2:7: error: x",
		"/tmp/comgr-b11c63/input/CompileSource:2:7: error: x":                  "k.hip:2:7: error: x",
		"/tmp/comgr-b11c63/input/k.hip:2:7: error: x":                          "k.hip:2:7: error: x",
		"/tmp/comgr-b11c63/include/sub/h.h:2:7: error: x":                      "sub/h.h:2:7: error: x",
		"In file included from /var/tmp/comgr-1/input/CompileSource:1:\nx":     "In file included from k.hip:1:\nx",
		`C:\Temp\comgr-1\include\h.h:1:1: error: 'C:\comgr-2\input\k.hip'`:     `h.h:1:1: error: 'k.hip'`,
		"/usr/include/h.h:1:1: error: x in /tmp/other/input/CompileSource":     "/usr/include/h.h:1:1: error: x in /tmp/other/input/CompileSource",
		"/tmp/comgr-1/input/CompileSources:1:1: error: of a file by this name": "CompileSources:1:1: error: of a file by this name",
	} {
		if got := named(log, "k.hip"); got != want {
			t.Errorf("%q becomes %q", log, got)
		}
	}
}

// TestCompileForOthers tests devices that are not AMD's, and devices that do not report their
// architecture.
func TestCompileForOthers(t *testing.T) {
	withHIPRTC(t, "libhiprtc.so.6")
	for _, arch := range []string{"", "sm_90"} {
		d := newFake(t, hip64).device()
		d.info.Arch, d.target = arch, arch
		if _, err := d.Compiler(); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), d.arch()) {
			t.Errorf("%q: %v", arch, err)
		}
	}
}

// TestRealHIPRTC compiles with the hipRTC of this machine, which needs no GPU, and loads the code
// into a fake library. In HIP 5 hipRTC is a part of libamdhip64, which is opened only on request.
func TestRealHIPRTC(t *testing.T) {
	if os.Getenv("PUREGPU_HIPRTC_LIBRARY") == "" && os.Getenv("PUREGPU_TEST_REAL_HIP") != "1" {
		t.Skip("neither PUREGPU_HIPRTC_LIBRARY nor PUREGPU_TEST_REAL_HIP=1 asks for it")
	}
	source := compile.Source{
		Name:    "dir/scale.hip",
		Headers: map[string]string{"sub/scale.h": "#pragma once\n#include \"empty.h\"\n#define FACTOR 3\n", "empty.h": ""},
		Options: []string{"--std=c++17", "-Wall"},
		Names:   []string{"scale<float>", "scale<double>", "&table"},
		Text: `#include "sub/scale.h"
__constant__ float table[4] = {1, 2, 3, 4};

template <typename T> __global__ void scale(T *x, T add, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, unused;
	if (i < n)
		x[i] = x[i] * (T)FACTOR + add + (T)table[i % 4];
}

extern "C" __global__ void plain(float *x) { x[threadIdx.x] += FACTOR; }
`,
	}
	suite.RealCompiler(t, drivertest.Real{
		Source: source, Target: "gfx90a", Warnings: []string{"dir/scale.hip:6:", "unused"},
		Names:   map[string]string{"plain": "plain", "scale<float>": "_Z5scaleIfEvPT_S0_i", "scale<double>": "_Z5scaleIdEvPT_S0_i"},
		Wrong:   map[string]string{"sub/scale.h": "#define FACTOR nothing\n__device__ int f() { return none; }\n"},
		At:      []string{"sub/scale.h:2", "dir/scale.hip:8"},
		Failure: hiprtc.ErrorCompilation, BadOption: hiprtc.ErrorCompilation,
	})
}
