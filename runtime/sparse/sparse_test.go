package sparse_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/puregpu/puregpu/cusparse"
	"github.com/puregpu/puregpu/internal/mathtest"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/sparse"
)

func open(t testing.TB, caps driver.Caps) (*gpu.Device, *sparse.Library) {
	t.Helper()
	d := simdriver.New(simdriver.Config{Caps: &caps})
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lib, err := sparse.Open(dev, sparse.Options{})
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

// TestSparse multiplies random sparse matrices by vectors, with the features of NVIDIA's and of
// AMD's devices.
func TestSparse(t *testing.T) {
	for _, caps := range []driver.Caps{simdriver.CUDACaps(), simdriver.HIPCaps()} {
		dev, lib := open(t, caps)
		mathtest.Sparse(t, dev, lib)
	}
}

// TestRefused checks that wrong arguments are refused.
func TestRefused(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	mathtest.SparseRefused(t, dev, lib)
	call := lib.Call("x", 0, func(sparse.Call) error { return nil })
	if err := dev.Queue(0).NewStream().Do(call); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("a call on the simulated GPU: %v", err)
	}
	if err := lib.With(func(*cusparse.Library, cusparse.Handle) error { return nil }); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("the handle of the simulated GPU: %v", err)
	}
	if err := lib.With(nil); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("no function: %v", err)
	}
	if _, err := sparse.Open(nil, sparse.Options{}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("no device: %v", err)
	}
	if err := (*sparse.Library)(nil).Close(); err != nil {
		t.Error(err)
	}
}

// TestOutside checks that the simulated GPU is lost if Columns has the number of a column that the
// matrix lacks, or if RowStarts leaves out elements.
func TestOutside(t *testing.T) {
	for name, numbers := range map[string][]int32{"column 9 of 1": {0, 1, 9}, "an end of 0": {0, 0, 0}, "a beginning of 1": {1, 1, 0}} {
		t.Run(name, func(t *testing.T) { outside(t, numbers) })
	}
}

// outside multiplies a matrix of one element, whose row starts and column are content.
func outside(t *testing.T, content []int32) {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	lib, err := sparse.Open(dev, sparse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	values, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 3)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := gpu.AllocSlice[int32](dev, gpu.DeviceMem, 3)
	if err != nil {
		t.Fatal(err)
	}
	a := sparse.Matrix[float32]{Rows: 1, Cols: 1, RowStarts: numbers.Slice(0, 2), Columns: numbers.Slice(2, 3), Values: values.Slice(0, 1)}
	st := dev.Queue(0).NewStream()
	if err := st.Do(numbers.UploadCopy(content), sparse.MatVec(lib, values.Slice(1, 2), a, values.Slice(2, 3))); err != nil {
		t.Fatal(err)
	}
	if err := st.Wait(context.Background()); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("%v", err)
	}
}

// TestBindings checks that an execution fails if its bindings make y and x overlap, or if y begins
// between two elements.
func TestBindings(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	values, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 5)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := gpu.AllocSlice[int32](dev, gpu.DeviceMem, 3)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	y, err := gpu.BindingSlice[float32](rec, 1)
	if err != nil {
		t.Fatal(err)
	}
	a := sparse.Matrix[float32]{Rows: 1, Cols: 1, RowStarts: numbers.Slice(0, 2), Columns: numbers.Slice(2, 3), Values: values.Slice(0, 1)}
	if _, err := rec.Add(sparse.MatVec(lib, y, a, values.Slice(2, 3))); err != nil {
		t.Fatal(err)
	}
	if err := rec.End(); err != nil {
		t.Fatal(err)
	}
	run := func(y gpu.Range) error {
		st := dev.Queue(0).NewStream()
		return errors.Join(st.Do(numbers.UploadCopy([]int32{0, 1, 0}), gpu.Execute(rec, y)), st.Wait(context.Background()))
	}
	if err := run(values.Slice(1, 2).Range()); err != nil {
		t.Error(err)
	}
	if err := run(values.Slice(2, 3).Range()); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("y and x overlap: %v", err)
	}
	if err := run(values.Range().Buffer.Range(14, 4)); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("y begins between two elements: %v", err)
	}
	if err := errors.Join(rec.Close(), values.Close(), numbers.Close()); err != nil {
		t.Error(err)
	}
}

// This example computes the second differences of 0, 1, 4, 9.
func ExampleMatVec() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{}) // or drivers.Open(drivers.CUDA)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	lib, err := sparse.Open(dev, sparse.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer lib.Close()
	numbers, err := gpu.AllocSlice[int32](dev, gpu.DeviceMem, 9)
	if err != nil {
		log.Fatal(err)
	}
	defer numbers.Close()
	floats, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 12)
	if err != nil {
		log.Fatal(err)
	}
	defer floats.Close()

	a := sparse.Matrix[float32]{Rows: 2, Cols: 4, RowStarts: numbers.Slice(0, 3), Columns: numbers.Slice(3, 9), Values: floats.Slice(0, 6)}
	x, y, result := floats.Slice(6, 10), floats.Slice(10, 12), make([]float32, 2)
	stream := dev.Queue(0).NewStream()
	err = stream.Do(
		numbers.UploadCopy([]int32{0, 3, 6, 0, 1, 2, 1, 2, 3}),
		floats.UploadCopy([]float32{1, -2, 1, 1, -2, 1, 0, 1, 4, 9, 0, 0}),
		sparse.MatVec(lib, y, a, x),
		y.Download(result),
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := stream.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(result)
	// Output: [2 2]
}
