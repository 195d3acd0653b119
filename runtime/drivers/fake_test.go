//go:build linux && (amd64 || arm64) && !nogpu

package drivers_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/symbols"
)

// fake builds a library that imitates CUDA 13.0 (name is "cuda") or HIP 6.4 ("hip") and has the
// given number of devices. It returns the library's path.
func fake(t *testing.T, name string, devices int) string {
	t.Helper()
	tab, err := symbols.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	version := map[string]int{"cuda": 13000, "hip": 60443484}[name]
	lib := testlib.Fake{
		File: "lib" + name + ".so", Source: "../../runtime/driver/" + name + "driver/testdata/driver.c",
		Defines: []string{fmt.Sprint("VERSION=", version), fmt.Sprint("DEVICES=", devices)},
	}
	for _, f := range tab.Funcs {
		if !strings.HasPrefix(f.Symbol, "cuGetProcAddress") {
			lib.Symbols = append(lib.Symbols, f.Symbol)
		}
	}
	return lib.Build(t)
}

// TestFakes runs tests that share fake libraries, because compiling the libraries takes most of the
// time.
func TestFakes(t *testing.T) {
	cudas := map[int]string{0: fake(t, "cuda", 0), 2: fake(t, "cuda", 2)}
	hips := map[int]string{0: fake(t, "hip", 0), 2: fake(t, "hip", 2)}
	t.Run("best", func(t *testing.T) { testBestOrder(t, cudas, hips) })
	t.Run("pools", func(t *testing.T) { testHIPPools(t, hips[2]) })
	t.Run("communicators", func(t *testing.T) { testCommunicators(t, cudas[2], hips[2]) })
}

// testBestOrder checks the order of Best: CUDA if it has a device, without opening HIP; else HIP if
// it has a device, without a warning; else the simulated GPU. The maps have the paths of fake
// libraries, by number of devices.
func testBestOrder(t *testing.T, cudas, hips map[int]string) {
	for _, test := range []struct {
		cuda, hip int // numbers of devices
		want      string
	}{{2, 2, "cuda"}, {2, 0, "cuda"}, {0, 2, "hip"}, {0, 0, "sim"}} {
		sim := nothing(t)
		var l, opened log
		l.level, opened.level = slog.LevelDebug, slog.LevelDebug
		cudaOpt, hipOpt := cuda.Options{Path: cudas[test.cuda]}, hip.Options{Path: hips[test.hip], Logger: slog.New(slog.NewTextHandler(&opened, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		d, err := drivers.Best(sim, l.option(), drivers.WithCUDA(cudaOpt), drivers.WithHIP(hipOpt))
		if err != nil {
			t.Fatal(err)
		}
		logged := l.take()
		if d.Name() != test.want || (opened.Len() > 0) != (test.cuda == 0) || strings.Contains(logged, "WARN") != (test.want == "sim") || (logged == "") != (test.want == "cuda") {
			t.Errorf("%d CUDA devices and %d of HIP: driver %s, want %s; HIP opened: %q; logged:\n%s", test.cuda, test.hip, d.Name(), test.want, &opened, logged)
		}
		d, err = drivers.Best(sim, l.option(), drivers.WithoutSim(), drivers.WithCUDA(cudaOpt), drivers.WithHIP(hipOpt))
		if test.want != "sim" {
			if err != nil || d.Name() != test.want {
				t.Errorf("%v, %v; want %s", d, err, test.want)
			}
		} else if d != nil || !errors.Is(err, drivers.ErrNoGPU) || !errors.Is(err, cuda.ErrorNoDevice) || !errors.Is(err, hip.ErrorNoDevice) {
			t.Errorf("without devices: %v, %v", d, err)
		}
		t.Setenv("PUREGPU_DRIVER", "cuda")
		d, err = drivers.Best(sim, drivers.WithCUDA(cudaOpt), drivers.WithHIP(hipOpt))
		if test.cuda > 0 && (err != nil || d.Name() != "cuda") || test.cuda == 0 && (d != nil || !errors.Is(err, cuda.ErrorNoDevice)) {
			t.Errorf("CUDA, asked for, with %d devices: %v, %v", test.cuda, d, err)
		}
		t.Setenv("PUREGPU_DRIVER", "hip")
		d, err = drivers.Best(sim, drivers.WithCUDA(cudaOpt), drivers.WithHIP(hipOpt))
		if test.hip > 0 && (err != nil || d.Name() != "hip") || test.hip == 0 && (d != nil || !errors.Is(err, hip.ErrorNoDevice)) {
			t.Errorf("HIP, asked for, with %d devices: %v, %v", test.hip, d, err)
		}
	}
}

// testCommunicators checks that the file names of NCCL, RCCL and the compilers reach the drivers.
func testCommunicators(t *testing.T, cudaFile, hipFile string) {
	dir := t.TempDir()
	opts := []drivers.Option{
		drivers.WithCUDA(cuda.Options{Path: cudaFile}), drivers.WithNCCL(nccl.Options{Path: filepath.Join(dir, "mynccl.so")}),
		drivers.WithHIP(hip.Options{Path: hipFile}), drivers.WithRCCL(nccl.Options{Path: filepath.Join(dir, "myrccl.so")}),
		drivers.WithNVRTC(nvrtc.Options{Path: filepath.Join(dir, "mynvrtc.so")}),
		drivers.WithNVJitLink(nvjitlink.Options{Path: filepath.Join(dir, "mynvjitlink.so")}),
		// A missing NVML causes no error.
		drivers.WithNVML(nvml.Options{Path: filepath.Join(dir, "mynvml.so")}),
		drivers.WithHIPRTC(hiprtc.Options{Path: filepath.Join(dir, "myhiprtc.so")}),
	}
	for name, files := range map[string][2]string{drivers.CUDA: {"mynccl.so", "mynvrtc.so"}, drivers.HIP: {"myrccl.so", "myhiprtc.so"}} {
		d, err := drivers.Open(name, opts...)
		if err != nil {
			t.Fatal(err)
		}
		dev, err := d.Open(0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = dev.(driver.Comms).NewUniqueID()
		if !errors.Is(err, dl.ErrNotFound) || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), filepath.Join(dir, files[0])+" (Options.Path): no such file") {
			t.Errorf("%s: %v", name, err)
		}
		_, err = dev.(driver.Compilers).Compiler()
		if !errors.Is(err, dl.ErrNotFound) || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), filepath.Join(dir, files[1])+" (Options.Path): no such file") {
			t.Errorf("%s: a compiler: %v", name, err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
	d, err := drivers.Open(drivers.CUDA, append(opts, drivers.WithNVRTC(nvrtc.Options{Path: testlib.Fake{File: "libnvrtc.so.12", Source: "nvrtc.c"}.Build(t)}))...)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := d.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	c, err := dev.(driver.Compilers).Compiler()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.(driver.Linkers).Linker(); !errors.Is(err, dl.ErrNotFound) || !strings.Contains(err.Error(), filepath.Join(dir, "mynvjitlink.so")+" (Options.Path): no such file") {
		t.Errorf("a linker: %v", err)
	}
}

// testHIPPools opens HIP with and without its own pools.
func testHIPPools(t *testing.T, file string) {
	for want, opts := range map[bool][]drivers.Option{false: nil, true: {drivers.WithHIPPools()}} {
		d, err := drivers.Open(drivers.HIP, append(opts, drivers.WithHIP(hip.Options{Path: file}))...)
		if err != nil {
			t.Fatal(err)
		}
		dev, err := d.Open(0)
		if err != nil {
			t.Fatal(err)
		}
		if got := dev.Caps().Pools; got != want {
			t.Errorf("pools %t, want %t", got, want)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}
