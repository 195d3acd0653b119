//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
)

// fake builds a fake driver of a release from testdata/fakes/cuda.c. The driver exports the
// release's functions without the functions named in without. The macro PROC in defines says which
// forms of cuGetProcAddress the driver has, whatever the release.
func fake(t testing.TB, release dl.Version, defines []string, without ...string) string {
	t.Helper()
	f := testlib.Fake{File: "libcuda.so.1", Source: "cuda.c", Defines: append([]string{"VERSION=" + fmt.Sprint(int(release))}, defines...)}
	for _, s := range symbols {
		if s.Since <= release && !strings.HasPrefix(s.Name, "cuGetProcAddress") && !slices.Contains(without, s.Name) {
			f.Symbols = append(f.Symbols, s.Name)
		}
	}
	return f.Build(t)
}

// openFake opens a fake driver.
func openFake(t testing.TB, release dl.Version, defines []string, without ...string) *Library {
	t.Helper()
	l, err := Open(Options{Path: fake(t, release, defines, without...)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
