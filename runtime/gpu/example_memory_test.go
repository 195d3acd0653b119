package gpu_test

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// Memory that is there for a while, in the order of the work: nobody waits, not even the host.
func ExampleQueue_Alloca() {
	dev := simulated()
	defer dev.Close()
	s, err := gpu.NewSemaphore(0)
	check(err)
	q, got := dev.Queue(0), make([]byte, 6)
	tmp, err := q.Alloca(gpu.Order{Signal: at(s, 1)}, nil, 1<<20) // of the current pool
	check(err)
	check(
		q.Fill(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, tmp.All(), []byte{1, 2, 3, 4}),
		dev.Queue(1).Download(gpu.Order{Wait: at(s, 2), Signal: at(s, 3)}, got, tmp.Range(2, 6)),
		q.Dealloca(gpu.Order{Wait: at(s, 3), Signal: at(s, 4)}, tmp),
	)
	check(s.Wait(context.Background(), 4))
	fmt.Println(got)
	fmt.Println(q.Fill(gpu.Order{}, tmp.All(), []byte{1}))
	// Output:
	// [3 4 1 2 3 4]
	// gpu: fill: the memory has been deallocated: memory not allocated
}

// A pool of a program's own hands out parts of a buffer, and says what it has.
func ExamplePool() {
	dev := simulated()
	defer dev.Close()
	p, err := dev.NewPool(gpu.PoolOptions{MaxSize: 1 << 20, Portable: true})
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	mem, err := dev.Queue(0).Alloca(gpu.Order{Signal: at(s, 1)}, p, 4096)
	check(err)
	check(s.Wait(context.Background(), 1))
	st, err := p.Stats()
	check(err)
	fmt.Println(st.Used, st.Reserved <= 1<<20)
	check(mem.Dealloca(gpu.Order{Signal: at(s, 2)}), s.Wait(context.Background(), 2), p.Trim(0))
	st, err = p.Stats()
	check(err, p.Close())
	fmt.Printf("%+v\n", st.Used)
	_, err = dev.Queue(0).Alloca(gpu.Order{}, p, 1)
	fmt.Println(err)
	// Output:
	// 4096 true
	// 0
	// gpu: alloca: pool: closed
}

// A model's weights go to the device from where they are, which may be a file that is mapped for reading.
func ExampleDevice_ImportHostReadOnly() {
	dev := simulated()
	defer dev.Close()
	file := []byte("weights") // of syscall.Mmap, say
	weights, err := dev.ImportHostReadOnly(file, func() { /* nothing uses it any more: unmap it */ })
	check(err)
	mem, err := dev.Alloc(gpu.DeviceMem, weights.Size())
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	got := make([]byte, weights.Size())
	check(
		dev.Queue(0).Copy(gpu.Order{Signal: at(s, 1)}, mem.All(), weights.All()),
		dev.Queue(1).Download(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, got, mem.All()),
		weights.Close(), // it stays until it has been copied
		s.Wait(context.Background(), 2),
	)
	fmt.Printf("%s\n", got)
	fmt.Println(dev.Queue(0).Fill(gpu.Order{}, weights.All(), []byte{0}))
	// Output:
	// weights
	// gpu: fill: the buffer was imported for reading only: invalid argument
}

// Managed memory has one address for host and device, and is brought to where it is used next before it is.
func ExampleQueue_Prefetch() {
	dev := simulated()
	defer dev.Close()
	if !dev.Has(gpu.ManagedMem) {
		return
	}
	b, err := dev.Alloc(gpu.ManagedMem, 4)
	check(err)
	copy(b.Bytes(), "go, ")
	s, err := gpu.NewSemaphore(0)
	check(err)
	q := dev.Queue(0)
	check(
		q.Prefetch(gpu.Order{Signal: at(s, 1)}, b.All(), gpu.DeviceMem),
		q.Fill(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, b.Range(2, 2), []byte("!")),
		q.Prefetch(gpu.Order{Wait: at(s, 2), Signal: at(s, 3)}, b.All(), gpu.HostMem),
		s.Wait(context.Background(), 3),
	)
	fmt.Printf("%s\n", b.Bytes())
	// Output:
	// go!!
}
