package gpu_test

import (
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// scaleBy is a kernel that multiplies each of n elements by a number.
func scaleBy[T smallfloat.Float](g *simdriver.Grid, n uint32, by T, x driver.Ptr) error {
	xs, err := simdriver.View[T](g, x, int(n))
	for i := range xs {
		xs[i] = smallfloat.FromFloat64[T](float64(xs[i].Float32()) * float64(by.Float32()))
	}
	return err
}

// testSmallFloat checks values of the type T as elements of memory, as kernel arguments and as the
// value of a Param.
func testSmallFloat[T smallfloat.Float](t *testing.T) {
	kernel, err := simdriver.NewKernel(scaleBy[T])
	must(t, err)
	d := simdriver.New(simdriver.Config{Strict: true, Kernels: map[string]simdriver.Kernel{"scale": kernel}})
	dev := openDevice(t, d, 0, gpu.Options{})
	s := dev.Queue(0).NewStream()
	number := smallfloat.FromFloat64[T]
	check := func(what string, x gpu.Slice[T], want ...float32) {
		t.Helper()
		if got := smallfloat.AppendFloat32(nil, elementsOf(t, s, x)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	x, err := gpu.AllocSlice[T](dev, gpu.DeviceMem, 4)
	must(t, err)
	defer x.Close()
	must(t, s.Do(x.Upload([]T{number(1), number(-2), number(0.5), number(0)}), x.Slice(3, 4).Fill(number(3))))
	check("upload and fill", x, 1, -2, 0.5, 3)

	_, k := kernelOf(t, dev, "scale")
	grid := gpu.GridFor(x.Len(), 32)
	must(t, s.Do(gpu.Launch(k, grid, uint32(4), number(-2), x)))
	check("Launch", x, -2, 4, -1, -6)

	type args struct {
		N  uint32
		By T
		X  gpu.Slice[T]
	}
	typed, err := gpu.Typed[args](k)
	must(t, err)
	must(t, s.Do(typed.Launch(grid, args{N: 4, By: number(0.5), X: x})))
	check("Typed", x, -1, 2, -0.5, -3)

	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	must(t, err)
	by, err := gpu.NewParam(c, number(2))
	must(t, err)
	_, err = c.Add(gpu.Launch(k, grid, uint32(4), by, x))
	must(t, err)
	must(t, c.End())
	must(t, s.Do(gpu.Execute(c)))
	check("the default of a Param", x, -2, 4, -1, -6)
	must(t, s.Do(gpu.Execute(c).With(by.Value(number(-0.5)))))
	check("the value of a Param", x, 1, -2, 0.5, 3)
}

func TestSmallFloat(t *testing.T) {
	t.Run("Float16", testSmallFloat[smallfloat.Float16])
	t.Run("BFloat16", testSmallFloat[smallfloat.BFloat16])
	t.Run("Float8E4M3", testSmallFloat[smallfloat.Float8E4M3])
	t.Run("Float8E5M2", testSmallFloat[smallfloat.Float8E5M2])
}
