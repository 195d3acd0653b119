package cudadriver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// scaleSource has an extern "C" kernel and a template, and includes a header from Headers.
var scaleSource = compile.Source{
	Name:    "scale.cu",
	Headers: map[string]string{"scale.h": "#pragma once\n#define FACTOR 3\n__device__ inline float axpy(float a, float x, float y) { return a * x + y; }\n"},
	Options: []string{"--std=c++14"},
	Names:   []string{"scale<float>", "scale<double>", "&table"},
	Text: `#include "scale.h"
__constant__ float table[4] = {1, 2, 3, 4};

template <typename T> __global__ void scale(T *x, T add, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, unused = FACTOR;
	if (i < n)
		x[i] = x[i] * (T)FACTOR + add + (T)table[i % 4];
}

extern "C" __global__ void saxpy(unsigned long long n, float a, const float *x, float *y)
{
	unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] = axpy(a, x[i], y[i]);
}
`,
}

// TestGPUCompile compiles the kernels of scaleSource: an extern "C" kernel and two instances of a
// template. It launches them from a fresh compilation, from the disk cache, and from PTX if the
// driver can load the PTX.
func TestGPUCompile(t *testing.T) {
	drv, err := New(openGPU(t).lib)
	ok(t, err)
	cache := compile.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	ptx := scaleSource
	ptx.Options = append([]string{"-arch=compute_80"}, ptx.Options...)
	for _, c := range []struct {
		name   string
		src    compile.Source
		cached bool
	}{{"compiled", scaleSource, false}, {"from the disk", scaleSource, true}, {"PTX", ptx, false}, {"PTX from the disk", ptx, true}} {
		start := time.Now()
		x, info, err := cache.Compile(dev, c.src)
		took := time.Since(start)
		switch {
		case err == nil:
		case errors.Is(err, driver.ErrUnsupported) && os.Getenv("PUREGPU_NVRTC_LIBRARY") == "":
			t.Skip(err)
		case strings.HasPrefix(c.name, "PTX"):
			t.Logf("%s: %v", c.name, err) // NVRTC is newer than the driver, which cannot load NVRTC's PTX
			continue
		default:
			t.Fatal(err)
		}
		t.Logf("%s: %v, %s for %s", c.name, took, info.Compiler, info.Target)
		if info.Cached != c.cached || info.CacheErr != nil {
			t.Errorf("%s: %+v", c.name, info)
		}
		launchScales(t, dev, x)
		ok(t, x.Close())
	}
	_, _, err = cache.Compile(dev, compile.Source{Name: "wrong.cu", Text: "extern \"C\" __global__ void f(int *x)\n{\n\t*x = nothing;\n}\n"})
	e, is := errors.AsType[*driver.CompileError](err)
	if !is || len(e.Messages) == 0 || e.Messages[0].File != "wrong.cu" || e.Messages[0].Line != 3 {
		t.Errorf("%v", err)
	}
}

// launchScales launches the kernels of scaleSource and checks their output.
func launchScales(t *testing.T, dev *gpu.Device, x *gpu.Module) {
	t.Helper()
	const n = 1000
	s := dev.Queue(0).NewStream()
	table, err := x.Global("&table")
	ok(t, err)
	defer table.Close()
	factors := make([]float32, 4)
	s.Download(gpu.BytesOf(factors), table.All())
	launchScale[float32](t, dev, s, x, "scale<float>", n)
	launchScale[float64](t, dev, s, x, "scale<double>", n)
	k, err := x.Kernel("saxpy")
	ok(t, err)
	type args struct {
		N    uint64
		A    float32
		X, Y gpu.Slice[float32]
	}
	saxpy, err := gpu.Typed[args](k)
	ok(t, err)
	in, out := make([]float32, n), make([]float32, n)
	for i := range in {
		in[i], out[i] = float32(i), 1
	}
	a, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, n)
	ok(t, err)
	b, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, n)
	ok(t, err)
	s.Do(a.Upload(in))
	s.Do(b.UploadCopy(out))
	s.Do(saxpy.Launch(gpu.GridFor(n, 256), args{n, 2, a, b}))
	s.Do(b.Download(out))
	ok(t, s.Wait(context.Background()))
	for i, v := range out {
		if want := 2*float32(i) + 1; v != want {
			t.Fatalf("saxpy: element %d is %v, want %v", i, v, want)
		}
	}
	if want := [4]float32{1, 2, 3, 4}; [4]float32(factors) != want {
		t.Errorf("the table is %v, want %v", factors, want)
	}
}

func launchScale[T float32 | float64](t *testing.T, dev *gpu.Device, s *gpu.Stream, x *gpu.Module, name string, n int) {
	t.Helper()
	k, err := x.Kernel(name)
	ok(t, err)
	type args struct {
		X   gpu.Slice[T]
		Add T
		N   int32
	}
	scale, err := gpu.Typed[args](k)
	ok(t, err)
	data := make([]T, n)
	for i := range data {
		data[i] = T(i)
	}
	buf, err := gpu.AllocSlice[T](dev, gpu.DeviceMem, n)
	ok(t, err)
	s.Do(buf.UploadCopy(data))
	s.Do(scale.Launch(gpu.GridFor(n, 128), args{buf, 10, int32(n)}))
	s.Do(buf.Download(data))
	ok(t, s.Wait(context.Background()))
	for i, v := range data {
		if want := T(3*i+10) + T(i%4+1); v != want {
			t.Fatalf("%s: element %d is %v, want %v", name, i, v, want)
		}
	}
}

// linkSource has kernels that call a function of another source.
var linkSource = compile.Source{
	Name:  "scale.cu",
	Names: []string{"scale<float>"},
	Text: `extern __device__ float factor(int i);

template <typename T> __global__ void scale(T *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		x[i] *= factor(i);
}

extern "C" __global__ void plain(float *x) { x[threadIdx.x] += factor(1); }
`,
	Link: []compile.Source{{Name: "factor.cu", Text: "__device__ float factor(int i) { return 2.0f * i + 1; }\n"}},
}

// TestGPUCompileLTO launches a kernel that calls a function of another source: freshly linked, from
// the disk cache, and from PTX if the driver can load the PTX.
func TestGPUCompileLTO(t *testing.T) {
	drv, err := New(openGPU(t).lib)
	ok(t, err)
	cache := compile.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	ptx := linkSource
	ptx.Options = []string{"-arch=compute_80"}
	for _, c := range []struct {
		name   string
		src    compile.Source
		cached bool
	}{{"linked", linkSource, false}, {"from the disk", linkSource, true}, {"PTX", ptx, false}} {
		start := time.Now()
		x, info, err := cache.Compile(dev, c.src)
		took := time.Since(start)
		switch {
		case err == nil:
		case errors.Is(err, driver.ErrUnsupported) && (os.Getenv("PUREGPU_NVRTC_LIBRARY") == "" || os.Getenv("PUREGPU_NVJITLINK_LIBRARY") == ""):
			t.Skip(err)
		case c.name == "PTX":
			t.Logf("%s: %v", c.name, err) // NVRTC is newer than the driver, which cannot load NVRTC's PTX
			continue
		default:
			t.Fatal(err)
		}
		t.Logf("%s: %v, %s for %s", c.name, took, info.Compiler, info.Target)
		if info.Cached != c.cached || info.CacheErr != nil {
			t.Errorf("%s: %+v", c.name, info)
		}
		launchLinked(t, dev, x)
		ok(t, x.Close())
	}
}

// launchLinked launches scale<float> of linkSource and checks its output.
func launchLinked(t *testing.T, dev *gpu.Device, x *gpu.Module) {
	t.Helper()
	const n = 1000
	k, err := x.Kernel("scale<float>")
	ok(t, err)
	type args struct {
		X gpu.Slice[float32]
		N int32
	}
	scale, err := gpu.Typed[args](k)
	ok(t, err)
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i)
	}
	buf, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, n)
	ok(t, err)
	s := dev.Queue(0).NewStream()
	s.Do(buf.UploadCopy(data))
	s.Do(scale.Launch(gpu.GridFor(n, 128), args{buf, n}))
	s.Do(buf.Download(data))
	ok(t, s.Wait(context.Background()))
	for i, v := range data {
		if want := float32(i) * float32(2*i+1); v != want {
			t.Fatalf("element %d is %v, want %v", i, v, want)
		}
	}
}
