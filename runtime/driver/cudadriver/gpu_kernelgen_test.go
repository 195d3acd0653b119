package cudadriver

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/kernelobject"
	"github.com/puregpu/puregpu/internal/testkernels"
	"github.com/puregpu/puregpu/internal/testkernels/triton"
	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// Sizes of the test data. They are multiples of 16, for which the Triton kernels were compiled, but
// not of the block size.
const (
	genRows, genColumns = 1008, 2000
	genM, genN, genK    = 208, 336, 144
)

// TestGPUGenerated launches CUDA C++ kernels through generated functions, and Triton kernels
// through their metadata. It compares the results with PyTorch's, or with the host's if there is no
// PyTorch.
func TestGPUGenerated(t *testing.T) {
	openGPU(t)
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	t.Cleanup(func() { ok(t, dev.Close()) })
	dir, torch := torchResults(t)
	g := &generated{t: t, dev: dev, s: dev.Queue(0).NewStream(), dir: dir, torch: torch}
	t.Run("CUDA", func(t *testing.T) {
		code, err := testkernels.LoadKernels(dev)
		ok(t, err)
		g.cuda(t, code)
	})
	t.Run("CUDA, compiled at run time", func(t *testing.T) {
		code, info, err := testkernels.CompileKernels(dev, compile.Options{Cache: compile.Cache{Size: -1}})
		if errors.Is(err, gpu.ErrUnsupported) {
			t.Skip(err)
		}
		ok(t, err)
		t.Logf("%s for %s", info.Compiler, info.Target)
		g.cuda(t, code)
	})
	t.Run("Triton", g.triton)
	t.Run("Triton, as Go functions", g.tritonFunctions)
}

// torchResults runs Python to write inputs, results and Triton kernels into a folder. It reports
// whether PyTorch is available.
func torchResults(t *testing.T) (dir string, torch bool) {
	dir = t.TempDir()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Logf("compared with the host alone: %v", err)
		return dir, false
	}
	args := []string{"testdata/kernels.py", dir}
	for _, n := range []int{genRows, genColumns, genM, genN, genK} {
		args = append(args, fmt.Sprint(n))
	}
	out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == missing:
		t.Logf("compared with the host alone: %s has no PyTorch with a GPU", python)
		return dir, false
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return dir, true
}

type generated struct {
	t     *testing.T
	dev   *gpu.Device
	s     *gpu.Stream
	dir   string
	torch bool
}

// input returns an array that PyTorch wrote, or makes one.
func (g *generated) input(t *testing.T, name string, n int) []float32 {
	t.Helper()
	if !g.torch {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32((i+len(name))*7919%2003)/1000 - 1
		}
		return out
	}
	return fromFile[float32](t, filepath.Join(g.dir, name), n)
}

func fromFile[T any](t *testing.T, name string, n int) []T {
	t.Helper()
	b, err := os.ReadFile(name)
	ok(t, err)
	out := make([]T, n)
	if copy(gpu.BytesOf(out), b) != len(b) || len(b) != len(gpu.BytesOf(out)) {
		t.Fatalf("%s has %d bytes, want %d elements", name, len(b), n)
	}
	return out
}

func upload[T any](t *testing.T, g *generated, values []T) gpu.Slice[T] {
	t.Helper()
	x, err := gpu.AllocSlice[T](g.dev, gpu.DeviceMem, len(values))
	ok(t, err)
	t.Cleanup(func() { ok(t, x.Close()) })
	g.s.Do(x.UploadCopy(values))
	return x
}

// compare waits for a kernel and compares its output with PyTorch's or the host's, within a
// fraction of the largest value.
func (g *generated) compare(t *testing.T, out gpu.Slice[float32], name string, host func(i int) float64, share float64) {
	t.Helper()
	got := make([]float32, out.Len())
	g.s.Do(out.Download(got))
	ok(t, g.s.Wait(t.Context()))
	want := func(i int) float64 { return host(i) }
	by := "the host"
	if g.torch {
		by = "PyTorch"
		w := fromFile[float32](t, filepath.Join(g.dir, name), len(got))
		want = func(i int) float64 { return float64(w[i]) }
	}
	largest, worst, at := 0., 0., 0
	step := 1
	if !g.torch {
		step = 97 // a sample, because the host is slow
	}
	for i := 0; i < len(got); i += step {
		w := want(i)
		largest = max(largest, math.Abs(w))
		if e := math.Abs(float64(got[i]) - w); !(e <= worst) {
			worst, at = e, i
		}
	}
	t.Logf("%s: the largest error against %s is %.2e, and the largest number %.2e", name, by, worst, largest)
	if !(worst <= share*largest) {
		t.Errorf("%s: element %d is %v, and by %s %v", name, at, got[at], by, want(at))
	}
}

func (g *generated) cuda(t *testing.T, code *testkernels.KernelsCode) {
	defer code.Close()
	x, y := g.input(t, "x.f32", genRows*genColumns), g.input(t, "y.f32", genRows*genColumns)
	xs, ys := upload(t, g, x), upload(t, g, y)
	out := upload(t, g, make([]float32, len(x)))

	ok(t, g.s.Do(code.VectorAdd.Launch(gpu.GridFor(len(x), 256), uint32(len(x)), xs, ys, out)))
	g.compare(t, out, "add.f32", func(i int) float64 { return float64(x[i] + y[i]) }, 0)

	grid := gpu.Grid{Blocks: [3]uint32{genRows, 1, 1}, Threads: [3]uint32{256, 1, 1}, SharedMem: 256 * 4}
	ok(t, g.s.Do(code.Softmax.Launch(grid, genColumns, 2, xs, out)))
	g.compare(t, out, "softmax.f32", softmaxOf(x), 1e-5)

	factor, err := code.Factor()
	ok(t, err)
	defer factor.Close()
	g.s.Do(factor.UploadCopy([]float32{0.5}))
	a, b := g.input(t, "a.f32", genM*genK), g.input(t, "b.f32", genK*genN)
	c := upload(t, g, make([]float32, genM*genN))
	grid = gpu.Grid{Blocks: [3]uint32{(genN + 15) / 16, (genM + 15) / 16, 1}, Threads: [3]uint32{16, 16, 1}}
	ok(t, g.s.Do(code.Matmul.Launch(grid, genM, genN, genK, upload(t, g, a), upload(t, g, b), c)))
	g.compare(t, c, "matmul.f32", func(i int) float64 {
		sum := 0.
		for j := range genK {
			sum += float64(a[i/genN*genK+j]) * float64(b[j*genN+i%genN])
		}
		return sum / 2
	}, 1e-5)
}

// softmaxOf returns a function that computes element i of the softmax of the rows of 2 * x, on the
// host. 2 is the scale that the kernels get.
func softmaxOf(x []float32) func(i int) float64 {
	return func(i int) float64 {
		most, sum := math.Inf(-1), 0.
		row := x[i/genColumns*genColumns:][:genColumns]
		for _, v := range row {
			most = max(most, 2*float64(v))
		}
		for _, v := range row {
			sum += math.Exp(2*float64(v) - most)
		}
		return math.Exp(2*float64(x[i])-most) / sum
	}
}

// triton launches kernels that Triton has compiled. If the variable OUT names a folder, Triton's
// files are copied to its subfolder triton.
func (g *generated) triton(t *testing.T) {
	found := map[string]string{} // paths without .json
	filepath.WalkDir(filepath.Join(g.dir, "cache"), func(name string, _ fs.DirEntry, err error) error {
		if base, ok := strings.CutSuffix(name, ".json"); ok && err == nil {
			if text, err := os.ReadFile(name); err == nil {
				if m, err := kernelobject.ReadTriton(text); err == nil {
					found[m.Name] = base
				}
			}
		}
		return nil
	})
	if len(found) == 0 {
		t.Skip("there is no Triton")
	}
	if out := os.Getenv("OUT"); out != "" {
		for name, base := range found {
			for _, ext := range []string{".json", ".ptx", ".cubin", ".ttir", ".source"} {
				if b, err := os.ReadFile(base + ext); err == nil {
					ok(t, os.MkdirAll(filepath.Join(out, "triton"), 0o777))
					ok(t, os.WriteFile(filepath.Join(out, "triton", name+ext), b, 0o666))
				}
			}
		}
	}
	x, y := g.input(t, "x.f32", genRows*genColumns), g.input(t, "y.f32", genRows*genColumns)
	xs, ys := upload(t, g, x).Range(), upload(t, g, y).Range()
	for _, ext := range []string{".ptx", ".cubin"} {
		out := upload(t, g, make([]float32, len(x)))
		n, columns, scale := int32(len(x)), int32(genColumns), float32(2)
		g.launch(t, found, "triton_add", ext, [3]uint32{uint32(len(x)+1023) / 1024, 1, 1}, xs, ys, out.Range(), n)
		g.compare(t, out, "add.f32", nil, 0)
		g.launch(t, found, "triton_softmax", ext, [3]uint32{genRows, 1, 1}, xs, out.Range(), columns, scale)
		g.compare(t, out, "softmax.f32", nil, 1e-5)
		a := upload(t, g, fromFile[uint16](t, filepath.Join(g.dir, "a.f16"), genM*genK)).Range()
		b := upload(t, g, fromFile[uint16](t, filepath.Join(g.dir, "b.f16"), genK*genN)).Range()
		c := upload(t, g, make([]float32, genM*genN))
		m, n, k := int32(genM), int32(genN), int32(genK)
		g.launch(t, found, "triton_matmul", ext, [3]uint32{(genN + 63) / 64, (genM + 63) / 64, 1}, a, b, c.Range(), m, n, k)
		g.compare(t, c, "matmul16.f32", nil, 1e-4)
	}
}

// tritonFunctions launches Triton kernels compiled elsewhere, through the functions that
// tools/kernelgen generated.
func (g *generated) tritonFunctions(t *testing.T) {
	if !g.torch {
		t.Skip("there is no PyTorch to compare with")
	}
	if arch := g.dev.Info().Arch; arch != "sm_90" {
		t.Skipf("they are compiled for sm_90a, and this is %s", arch)
	}
	code, err := triton.LoadTriton(g.dev)
	ok(t, err)
	defer code.Close()
	x, y := g.input(t, "x.f32", genRows*genColumns), g.input(t, "y.f32", genRows*genColumns)
	xs, ys, out := upload(t, g, x), upload(t, g, y), upload(t, g, make([]float32, len(x)))

	ok(t, g.s.Do(code.TritonAdd.Launch([3]uint32{uint32(len(x)+1023) / 1024, 1, 1}, xs, ys, out, int32(len(x)))))
	g.compare(t, out, "add.f32", nil, 0)
	ok(t, g.s.Do(code.TritonSoftmax.Launch([3]uint32{genRows, 1, 1}, xs, out, genColumns, 2)))
	g.compare(t, out, "softmax.f32", nil, 1e-5)
	a := upload(t, g, fromFile[smallfloat.Float16](t, filepath.Join(g.dir, "a.f16"), genM*genK))
	b := upload(t, g, fromFile[smallfloat.Float16](t, filepath.Join(g.dir, "b.f16"), genK*genN))
	c := upload(t, g, make([]float32, genM*genN))
	ok(t, g.s.Do(code.TritonMatmul.Launch([3]uint32{(genN + 63) / 64, (genM + 63) / 64, 1}, a, b, c, genM, genN, genK)))
	g.compare(t, c, "matmul16.f32", nil, 1e-4)
}

// launch launches a Triton kernel as the functions of tools/kernelgen do.
func (g *generated) launch(t *testing.T, found map[string]string, name, ext string, blocks [3]uint32, args ...any) {
	t.Helper()
	base, is := found[name]
	if !is {
		t.Fatalf("Triton has no kernel %s, but %v", name, found)
	}
	text, err := os.ReadFile(base + ".json")
	ok(t, err)
	m, err := kernelobject.ReadTriton(text)
	ok(t, err)
	image, err := os.ReadFile(base + ext)
	ok(t, err)
	codes, err := kernelobject.Read(image)
	ok(t, err)
	if len(codes) != 1 || codes[0].Kernel(name) == nil {
		t.Fatalf("%s%s: %+v", base, ext, codes)
	}
	params := codes[0].Kernel(name)
	signature := m.Signature
	for _, ext := range []string{".source", ".ttir"} {
		if ir, err := os.ReadFile(base + ext); err == nil && signature == nil {
			signature, err = kernelobject.TritonIR(ir, name)
			ok(t, err)
		}
	}
	extra := len(params.Params) - len(args)
	t.Logf("%s%s: %+v; for %s, parameters of %v bytes, and in the signature %+v", name, ext, *m, codes[0].Arch, params.Sizes(), signature)
	if len(signature) != len(args) || extra < 0 || extra > 2 || m.GlobalScratch > 0 || m.Cluster != [3]int{1, 1, 1} {
		t.Fatalf("%d arguments", len(args))
	}
	exe, err := g.dev.Load(image)
	ok(t, err)
	defer exe.Close()
	k, err := exe.Kernel(name)
	ok(t, err)
	if told := k.Info().Params; told != nil && fmt.Sprint(told) != fmt.Sprint(params.Sizes()) {
		t.Errorf("%s%s: the driver tells parameters of %v bytes", name, ext, told)
	}
	for range extra {
		args = append(args, driver.Ptr(0)) // scratch memory that Triton adds and this kernel does not need
	}
	grid := gpu.Grid{Blocks: blocks, Threads: [3]uint32{uint32(m.Threads)}, SharedMem: uint32(m.Shared)}
	ok(t, g.s.Do(gpu.Launch(k, grid, args...)))
	ok(t, g.s.Wait(t.Context()))
}
