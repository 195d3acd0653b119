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

// buildCUDA builds a fake CUDA driver in C and names it in the environment.
func buildCUDA(t *testing.T) (path string) {
	t.Helper()
	tab, err := symbols.Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	fake := testlib.Fake{File: "libcuda.so.1", Source: "../../tools/gpubench/testdata/fake.c", Defines: []string{"VERSION=13000"}}
	for _, f := range tab.Funcs {
		if !strings.HasPrefix(f.Symbol, "cuGetProcAddress") {
			fake.Symbols = append(fake.Symbols, f.Symbol)
		}
	}
	path = fake.Build(t)
	t.Setenv("PUREGPU_CUDA_LIBRARY", path)
	return path
}

// buildNCCL builds a fake NCCL in C, which does nothing, and returns its file.
func buildNCCL(t *testing.T) string {
	t.Helper()
	f := testlib.NCCL(t, 22803, false)
	f.Defines = append(f.Defines, "DEVICE=1")
	return f.Build(t)
}

// usePyTorch makes Python import a fake PyTorch that does nothing, and that has an NCCL. It returns
// the file of the Python interpreter, because python3 may be a slow wrapper, and the file of that
// NCCL.
func usePyTorch(t *testing.T) (python, nccl string) {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if python = strings.TrimSpace(string(out)); err != nil || python == "" {
		t.Skipf("no python3: %v", err)
	}
	stub, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Fatal(err)
	}
	site := t.TempDir()
	file := filepath.Join(site, "nvidia", "nccl", "lib", "libnccl.so.2")
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(buildNCCL(t), file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", stub+":"+site)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	t.Setenv(ncclVariable, "")
	return python, file
}

// measureSome runs some rows of the group collectives.
func measureSome(t *testing.T, opt options, ways ...way) (rows map[string]result, remarks string) {
	t.Helper()
	e, err := newEnv(opt)
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string]result{}
	for _, w := range ways {
		for _, b := range []bench{reduceBench(e, w, 1<<10), reduceBench(e, w, 1<<20), smallBench(e, w)} {
			for _, r := range b.measure(e, 1, &progress{}) {
				rows[r.Row] = r
			}
		}
	}
	remarks = strings.Join(e.remarks, "\n")
	if err := e.close(); err != nil {
		t.Error(err)
	}
	return rows, remarks
}

// TestPyTorch checks, with libraries that do nothing, that all-reduces are compared with PyTorch,
// that the workers use PyTorch's NCCL, and that a missing PyTorch is no failure.
func TestPyTorch(t *testing.T) {
	if race || testing.Short() {
		t.Skip("it starts many processes, one after the other")
	}
	buildCUDA(t)
	python, file := usePyTorch(t)
	opt := options{device: "0", python: python}
	t.Setenv("FAKE_TORCH", "2 2.28.3")
	rows, remarks := measureSome(t, opt, inOne, inMany)
	if len(rows) != 2*(8+8+2) {
		t.Errorf("%d rows", len(rows))
	}
	for name, r := range rows {
		reduced := strings.Contains(name, "all-reduce")
		if r.NotRun != "" || r.Error != "" || r.Puregpu == nil || (r.Raw != nil) != reduced {
			t.Errorf("%s: %+v", name, r)
		}
		small, p50, bus := strings.Contains(name, "1 KiB"), strings.HasSuffix(name, "p50"), strings.HasSuffix(name, "busbw")
		chained := strings.HasSuffix(name, "chain") || strings.HasSuffix(name, "stream")
		if want := small && p50 || !small && bus || chained || strings.Contains(name, "recorded"); want != (r.Goal != nil) {
			t.Errorf("%s has the goal %+v", name, r.Goal)
		}
	}
	if want := "NCCL 2.28.3 of puregpu and 2.28.3 of PyTorch 2.9.9+fake, NCCL_NVLS_ENABLE=0 for both\nNCCL is " + file; remarks != want {
		t.Errorf("remarks\n%s\nwant\n%s", remarks, want)
	}

	// Now PyTorch has another release of NCCL, and the program names another file.
	t.Setenv("FAKE_TORCH", "2 2.27.5")
	t.Setenv(ncclVariable, buildNCCL(t))
	if _, remarks := measureSome(t, opt, inOne); !strings.Contains(remarks, "2.28.3 of puregpu and 2.27.5 of") || !strings.Contains(remarks, "\nwarning: ") {
		t.Errorf("with two releases: %s", remarks)
	}

	// Anything missing on the raw side is no failure.
	for fault, says := range map[string]string{
		"FAKE_TORCH=1 2.28.3":    "collectives have no raw side: PyTorch 2.9.9+fake finds 1 of 2 devices",
		"PYTHONPATH=":            "collectives have no raw side: PyTorch: No module named 'torch'",
		"FAKE_TORCH=2 2.28.3 no": "process", // any of the processes may fail first
		"python":                 `collectives have no raw side: exec: "no-such-python": executable file not found`,
	} {
		t.Run(fault, func(t *testing.T) {
			opt := opt
			if name, value, ok := strings.Cut(fault, "="); ok {
				t.Setenv(name, value)
			} else {
				opt.python = "no-such-python"
			}
			rows, remarks := measureSome(t, opt, inOne)
			if !strings.Contains(remarks, says) || !strings.Contains(remarks, "NCCL 2.28.3, NCCL_NVLS_ENABLE=0\n") {
				t.Errorf("remarks: %s", remarks)
			}
			for name, r := range rows {
				if r.NotRun != "" || r.Error != "" || r.Puregpu == nil || r.Raw != nil || r.Goal != nil && r.Goal.Of == ofRaw {
					t.Errorf("%s: %+v", name, r)
				}
			}
		})
	}
}

// TestWithoutNCCL checks that the rows name the NCCL file that is missing.
func TestWithoutNCCL(t *testing.T) {
	buildCUDA(t)
	t.Setenv(ncclVariable, filepath.Join(t.TempDir(), "absent.so"))
	rows, _ := measureSome(t, options{device: "0", python: "no-such-python"}, inOne, inMany)
	for name, r := range rows {
		if !strings.HasPrefix(r.NotRun, "not run: ") || !strings.Contains(r.NotRun, "absent.so") || r.Error != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
