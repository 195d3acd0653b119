//go:build linux && (amd64 || arm64) && !nogpu

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/symbols"
)

// TestProgram runs the program with a fake CUDA driver, a fake cuBLAS and a fake PyTorch, which
// multiply in host memory.
func TestProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	tab, err := symbols.Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	driver := testlib.Fake{File: "libcuda.so.1", Source: "../../tools/gpubench/testdata/fake.c", Defines: []string{"VERSION=13000"}}
	for _, f := range tab.Funcs {
		if !strings.HasPrefix(f.Symbol, "cuGetProcAddress") {
			driver.Symbols = append(driver.Symbols, f.Symbol)
		}
	}
	cuda := driver.Build(t)
	fake := testlib.Fake{File: "libcublas.so.12", Source: "../../examples/cublas/testdata/cublas.c"} // the same fake also stands for cuBLASLt
	for _, library := range []string{"cublas", "cublaslt"} {
		tab, err := symbols.Load(library)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range tab.Funcs {
			fake.Symbols = append(fake.Symbols, f.Symbol)
		}
	}
	blas := fake.Build(t)
	program := filepath.Join(t.TempDir(), "cublas")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stub, err := filepath.Abs(filepath.Join("testdata", "torch"))
	if err != nil {
		t.Fatal(err)
	}
	run := func(args, env []string) (string, error) {
		cmd := exec.Command(program, append([]string{"-n", "16", "-rounds", "3", "-each", "2", "-slower", "1000"}, args...)...)
		cmd.Env = append(os.Environ(), append([]string{"PUREGPU_CUDA_LIBRARY=" + cuda, "PYTHONPATH=" + stub, "PYTHONDONTWRITEBYTECODE=1", "FAKE_CUBLAS=" + blas, "PUREGPU_CUBLASLT_LIBRARY=" + blas}, env...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run([]string{"-python", "", "-lib", blas}, nil)
	if err != nil || !strings.Contains(out, "GemmBatchedEx: 3 products of 64 × 64 are right\n") || !strings.Contains(out, "cublas: not run: PyTorch: no interpreter is named\n") {
		t.Errorf("without PyTorch: %v\n%s", err, out)
	}
	if out, err = run([]string{"-require-gpu"}, []string{"PUREGPU_CUDA_LIBRARY=" + filepath.Join(stub, "none")}); err == nil || !strings.Contains(out, "cublas: not run: no GPU: ") {
		t.Errorf("without a driver: %v\n%s", err, out)
	}
	if out, err = run([]string{"-python", "", "-lib", filepath.Join(stub, "none")}, nil); err != nil || !strings.Contains(out, "cublas: not run: ") {
		t.Errorf("without cuBLAS: %v\n%s", err, out)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 for the rest")
	}
	if out, err = run([]string{"-require-gpu"}, nil); err != nil || !strings.Contains(out, "PyTorch 9.9.9 with "+blas+" on Fake GPU\n") || !strings.HasSuffix(out, "× its time: ok\n") {
		t.Errorf("with all: %v\n%s", err, out)
	}
}
