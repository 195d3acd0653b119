package gpu_test

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A stream allocates memory, uses it and frees it. The host waits only at the end. The Alloc sets
// tmp, so the Ops that use tmp are made after the Alloc.
func ExampleAlloc() {
	dev := simulated()
	defer dev.Close()
	s, got := dev.Queue(0).NewStream(), make([]byte, 6)
	var tmp *gpu.Buffer
	check(s.Do(gpu.Alloc(&tmp, nil, 1<<20))) // from the current pool
	check(s.Do(
		gpu.Fill(tmp.All(), []byte{1, 2, 3, 4}),
		gpu.Download(got, tmp.Range(2, 6)),
		gpu.Free(tmp),
	), s.Wait(context.Background()))
	fmt.Println(got)
	fmt.Println(s.Fill(tmp.All(), []byte{1}))
	// Output:
	// [3 4 1 2 3 4]
	// gpu: fill: the memory has been deallocated: memory not allocated
}

// A pool reserves at most 1 MiB. Its statistics say how many bytes are in use.
func ExamplePool() {
	dev := simulated()
	defer dev.Close()
	p, err := dev.NewPool(gpu.PoolOptions{MaxSize: 1 << 20, Portable: true})
	check(err)
	s := dev.Queue(0).NewStream()
	mem, err := s.Alloc(p, 4096)
	check(err, s.Wait(context.Background()))
	st, err := p.Stats()
	check(err)
	fmt.Println(st.Used, st.Reserved <= 1<<20)
	check(s.Free(mem), s.Wait(context.Background()), p.Trim(0))
	st, err = p.Stats()
	check(err, p.Close())
	fmt.Printf("%+v\n", st.Used)
	_, err = s.Alloc(p, 1)
	fmt.Println(err)
	// Output:
	// 4096 true
	// 0
	// gpu: alloc: pool: closed
}

// The device copies a model's weights from read-only memory of the program, for example from a
// mapped file.
func ExampleDevice_ImportHostReadOnly() {
	dev := simulated()
	defer dev.Close()
	file := []byte("weights") // for example from syscall.Mmap
	weights, err := dev.ImportHostReadOnly(file, func() { /* nothing uses the memory any more: unmap the file */ })
	check(err)
	mem, err := dev.Alloc(gpu.DeviceMem, weights.Size())
	check(err)
	defer mem.Close()
	s, got := dev.Queue(0).NewStream(), make([]byte, weights.Size())
	check(
		s.Do(gpu.Copy(mem.All(), weights.All()), gpu.Download(got, mem.All())),
		weights.Close(), // the memory stays until it has been copied
		s.Wait(context.Background()),
	)
	fmt.Printf("%s\n", got)
	fmt.Println(s.Fill(weights.All(), []byte{0}))
	// Output:
	// weights
	// gpu: fill: the buffer was imported for reading only: invalid argument
}

// Managed memory has one address for the host and the device. Prefetch moves it to the device or to
// the host before it is used there.
func ExamplePrefetch() {
	dev := simulated()
	defer dev.Close()
	if !dev.Has(gpu.ManagedMem) {
		return
	}
	b, err := dev.Alloc(gpu.ManagedMem, 4)
	check(err)
	defer b.Close()
	copy(b.Bytes(), "go, ")
	s := dev.Queue(0).NewStream()
	check(s.Do(
		gpu.Prefetch(b.All(), gpu.DeviceMem),
		gpu.Fill(b.Range(2, 2), []byte("!")),
		gpu.Prefetch(b.All(), gpu.HostMem),
	), s.Wait(context.Background()))
	fmt.Printf("%s\n", b.Bytes())
	// Output:
	// go!!
}
