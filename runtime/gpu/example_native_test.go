package gpu_test

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A function of the program gives work to the native stream, between an upload and a download. On
// CUDA it would call a library with cudadriver.Stream(n.Stream). On the simulated GPU it calls a
// method of n.Device.
func ExampleNative() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 8)
	check(err)
	spread := func(n gpu.NativeCall) error {
		return n.Device.Copy(n.Stream, n.Ptrs[1], n.Ptrs[0], 4)
	}
	s, out := dev.Queue(0).NewStream(), make([]byte, 8)
	check(s.Do(
		gpu.Upload(mem.Range(0, 4), []byte("work")),
		gpu.Native("spread", spread, mem.Range(0, 4), mem.Range(4, 4)),
		gpu.Download(out, mem.All()),
	), s.Wait(context.Background()))
	fmt.Printf("%s\n", out)
	// Output: workwork
}

// The recording runs as a graph, which contains the work that the function of Native gives to the
// stream. When the address of the binding changes, the function is called again.
func ExampleNative_recorded() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 8)
	check(err)
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
	check(err)
	to, err := c.Binding()
	check(err)
	calls := 0
	_, err = c.Add(gpu.Native("digits", func(n gpu.NativeCall) error {
		calls++
		return n.Device.Fill(n.Stream, n.Ptrs[0], '0'+uint32(calls), 1, 4)
	}, to.Range(0, 4)))
	check(err, c.End())
	out := make([]byte, 8)
	s := dev.Queue(0).NewStream()
	check(s.Do(
		gpu.Execute(c, mem.Range(0, 4)),
		gpu.Execute(c, mem.Range(0, 4)), // same address: no call
		gpu.Execute(c, mem.Range(4, 4)),
		gpu.Download(out, mem.All()),
	), s.Wait(context.Background()), c.Close())
	fmt.Printf("%s, and %d calls\n", out, calls)
	// Output: 11112222, and 2 calls
}
