package gpu_test

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A function of the program gives a stream of the driver's work, between an upload and a download. On CUDA it would call a library with
// cudadriver.Stream(n.Stream); on the simulated GPU it calls the device.
func ExampleQueue_Native() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 8)
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	spread := func(n gpu.Native) error {
		return n.Device.Copy(n.Stream, n.Ptrs[1], n.Ptrs[0], 4)
	}
	out, q := make([]byte, 8), dev.Queue(0)
	check(
		q.UploadCopy(gpu.Order{Signal: []gpu.Point{s.At(1)}}, mem.Range(0, 4), []byte("work")),
		q.Native(gpu.Order{Wait: []gpu.Point{s.At(1)}, Signal: []gpu.Point{s.At(2)}}, spread, mem.Range(0, 4), mem.Range(4, 4)),
		q.Download(gpu.Order{Wait: []gpu.Point{s.At(2)}, Signal: []gpu.Point{s.At(3)}}, out, mem.All()),
		s.Wait(context.Background(), 3),
	)
	fmt.Printf("%s\n", out)
	// Output: workwork
}

// A graph has what the function gives to a stream; it is captured anew where the binding is somewhere else.
func ExampleCommandBuffer_Native() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 8)
	check(err)
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
	check(err)
	to, err := c.Binding()
	check(err)
	calls := 0
	_, err = c.Native(func(n gpu.Native) error {
		calls++
		return n.Device.Fill(n.Stream, n.Ptrs[0], '0'+uint32(calls), 1, 4)
	}, []gpu.Range{to.Range(0, 4)})
	check(err, c.End())
	out := make([]byte, 8)
	s := dev.Queue(0).NewStream()
	check(
		s.Execute(c, mem.Range(0, 4)),
		s.Execute(c, mem.Range(0, 4)), // where it was
		s.Execute(c, mem.Range(4, 4)),
		s.Download(out, mem.All()),
		s.Wait(context.Background()),
		c.Close(),
	)
	fmt.Printf("%s, and %d calls\n", out, calls)
	// Output: 11112222, and 2 calls
}
