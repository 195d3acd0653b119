//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// withNVRTC builds testdata/fakes/nvrtc.c and makes devices load it. It returns the path of the
// library.
func withNVRTC(t *testing.T, defines ...string) string {
	t.Helper()
	path := testlib.Fake{File: "libnvrtc.so.12", Source: "nvrtc.c", Defines: defines}.Build(t)
	t.Setenv("PUREGPU_NVRTC_LIBRARY", path)
	return path
}

func TestCompileTargets(t *testing.T) {
	l := &nvrtcLibrary{archs: []int{50, 52, 75, 80, 90}}
	for arch, want := range map[int]string{50: "sm_50", 75: "sm_75", 90: "sm_90", 53: "compute_52", 86: "compute_80", 100: "compute_90", 121: "compute_90"} {
		if got, err := l.target(arch); got != want || err != nil {
			t.Errorf("for %d: %s, %v; want %s", arch, got, err, want)
		}
	}
	for _, l := range []*nvrtcLibrary{l, {}} {
		if got, err := l.target(37); got != "" || !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("for 37: %s, %v", got, err)
		}
	}
	// The same choice, made by Compiler for a device of compute capability 9.0.
	for archs, want := range map[string]string{"50,80": "compute_80", "100,90,80": "sm_90", "100,120": ""} {
		f := newFake(t, 13000)
		withNVRTC(t, "ARCHS="+archs)
		c, err := f.device().Compiler()
		if want == "" {
			if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "[100 120]") {
				t.Errorf("%v", err)
			}
			continue
		}
		ok(t, err)
		code, err := c.Compile(&driver.Source{Name: "k.cu"})
		if c.Info().Target != want || err != nil || strings.HasPrefix(string(code.Image), ".version") != strings.HasPrefix(want, "compute") {
			t.Errorf("%s: %+v, %q, %v", archs, c.Info(), code.Image, err)
		}
	}
}

// TestHeaders compiles a source with headers of the toolkit. The headers are found in the folders
// of a toolkit, of Conda and of Python wheels. The headers that belong to the compiler's own
// installation have precedence. If a header is missing, the error lists the folders searched.
func TestHeaders(t *testing.T) {
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "VIRTUAL_ENV", "GUIX_ENVIRONMENT", "PUREGPU_LIBRARY_PATH"} {
		t.Setenv(v, "")
	}
	root := t.TempDir()
	put := func(path string) string {
		path = filepath.Join(root, path)
		ok(t, os.MkdirAll(filepath.Dir(path), 0o777))
		ok(t, os.WriteFile(path, nil, 0o666))
		return filepath.Dir(path)
	}
	fake, err := os.ReadFile(withNVRTC(t))
	ok(t, err)
	source := &driver.Source{Name: "k.cu", Text: "#include <cuda_fp16.h>\n#include <nv/target>\n", Options: []string{"-I/nowhere"}}
	for _, c := range []struct{ name, library, include, variable, value string }{
		{"toolkit", "cuda-12.4/lib64/libnvrtc.so.12", "cuda-12.4/include", "", ""},
		{"toolkit named by CUDA_HOME", "elsewhere/libnvrtc.so.12", "home/include", "CUDA_HOME", "home"},
		{"Conda", "conda/lib/libnvrtc.so.12", "conda/targets/x86_64-linux/include", "", ""},
		{"environment of Conda", "elsewhere/libnvrtc.so.12", "conda2/targets/x86_64-linux/include", "CONDA_PREFIX", "conda2"},
		{"wheels", "site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "site-packages/nvidia/cuda_runtime/include", "", ""},
		{"a wheel of 13", "site/nvidia/cu13/lib/libnvrtc.so.13", "site/nvidia/cu13/include", "", ""},
		{"virtual environment", "elsewhere/libnvrtc.so.12", "venv/lib/python3.12/site-packages/nvidia/cuda_runtime/include", "VIRTUAL_ENV", "venv"},
		{"named folder", "elsewhere/libnvrtc.so.12", "wheels/nvidia/cuda_runtime/include", "PUREGPU_LIBRARY_PATH", "wheels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			const toolkit = "/usr/local/cuda/include/cuda_fp16.h"
			if _, err := os.Stat(toolkit); err == nil && (c.variable == "CONDA_PREFIX" || c.variable == "VIRTUAL_ENV") {
				t.Skip("this machine has " + toolkit + ", which comes before environments")
			}
			library := filepath.Join(root, c.library)
			if _, err := os.Stat(library); err != nil { // do not overwrite a library that is loaded
				put(c.library)
				ok(t, os.WriteFile(library, fake, 0o777))
			}
			include, cccl := put(c.include+"/cuda_fp16.h"), filepath.Dir(put(c.include+"/cccl/nv/target"))
			if c.variable != "" {
				t.Setenv(c.variable, filepath.Join(root, c.value))
			}
			t.Setenv("PUREGPU_NVRTC_LIBRARY", library)
			compiler, err := newFake(t, 13000).device().Compiler()
			ok(t, err)
			code, err := compiler.Compile(source)
			ok(t, err)
			if got, want := string(code.Image), "option -I/nowhere\noption -I"+include+"\noption -I"+cccl+"\n"; !strings.Contains(got, want) {
				t.Errorf("compiled with\n%s\nwant\n%s", got, want)
			}
		})
	}
	t.Setenv("PUREGPU_NVRTC_LIBRARY", filepath.Join(root, "elsewhere/libnvrtc.so.12"))
	t.Setenv("CUDA_HOME", "/nowhere/cuda")
	compiler, err := newFake(t, 13000).device().Compiler()
	ok(t, err)
	_, err = compiler.Compile(&driver.Source{Name: "k.cu", Text: "#include <no/such.h>"})
	if e, is := errors.AsType[*driver.CompileError](err); !is || !errors.Is(err, nvrtc.ErrorCompilation) {
		t.Fatalf("%v", err)
	} else if !strings.Contains(e.Error(), "note: no/such.h is in none of /nowhere/cuda/include, /usr/local/cuda/include, ") ||
		!strings.HasSuffix(e.Error(), ", /usr/include: name its folder by the option -I, or put its text into Headers") {
		t.Errorf("%v", e)
	}
}

// TestSharedHeaders compiles with CUDA's headers in a folder that also has the C library's headers,
// as on Debian. The compiler finds CUDA's headers there and does not find stdio.h, whichever header
// the source includes first.
func TestSharedHeaders(t *testing.T) {
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "VIRTUAL_ENV", "GUIX_ENVIRONMENT", "PUREGPU_LIBRARY_PATH"} {
		t.Setenv(v, "")
	}
	root := t.TempDir()
	library, include := filepath.Join(root, "usr/lib/x86_64-linux-gnu/libnvrtc.so.12"), filepath.Join(root, "usr/include")
	fake, err := os.ReadFile(withNVRTC(t))
	ok(t, err)
	for path, text := range map[string][]byte{library: fake, include + "/stdio.h": nil, include + "/cuda_fp16.h": nil, include + "/nv/target": nil} {
		ok(t, os.MkdirAll(filepath.Dir(path), 0o777))
		ok(t, os.WriteFile(path, text, 0o777))
	}
	t.Setenv("PUREGPU_NVRTC_LIBRARY", library)
	compiler, err := newFake(t, 13000).device().Compiler()
	ok(t, err)
	source := &driver.Source{Name: "k.cu", Text: "#include <cuda_fp16.h>\n#include <mine.h>\n#include <nv/target>\n", Headers: map[string]string{"mine.h": "text"}}
	code, err := compiler.Compile(source)
	ok(t, err)
	if got, want := string(code.Image), "header mine.h: text\noption --gpu-architecture=sm_90\noption -I"+include+"\n"; !strings.HasSuffix(got, want) || strings.Contains(got, "header cuda") {
		t.Errorf("compiled with\n%s\nwant\n%s", got, want)
	}
	if len(source.Headers) != 1 {
		t.Errorf("the caller's headers become %v", source.Headers)
	}
	for _, text := range []string{"#include <stdio.h>\n", "#include <stdio.h>\n#include <cuda_fp16.h>\n", "#include <cuda_fp16.h>\n#include <stdio.h>\n"} {
		_, err := compiler.Compile(&driver.Source{Name: "k.cu", Text: text})
		if !errors.Is(err, nvrtc.ErrorCompilation) || !strings.Contains(err.Error(), "note: stdio.h is in none of ") ||
			!strings.Contains(err.Error(), include+" (which is searched for CUDA's headers only)") {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err = compiler.Compile(&driver.Source{Name: "k.cu", Text: "#include <stdio.h>\n", Options: []string{"-I" + include}})
	if err != nil {
		t.Errorf("with the option: %v", err)
	}
	_, err = compiler.Compile(&driver.Source{Name: "k.cu", Text: "#include <cuda_fp16.h>\nwrong\n"})
	if !errors.Is(err, nvrtc.ErrorCompilation) || !strings.Contains(err.Error(), `identifier "wrong"`) {
		t.Errorf("an error after the header: %v", err)
	}
}

// TestLoadNewerPTX loads PTX that is newer than the driver supports.
func TestLoadNewerPTX(t *testing.T) {
	f := newFake(t, 12040)
	d := f.device()
	f.Set("cuLibraryLoadData", int(cuda.ErrorUnsupportedPTXVersion))
	_, err := d.Load([]byte(".version 8.7\n.target sm_90\n.address_size 64\n"))
	if !errors.Is(err, cuda.ErrorUnsupportedPTXVersion) || !strings.Contains(err.Error(), "PTX 8.7 needs a driver of release 570 (CUDA 12.8) or newer, and this one has CUDA 12.4: ") {
		t.Errorf("%v", err)
	}
}

// TestRealNVRTC compiles with the NVRTC of this machine, which needs no GPU, and loads the code
// into a fake driver.
func TestRealNVRTC(t *testing.T) {
	l, err := nvrtc.Open(nvrtc.Options{})
	if os.Getenv("PUREGPU_NVRTC_LIBRARY") == "" && errors.Is(err, dl.ErrNotFound) {
		t.Skipf("no NVRTC to compile with: %v", err)
	}
	ok(t, err)
	target := "sm_90"
	if l.Version() < 11080 { // older releases of NVRTC have no sm_90; the driver compiles the PTX that they make
		target = "compute_86"
	}
	suite.RealCompiler(t, drivertest.Real{
		Before: func() {
			t.Chdir(t.TempDir())
			// The header in the source has precedence over this file.
			ok(t, os.WriteFile("scale.h", []byte("#error of the folder"), 0o600))
		},
		Source: scaleSource, Target: target, Warnings: []string{"scale.cu(", "unused"},
		Names:   map[string]string{"saxpy": "saxpy", "scale<float>": "_Z5scaleIfEvPT_S0_i", "scale<double>": "_Z5scaleIdEvPT_S0_i"},
		Wrong:   map[string]string{"scale.h": "#define FACTOR nothing\n__device__ int f() { return none; }\n"},
		At:      []string{"scale.h:2", "scale.cu:6"},
		Failure: nvrtc.ErrorCompilation, BadOption: nvrtc.ErrorInvalidOption, OptionText: "x",
	})
}

// TestCompileProcesses compiles one source in 100 processes at once. The processes leave one cache
// entry, and the next compilation finds it.
func TestCompileProcesses(t *testing.T) {
	const child = "PUREGPU_TEST_COMPILE" // variable with the path of the driver's library and the cache folder
	once := func(path, dir string) compile.Info {
		drv, err := Open(cuda.Options{Path: path})
		ok(t, err)
		cache := compile.Cache{Dir: dir}
		dev, err := gpu.Open(drv, 0, gpu.Options{})
		ok(t, err)
		defer dev.Close()
		_, info, err := cache.Compile(dev, compile.Source{Name: "k.cu", Text: "x", Options: []string{"-arch=compute_80"}})
		ok(t, err)
		return info
	}
	if path, dir, is := strings.Cut(os.Getenv(child), "\n"); is {
		if got := once(path, dir); got.CacheErr != nil {
			t.Errorf("%+v", got)
		}
		return
	}
	program, err := os.Executable()
	ok(t, err)
	f, dir := newFake(t, 13000), filepath.Join(t.TempDir(), "cache")
	withNVRTC(t)
	t.Setenv(child, f.Path+"\n"+dir)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if out, err := exec.Command(program, "-test.run=^TestCompileProcesses$").CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	files, err := os.ReadDir(dir)
	ok(t, err)
	if len(files) != 1 {
		t.Errorf("the processes leave %v", files)
	}
	if got := once(f.Path, dir); !got.Cached || got.CacheErr != nil {
		t.Errorf("the next compilation: %+v", got)
	}
}
