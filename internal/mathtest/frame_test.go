//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/cmplx"
	"os"
	"path/filepath"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// openBoth returns the GPU and a simulated one.
func openBoth(t *testing.T) (real, simulated *gpu.Device) {
	t.Helper()
	real = openGPU(t)
	simulated, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, simulated.Close()) })
	return real, simulated
}

// contents returns the contents of device memory.
func contents[T any](t *testing.T, dev *gpu.Device, s gpu.Slice[T]) []T {
	t.Helper()
	return download(t, dev.Queue(0).NewStream(), s)
}

// do executes operations in a stream and waits for them.
func do(t *testing.T, dev *gpu.Device, ops ...gpu.Op) {
	t.Helper()
	st := dev.Queue(0).NewStream()
	must(t, st.Do(ops...))
	must(t, st.Wait(minute(t)))
}

// inGraph records operations in sequence as a graph, and executes it twice.
func inGraph(t *testing.T, dev *gpu.Device, ops ...gpu.Op) {
	t.Helper()
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
	must(t, err)
	for _, op := range ops {
		_, err = c.Add(op)
		must(t, err)
		_, err = c.Add(gpu.Barrier())
		must(t, err)
	}
	must(t, c.End())
	do(t, dev, gpu.Execute(c), gpu.Execute(c))
	must(t, c.Close())
}

// magnitude returns the distance from zero of a number of any type.
func magnitude[T float32 | float64 | complex64 | complex128](v T) float64 {
	switch v := any(v).(type) {
	case float32:
		return math.Abs(float64(v))
	case float64:
		return math.Abs(v)
	case complex64:
		return cmplx.Abs(complex128(v))
	case complex128:
		return cmplx.Abs(v)
	}
	return math.NaN()
}

// near checks that got differs from want by at most eps times the largest magnitude in the slice
// want.
func near[T float32 | float64 | complex64 | complex128](t *testing.T, what string, got, want []T, eps float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	most := 0.0
	for _, w := range want {
		most = max(most, magnitude(w))
	}
	for i, w := range want {
		if !(magnitude(got[i]-w) <= eps*most) {
			t.Errorf("%s: number %d of %d is %v, want %v; the largest is %v", what, i, len(got), got[i], w, most)
			return
		}
	}
}

// An array is an input or a result in a case of a recorder.
type array struct {
	Name  string `json:"name"`
	Type  string `json:"type"` // name of the element type in Go and in NumPy
	Shape []int  `json:"shape"`
	File  string `json:"file"`
	data  []byte
}

// arrayOf returns an array with the numbers of data, in row-major order. T is one of Go's own types
// of numbers, and its name is the same in NumPy.
func arrayOf[T any](name string, data []T, shape ...int) array {
	var zero T
	return array{Name: name, Type: fmt.Sprintf("%T", zero), Shape: shape, data: gpu.BytesOf(data)}
}

// A recorder writes cases for testdata/compare.py: a line of JSON for each, and raw little-endian
// files. The nil recorder writes nothing.
type recorder struct {
	t       *testing.T
	dir     string
	library string
	lines   *os.File
	files   int
}

// record returns the recorder for the cases of a library, or nil if PUREGPU_MATH_OUT is not set.
func record(t *testing.T, library string) *recorder {
	t.Helper()
	dir := os.Getenv("PUREGPU_MATH_OUT")
	if dir == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(dir, library+".jsonl"))
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return &recorder{t: t, dir: dir, library: library, lines: f}
}

// add writes a case. name and params tell testdata/compare.py what to compute from the arrays.
func (r *recorder) add(name string, params map[string]any, arrays ...array) {
	if r == nil {
		return
	}
	r.t.Helper()
	for i := range arrays {
		r.files++
		arrays[i].File = fmt.Sprintf("%s-%d.bin", r.library, r.files)
		must(r.t, os.WriteFile(filepath.Join(r.dir, arrays[i].File), arrays[i].data, 0o666))
	}
	line, err := json.Marshal(map[string]any{"library": r.library, "name": name, "params": params, "arrays": arrays})
	must(r.t, err)
	_, err = fmt.Fprintf(r.lines, "%s\n", line)
	must(r.t, err)
}
