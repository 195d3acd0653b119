package gpu_test

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Work is recorded once, and executed with one memory and then with another.
func ExampleCommandBuffer() {
	dev := simulated()
	defer dev.Close()
	x, err := dev.Load(simdriver.Image("double"))
	check(err)
	double, err := x.Kernel("double")
	check(err)

	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	check(err)
	in, err := c.Binding()
	check(err)
	out, err := c.Binding()
	check(err)
	n := uint64(3)
	copied, err := c.Copy(out.Range(0, 12), in.Range(0, 12))
	check(err)
	_, err = c.Dispatch(gpu.Dispatch{Kernel: double, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{3},
		Args: []unsafe.Pointer{unsafe.Pointer(&n), nil}, Sizes: []int{8, 8}, Buffers: []gpu.BufferArg{{Index: 1, Range: out.Range(0, 12)}}}, copied)
	check(err, c.End())

	s, err := gpu.NewSemaphore(0)
	check(err)
	from, err := dev.Alloc(gpu.HostMem, 24)
	check(err)
	to, err := dev.Alloc(gpu.HostMem, 24)
	check(err)
	copy(unsafe.Slice((*float32)(unsafe.Pointer(&from.Bytes()[0])), 6), []float32{1, 2, 3, 4, 5, 6})
	for i := range uint64(2) {
		check(dev.Queue(int(i)).Execute(gpu.Order{Wait: at(s, i), Signal: at(s, i+1)}, c, from.Range(12*i, 12), to.Range(12*i, 12)))
	}
	check(s.Wait(context.Background(), 2))
	fmt.Println(unsafe.Slice((*float32)(unsafe.Pointer(&to.Bytes()[0])), 6))
	// Output:
	// [2 4 6 8 10 12]
}

// A layer is recorded once, and put into a larger recording several times, each behind what it needs.
func ExampleCommandBuffer_Nest() {
	dev := simulated()
	defer dev.Close()
	layer, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	check(err)
	x, err := layer.Binding()
	check(err)
	_, err = layer.Copy(x.Range(4, 4), x.Range(0, 4))
	check(err, layer.End())

	mem, err := dev.Alloc(gpu.HostMem, 12)
	check(err)
	model, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
	check(err)
	in, err := model.Fill(mem.Range(0, 4), []byte("go! "))
	check(err)
	first, err := model.Nest(layer, []gpu.Range{mem.Range(0, 8)}, in)
	check(err)
	_, err = model.Nest(layer, []gpu.Range{mem.Range(4, 8)}, first)
	check(err, model.End())

	s, err := gpu.NewSemaphore(0)
	check(err)
	check(dev.Queue(0).Execute(gpu.Order{Signal: at(s, 1)}, model), s.Wait(context.Background(), 1))
	fmt.Printf("%s\n", mem.Bytes())
	// Output:
	// go! go! go!
}
