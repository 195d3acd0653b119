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

// withNVRTC has devices find testdata/fakes/nvrtc.c, and returns its file.
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
	// Through a library: the device is of compute capability 9.0.
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

// TestRealNVRTC compiles with the NVRTC of this machine, which needs no GPU, and loads the code into a driver that is none.
func TestRealNVRTC(t *testing.T) {
	l, err := nvrtc.Open(nvrtc.Options{})
	if os.Getenv("PUREGPU_NVRTC_LIBRARY") == "" && errors.Is(err, dl.ErrNotFound) {
		t.Skipf("no NVRTC to compile with: %v", err)
	}
	ok(t, err)
	target := "sm_90"
	if l.Version() < 11080 { // which brought that; the newest of the release's is then translated by the driver
		target = "compute_86"
	}
	suite.RealCompiler(t, drivertest.Real{
		Before: func() {
			t.Chdir(t.TempDir())
			ok(t, os.WriteFile("scale.h", []byte("#error of the folder"), 0o600)) // that by name comes first
		},
		Source: scaleSource, Target: target, Warnings: []string{"scale.cu(", "unused"},
		Names:   map[string]string{"saxpy": "saxpy", "scale<float>": "_Z5scaleIfEvPT_S0_i", "scale<double>": "_Z5scaleIdEvPT_S0_i"},
		Wrong:   map[string]string{"scale.h": "#define FACTOR nothing\n__device__ int f() { return none; }\n"},
		At:      []string{"scale.h:2", "scale.cu:6"},
		Failure: nvrtc.ErrorCompilation, BadOption: nvrtc.ErrorInvalidOption, OptionText: "x",
	})
}

// TestCompileProcesses has 100 processes compile one source at once. They leave one entry, which the next finds.
func TestCompileProcesses(t *testing.T) {
	const child = "PUREGPU_TEST_COMPILE" // has the driver's file and the folder of the cache
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
		t.Errorf("they leave %v", files)
	}
	if got := once(f.Path, dir); !got.Cached || got.CacheErr != nil {
		t.Errorf("after them: %+v", got)
	}
}
