// Package fakegpu builds a fake CUDA driver and a fake NCCL from C, so that examples run without a
// GPU. The fakes check which functions are called, in which order, and with which arguments. The
// examples check the results.
package fakegpu

import (
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/symbols"
)

// Driver sets the environment to use a fake CUDA driver, with faults that driver.c knows.
func Driver(t *testing.T, faults ...string) {
	t.Helper()
	use(t, "cuda", "PUREGPU_CUDA_LIBRARY", "driver.c", faults, func(f symbols.Func) bool {
		return !strings.HasPrefix(f.Symbol, "cuGetProcAddress") // without this function the bindings look up all functions by name
	})
}

// NCCL sets the environment to use a fake NCCL, with faults that nccl.c knows.
func NCCL(t *testing.T, faults ...string) {
	t.Helper()
	use(t, "nccl", "PUREGPU_NCCL_LIBRARY", "nccl.c", faults, func(symbols.Func) bool { return true })
}

func use(t *testing.T, name, env, source string, faults []string, has func(symbols.Func) bool) {
	t.Helper()
	lib, err := symbols.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	fake := testlib.Fake{File: "lib" + name + "-fake.so", Source: "../../runtime/examples/internal/fakegpu/testdata/" + source, Defines: faults}
	for _, f := range lib.Funcs {
		if has(f) {
			fake.Symbols = append(fake.Symbols, f.Symbol)
		}
	}
	t.Setenv(env, fake.Build(t))
}
