package gpu_test

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A recording is executed twice, each time with other ranges for its bindings.
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
	copied, err := c.Add(gpu.Copy(out.Range(0, 12), in.Range(0, 12)))
	check(err)
	_, err = c.Add(gpu.Launch(double, gpu.GridFor(3, 256), uint64(3), out.Range(0, 12)), copied)
	check(err, c.End())

	s, err := gpu.NewSemaphore(0)
	check(err)
	from, err := dev.Alloc(gpu.HostMem, 24)
	check(err)
	to, err := dev.Alloc(gpu.HostMem, 24)
	check(err)
	copy(unsafe.Slice((*float32)(unsafe.Pointer(&from.Bytes()[0])), 6), []float32{1, 2, 3, 4, 5, 6})
	for i := range uint64(2) {
		check(dev.Queue(int(i)).Submit(gpu.Order{Wait: at(s, i), Signal: at(s, i+1)}, gpu.Execute(c, from.Range(12*i, 12), to.Range(12*i, 12))))
	}
	check(s.Wait(context.Background(), 2))
	fmt.Println(unsafe.Slice((*float32)(unsafe.Pointer(&to.Bytes()[0])), 6))
	// Output:
	// [2 4 6 8 10 12]
}

// A recording is executed with its default parameters, and then with other values: a scalar, and
// the number of blocks that the scalar needs.
func ExampleNewParam() {
	dev := simulated()
	defer dev.Close()
	x, err := dev.Load(simdriver.Image("double"))
	check(err)
	double, err := x.Kernel("double")
	check(err)
	mem, err := gpu.AllocSlice[float32](dev, gpu.HostMem, 6)
	check(err)

	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	check(err)
	n, err := gpu.NewParam(c, uint64(6))
	check(err)
	blocks, err := gpu.NewParam(c, [3]uint32{3})
	check(err)
	grid := gpu.Grid{Threads: [3]uint32{2}}
	_, err = c.Add(gpu.Launch(double, grid, n, mem).GridParam(blocks))
	check(err, c.End())

	s := dev.Queue(0).NewStream()
	check(s.Do(mem.Fill(1), gpu.Execute(c))) // the defaults
	for _, rows := range []int{2, 3, 0} {
		values := []gpu.ParamValue{n.Value(uint64(rows)), blocks.Value(gpu.GridFor(rows, 2).Blocks)}
		check(s.Do(gpu.Execute(c).With(values...)))
	}
	check(s.Wait(context.Background()))
	fmt.Println(mem.Host())
	// Output:
	// [8 8 4 2 2 2]
}

// A layer is recorded once. A larger recording executes it twice, each time after the command that
// writes its input.
func ExampleExecute_nested() {
	dev := simulated()
	defer dev.Close()
	layer, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	check(err)
	x, err := layer.Binding()
	check(err)
	_, err = layer.Add(gpu.Copy(x.Range(4, 4), x.Range(0, 4)))
	check(err, layer.End())

	mem, err := dev.Alloc(gpu.HostMem, 12)
	check(err)
	model, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
	check(err)
	in, err := model.Add(gpu.Fill(mem.Range(0, 4), []byte("go! ")))
	check(err)
	first, err := model.Add(gpu.Execute(layer, mem.Range(0, 8)), in)
	check(err)
	_, err = model.Add(gpu.Execute(layer, mem.Range(4, 8)), first)
	check(err, model.End())

	s := dev.Queue(0).NewStream()
	check(s.Do(gpu.Execute(model)), s.Wait(context.Background()))
	fmt.Printf("%s\n", mem.Bytes())
	// Output:
	// go! go! go!
}

// Commands of a recording pass data to each other in its scratch memory. Two of the three scratch
// buffers share bytes, because they are never in use at the same time.
func ExampleCommandBuffer_Scratch() {
	dev := simulated()
	defer dev.Close()
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	check(err)
	in, err := c.Binding()
	check(err)
	out, err := c.Binding()
	check(err)
	x := in.Range(0, 1024)
	for range 3 {
		b, err := c.Scratch(1024)
		check(err)
		_, err = c.Add(gpu.Copy(b.All(), x))
		check(err)
		_, err = c.Add(gpu.Barrier())
		check(err)
		x = b.All()
	}
	_, err = c.Add(gpu.Copy(out.Range(0, 1024), x))
	check(err, c.End())
	n, err := c.ScratchSize()
	check(err)
	fmt.Println(n)

	s := dev.Queue(0).NewStream()
	from, err := dev.Alloc(gpu.HostMem, 1024)
	check(err)
	to, err := dev.Alloc(gpu.HostMem, 1024)
	check(err)
	copy(from.Bytes(), "passed on")
	check(s.Do(gpu.Execute(c, from.All(), to.All())), s.Wait(context.Background()))
	fmt.Printf("%s\n", to.Bytes()[:9])
	// Output:
	// 2048
	// passed on
}

// Recordings for several batch sizes share one buffer as scratch memory. The stream orders their
// executions.
func ExampleCommandBuffer_SetScratch() {
	dev := simulated()
	defer dev.Close()
	out, err := dev.Alloc(gpu.HostMem, 4)
	check(err)
	var all []*gpu.CommandBuffer
	need := uint64(0)
	for batch := range uint64(4) {
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
		check(err)
		b, err := c.Scratch(4096 * (batch + 1))
		check(err)
		filled, err := c.Add(gpu.Fill(b.All(), []byte{byte(batch)}))
		check(err)
		_, err = c.Add(gpu.Copy(out.Range(batch, 1), b.Range(0, 1)), filled)
		check(err)
		n, err := c.ScratchSize() // for the commands recorded so far
		check(err)
		need = max(need, n)
		all = append(all, c)
	}
	scratch, err := dev.Alloc(gpu.DeviceMem, need)
	check(err)
	s := dev.Queue(0).NewStream()
	for _, c := range all {
		check(c.SetScratch(scratch.All()), c.End(), s.Do(gpu.Execute(c)))
	}
	check(s.Wait(context.Background()))
	fmt.Println(need, out.Bytes())
	// Output:
	// 16384 [0 1 2 3]
}
