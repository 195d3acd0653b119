package solver_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"testing"

	"github.com/puregpu/puregpu/cusolver"
	"github.com/puregpu/puregpu/internal/mathtest"
	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/solver"
)

func open(t testing.TB, caps driver.Caps) (*gpu.Device, *solver.Library) {
	t.Helper()
	d := simdriver.New(simdriver.Config{Caps: &caps})
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lib, err := solver.Open(dev, solver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(lib.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
		if leaks := d.Leaks(); len(leaks) > 0 {
			t.Errorf("leaks: %v", leaks)
		}
	})
	return dev, lib
}

// TestSolver factorizes, solves and computes eigenvalues on the simulated GPU.
func TestSolver(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	mathtest.Solver(t, dev, lib)
}

// TestSolverRecorded solves in recordings, with and without a graph.
func TestSolverRecorded(t *testing.T) {
	for _, caps := range []driver.Caps{simdriver.CUDACaps(), simdriver.HIPCaps()} {
		dev, lib := open(t, caps)
		mathtest.SolverRecorded(t, dev, lib)
	}
}

// TestBindings checks that an execution fails if a binding begins between two elements.
func TestBindings(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	data, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 4)
	info, err2 := gpu.AllocSlice[int32](dev, gpu.DeviceMem, 1)
	rec, err3 := dev.NewCommandBuffer(gpu.CommandOptions{})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	to, err := gpu.BindingSlice[float32](rec, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rec.Add(solver.Cholesky(lib, blas.Matrix[float32]{Data: to, Rows: 1, Cols: 1}, info))
	if err := errors.Join(err, rec.End()); err != nil {
		t.Fatal(err)
	}
	for offset, want := range map[uint64]error{4: nil, 6: gpu.ErrArgument} {
		st := dev.Queue(0).NewStream()
		err := errors.Join(st.Do(gpu.Execute(rec, data.Range().Buffer.Range(offset, 4))), st.Wait(context.Background()))
		if !errors.Is(err, want) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	if err := errors.Join(rec.Close(), data.Close(), info.Close()); err != nil {
		t.Error(err)
	}
}

// TestRefused checks that wrong arguments are refused.
func TestRefused(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	mathtest.SolverRefused(t, dev, lib)
	call := lib.Call("x", 0, func(solver.Call) error { return nil })
	if err := dev.Queue(0).NewStream().Do(call); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("a call on the simulated GPU: %v", err)
	}
	if err := lib.With(func(*cusolver.Library, cusolver.DnHandle) error { return nil }); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("the handle of the simulated GPU: %v", err)
	}
	if err := lib.With(nil); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("no function: %v", err)
	}
	if _, err := solver.Open(nil, solver.Options{}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("no device: %v", err)
	}
	if err := (*solver.Library)(nil).Close(); err != nil {
		t.Error(err)
	}
}

// This example fits a line to (1, 1), (2, 3), (3, 4) by least squares, with the normal equations.
func ExampleCholeskySolve() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{}) // or drivers.Open(drivers.CUDA)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	lib, err := solver.Open(dev, solver.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer lib.Close()
	data, err := gpu.AllocSlice[float64](dev, gpu.DeviceMem, 6)
	if err != nil {
		log.Fatal(err)
	}
	defer data.Close()
	info, err := gpu.AllocSlice[int32](dev, gpu.DeviceMem, 1)
	if err != nil {
		log.Fatal(err)
	}
	defer info.Close()

	a := blas.Matrix[float64]{Data: data.Slice(0, 4), Rows: 2, Cols: 2}
	b := blas.Matrix[float64]{Data: data.Slice(4, 6), Rows: 1, Cols: 2}
	line, outcome := make([]float64, 2), make([]int32, 1)
	stream := dev.Queue(0).NewStream()
	err = stream.Do(
		data.UploadCopy([]float64{14, 6, 6, 3, 19, 8}), // Σx², Σx, Σx, n, Σxy, Σy
		solver.Cholesky(lib, a, info),
		info.Download(outcome),
		solver.CholeskySolve(lib, a, b, info),
		b.Data.Download(line),
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := stream.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	if outcome[0] != 0 {
		log.Fatalf("the points do not give a line: info %d", outcome[0])
	}
	fmt.Printf("y = %.2f x + %.2f\n", line[0], line[1])
	// Output: y = 1.50 x + -0.33
}

// TestEigenInfo checks that info is 0 for a singular matrix and for a zero matrix, and positive if
// elements are NaN or infinite.
func TestEigenInfo(t *testing.T) {
	for _, n := range []int{1, 2, 12} {
		eigenInfo(t, n)
	}
}

func eigenInfo(t *testing.T, n int) {
	dev, lib := open(t, simdriver.CUDACaps())
	data, err := gpu.AllocSlice[float64](dev, gpu.DeviceMem, n*n)
	values, err2 := gpu.AllocSlice[float64](dev, gpu.DeviceMem, n)
	info, err3 := gpu.AllocSlice[int32](dev, gpu.DeviceMem, 1)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(data.Close(), values.Close(), info.Close()); err != nil {
			t.Error(err)
		}
	}()
	a, st := blas.Matrix[float64]{Data: data, Rows: n, Cols: n}, dev.Queue(0).NewStream()
	for _, c := range []struct {
		element, first float64
		converges      bool
	}{{1, 1, true}, {0, 0, true}, {1, math.NaN(), false}, {math.NaN(), 1, n == 1}, {math.Inf(1), 1, n == 1}} {
		got := []int32{-1}
		if err := errors.Join(st.Do(data.Fill(c.element), data.Slice(0, 1).Fill(c.first), solver.Eigen(lib, a, values, true, info), info.Download(got)),
			st.Wait(context.Background())); err != nil {
			t.Fatal(err)
		}
		if converges := got[0] == 0; converges != c.converges || got[0] < 0 {
			t.Errorf("%d rows with elements %v, the first %v: info %d", n, c.element, c.first, got[0])
		}
	}
}

// TestEigenValuesOnly checks that Eigen without vectors overwrites the matrix, as cuSOLVER does.
func TestEigenValuesOnly(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	data, err := gpu.AllocSlice[float64](dev, gpu.DeviceMem, 6)
	info, err2 := gpu.AllocSlice[int32](dev, gpu.DeviceMem, 1)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	a, st, got := blas.Matrix[float64]{Data: data.Slice(0, 4), Rows: 2, Cols: 2}, dev.Queue(0).NewStream(), make([]float64, 6)
	err = errors.Join(st.Do(data.UploadCopy([]float64{2, 1, 1, 2, 0, 0}), solver.Eigen(lib, a, data.Slice(4, 6), false, info), data.Download(got)),
		st.Wait(context.Background()), data.Close(), info.Close())
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(got[0]) || !math.IsNaN(got[3]) || math.Abs(got[4]-1) > 1e-9 || math.Abs(got[5]-3) > 1e-9 {
		t.Errorf("%v; want NaN, and the values 1 and 3", got)
	}
}

// TestClosed checks that an operation and a recording fail after the library is closed. The
// recording has Eigen, and Eigen cannot be a node of a graph.
func TestClosed(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	values, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer values.Close()
	info, err := gpu.AllocSlice[int32](dev, gpu.DeviceMem, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer info.Close()
	a := blas.Matrix[float32]{Data: values.Slice(0, 1), Rows: 1, Cols: 1}
	op := solver.Eigen(lib, a, values.Slice(1, 2), false, info)
	rec, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if _, err := rec.Add(op); err != nil {
		t.Fatal(err)
	}
	st := dev.Queue(0).NewStream()
	if err := errors.Join(rec.End(), st.Do(values.Fill(1), gpu.Execute(rec)), st.Wait(context.Background()), lib.Close()); err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]gpu.Op{"an operation": solver.Cholesky(lib, a, info), "a recording": gpu.Execute(rec)} {
		st := dev.Queue(0).NewStream()
		if err := errors.Join(st.Do(op), st.Wait(context.Background())); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
