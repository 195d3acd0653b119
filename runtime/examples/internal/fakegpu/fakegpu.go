// Package fakegpu builds a CUDA driver and an NCCL out of C on which the examples run where there is no GPU: what they
// call, in which order and with what arguments is checked by the fakes, and what they compute by the examples.
package fakegpu

import (
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/symbols"
)

// Driver makes the environment name a fake CUDA driver, with the faults that driver.c knows.
func Driver(t *testing.T, faults ...string) {
	t.Helper()
	use(t, "cuda", "PUREGPU_CUDA_LIBRARY", "driver.c", faults, func(f symbols.Func) bool {
		return !strings.HasPrefix(f.Symbol, "cuGetProcAddress") // the names alone will do
	})
}

// NCCL does the same for NCCL and nccl.c.
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
