package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// The fields of a struct are the arguments of the kernel, and slices of float32 are the kernel's
// memory. For a real GPU, only the driver and the loaded code differ.
func ExampleTyped() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{Kernels: map[string]simdriver.Kernel{"saxpy": simSaxpy}}), 0, gpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	code, err := dev.Load(simdriver.Image("saxpy"))
	if err != nil {
		log.Fatal(err)
	}
	kernel, err := code.Kernel("saxpy")
	if err != nil {
		log.Fatal(err)
	}
	type args struct {
		N    uint64
		A    float32
		X, Y gpu.Slice[float32]
	}
	saxpy, err := gpu.Typed[args](kernel)
	if err != nil {
		log.Fatal(err)
	}

	in, out := []float32{1, 2, 3}, make([]float32, 3)
	s := dev.Queue(0).NewStream()
	x, err := gpu.AllocSliceIn[float32](s, nil, len(in)) // from the device's current pool
	if err != nil {
		log.Fatal(err)
	}
	y, err := gpu.AllocSliceIn[float32](s, nil, len(in))
	if err != nil {
		log.Fatal(err)
	}
	s.Do( // Wait returns the first error
		x.Upload(in),
		y.Fill(0.5),
		saxpy.Launch(gpu.GridFor(len(in), 256), args{uint64(len(in)), 10, x, y}),
		y.Download(out),
		x.Free(),
		y.Free(),
	)
	if err := s.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)
	// Output:
	// [10.5 20.5 30.5]
}

// simSaxpy is the kernel saxpy of the simulated GPU.
var simSaxpy = simdriver.MustKernel(func(g *simdriver.Grid, n uint64, a float32, x, y driver.Ptr) error {
	xs, errX := simdriver.View[float32](g, x, int(n))
	ys, errY := simdriver.View[float32](g, y, int(n))
	for i := range xs {
		ys[i] += a * xs[i]
	}
	return errors.Join(errX, errY)
})

// Typed refuses fields that do not match the kernel's parameters.
func ExampleTyped_fields() {
	dev := simulated()
	defer dev.Close()
	code, err := dev.Load(simdriver.Image("double"))
	check(err)
	double, err := code.Kernel("double")
	check(err)
	_, err = gpu.Typed[struct {
		N int
		P gpu.Slice[float32]
	}](double)
	fmt.Println(err)
	_, err = gpu.Typed[struct {
		N int32
		P gpu.Slice[float32]
	}](double)
	fmt.Println(err)
	// Output:
	// gpu: bind double: field N (int): a kernel's int may have another size: use int32 or int64: invalid argument
	// gpu: bind double: field N has 4 bytes, and parameter 0 of the kernel has 8: its parameters have [8 8]: invalid argument
}

// Launches of a typed kernel are recorded. A binding stands for memory that each execution
// provides.
func ExampleTypedKernel_Launch() {
	dev := simulated()
	defer dev.Close()
	code, err := dev.Load(simdriver.Image("double"))
	check(err)
	kernel, err := code.Kernel("double")
	check(err)
	type args struct {
		N uint64
		P gpu.Slice[float32]
	}
	double, err := gpu.Typed[args](kernel)
	check(err)

	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	check(err)
	data, err := c.Binding()
	check(err)
	xs, err := gpu.SliceOf[float32](data.Range(0, 16))
	check(err)
	grid := gpu.GridFor(2, 256)
	_, err = c.Add(double.Launch(grid, args{2, xs.Slice(0, 2)}))
	check(err)
	_, err = c.Add(double.Launch(grid, args{2, xs.Slice(2, 4)})) // may run at the same time as the first
	check(err, c.End())

	mem, err := gpu.AllocSlice[float32](dev, gpu.HostMem, 4)
	check(err)
	copy(mem.Host(), []float32{1, 2, 3, 4})
	s := dev.Queue(0).NewStream()
	execute := gpu.Execute(c, mem.Range())
	check(s.Do(execute, execute), s.Wait(context.Background())) // an Op may be used again
	fmt.Println(mem.Host())
	// Output:
	// [4 8 12 16]
}

// BytesOf returns the memory of elements as bytes, because Upload and Download take bytes.
func ExampleBytesOf() {
	dev := simulated()
	defer dev.Close()
	xs, err := gpu.AllocSlice[uint16](dev, gpu.DeviceMem, 3)
	check(err)
	s, got := dev.Queue(0).NewStream(), make([]uint16, 2)
	check(s.Do(
		gpu.Upload(xs.Range(), gpu.BytesOf([]uint16{256, 257, 258})),
		gpu.Download(gpu.BytesOf(got), xs.Slice(1, 3).Range()),
	), s.Wait(context.Background()))
	fmt.Println(got)
	// Output:
	// [257 258]
}
