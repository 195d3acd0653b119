package gpu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// simulated opens a GPU made of Go.
func simulated() *gpu.Device {
	double := simdriver.MustKernel(func(g *simdriver.Grid, n uint64, p driver.Ptr) error {
		xs, err := simdriver.View[float32](g, p, int(min(n, g.Size())))
		for i := range xs {
			xs[i] *= 2
		}
		return err
	})
	dev, err := gpu.Open(simdriver.New(simdriver.Config{Kernels: map[string]simdriver.Kernel{"double": double}}), 0, gpu.Options{Queues: 2})
	if err != nil {
		log.Fatal(err)
	}
	return dev
}

// check ends the example if something is wrong.
func check(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
}

// at is a list of one point.
func at(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

// An operation may wait for what nobody has promised to signal yet.
func ExampleSemaphore() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 8)
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	got := make([]byte, 8)
	check( // the last step first
		dev.Queue(1).Download(gpu.Order{Wait: at(s, 2), Signal: at(s, 3)}, got, mem.All()),
		dev.Queue(0).Fill(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, mem.All(), []byte{1, 2}),
	)
	fmt.Println(s.Query())
	check(s.Signal(1)) // the host begins
	check(s.Wait(context.Background(), 3))
	fmt.Println(s.Query())
	fmt.Println(got)
	// Output:
	// 0 <nil>
	// 3 <nil>
	// [1 2 1 2 1 2 1 2]
}

// Operations of a stream come one after the other. Their errors are all found in that of Wait.
func ExampleStream() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 8)
	check(err)
	got := make([]byte, 8)
	s := dev.Queue(0).NewStream()
	s.Fill(mem.All(), []byte{1})
	s.UploadCopy(mem.Range(2, 2), []byte{7, 8})
	s.Download(got, mem.All())
	check(s.Wait(context.Background()))
	fmt.Println(got)

	s.Fill(mem.Range(4, 8), []byte{2}) // the buffer ends at 8
	s.Download(got, mem.All())
	err = s.Wait(context.Background())
	fmt.Println(errors.Is(err, gpu.ErrRange), got)
	// Output:
	// [1 1 7 8 1 1 1 1]
	// true [1 1 7 8 1 1 1 1]
}

// Two pieces of work that may run at once, and one that comes after both.
func ExampleQueue() {
	dev := simulated()
	defer dev.Close()
	code, err := dev.Load(simdriver.Image("double"))
	check(err)
	double, err := code.Kernel("double")
	check(err)
	mem, err := dev.Alloc(gpu.DeviceMem, 16)
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	left, err := gpu.NewSemaphore(0)
	check(err)
	right, err := gpu.NewSemaphore(0)
	check(err)

	in, out := []float32{1, 2, 3, 4}, make([]float32, 4)
	raw := func(x []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x)) }
	n := uint64(2)
	half := func(o gpu.Order, q int, ptr driver.Ptr) error {
		return dev.Queue(q).Dispatch(o, gpu.Dispatch{Kernel: double, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{2},
			Args: []unsafe.Pointer{unsafe.Pointer(&n), unsafe.Pointer(&ptr)}, Sizes: []int{8, 8}})
	}
	check(
		dev.Queue(0).UploadCopy(gpu.Order{Signal: at(s, 1)}, mem.All(), raw(in)),
		half(gpu.Order{Wait: at(s, 1), Signal: at(left, 1)}, 0, mem.Ptr()),
		half(gpu.Order{Wait: at(s, 1), Signal: at(right, 1)}, 1, mem.Ptr()+8),
		dev.Queue(0).Download(gpu.Order{Wait: append(at(left, 1), at(right, 1)...), Signal: at(s, 2)}, raw(out), mem.All()),
		s.Wait(context.Background(), 2),
	)
	fmt.Println(out)
	// Output:
	// [2 4 6 8]
}

// A link makes one timeline follow another, failures included.
func ExampleSemaphore_Link() {
	s, err := gpu.NewSemaphore(0)
	check(err)
	follower, err := gpu.NewSemaphore(0)
	check(err)
	s.Link(5, follower, 100)
	s.Link(9, follower, 200)
	check(s.Signal(7))
	fmt.Println(follower.Query())
	s.Fail(errors.New("out of paper"))
	fmt.Println(follower.Query())
	// Output:
	// 100 <nil>
	// 100 out of paper
}

// A host call takes part in the order of the work.
func ExampleQueue_HostCall() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.HostMem, 4)
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	check(
		dev.Queue(0).Fill(gpu.Order{Signal: at(s, 1)}, mem.All(), []byte{7}),
		dev.Queue(0).HostCall(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, func() error {
			fmt.Println("the host sees", mem.Bytes())
			return errors.New("and does not like it")
		}),
	)
	err = s.Wait(context.Background(), 2)
	var failed *gpu.SubmitError
	fmt.Println(errors.As(err, &failed), failed.Op, failed.Err)
	// Output:
	// the host sees [7 7 7 7]
	// true host call and does not like it
}

// The device works on the program's own memory.
func ExampleDevice_ImportHost() {
	dev := simulated()
	defer dev.Close()
	own := []byte("the program's own")
	freed := make(chan struct{})
	mem, err := dev.ImportHost(own, func() { close(freed) })
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	check(
		dev.Queue(0).Fill(gpu.Order{Signal: at(s, 1)}, mem.Range(0, 3), []byte("*")),
		mem.Close(), // it stays pinned until the device is done
		s.Wait(context.Background(), 1),
	)
	<-freed
	fmt.Printf("%s\n", own)
	// Output:
	// *** program's own
}

// A download whose semaphore fails may go on: Free tells when the slice is the program's again.
func ExampleOrder_free() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 4)
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	free, err := gpu.NewSemaphore(0)
	check(err)
	slice := make([]byte, 4)
	check(dev.Queue(0).Download(gpu.Order{Signal: at(s, 1), Free: at(free, 1)}, slice, mem.All()))
	s.Fail(errors.New("too late"))
	fmt.Println(s.Wait(context.Background(), 1))
	check(free.Wait(context.Background(), 1))
	copy(slice, "mine")
	fmt.Printf("%s\n", slice)
	// Output:
	// too late
	// mine
}

// Files are read and written in the order of the work, by goroutines, through pinned memory.
func ExampleQueue_Read() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 5)
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	in, out := bytes.NewReader([]byte("hello, device")), &memoryFile{data: []byte("it says .....!")}
	check(
		dev.Queue(0).Read(gpu.Order{Signal: at(s, 1)}, mem.All(), in, 0),
		dev.Queue(0).Write(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, out, 8, mem.All()),
		s.Wait(context.Background(), 2),
	)
	fmt.Printf("%s\n", out.data)

	short, err := gpu.NewSemaphore(0)
	check(err)
	check(dev.Queue(0).Read(gpu.Order{Signal: at(short, 1)}, mem.All(), in, 10))
	fmt.Println(short.Wait(context.Background(), 1))
	// Output:
	// it says hello!
	// gpu: transfer on queue 0 of Simulated GPU 0: read: 5 bytes at 10: unexpected EOF
}

// A wait for any one of several points tells which.
func ExampleWaitAny() {
	a, err := gpu.NewSemaphore(0)
	check(err)
	b, err := gpu.NewSemaphore(0)
	check(err)
	check(gpu.SignalAll(gpu.Point{Semaphore: a, Value: 1}, gpu.Point{Semaphore: b, Value: 4}))
	fmt.Println(gpu.WaitAny(context.Background(), gpu.Point{Semaphore: a, Value: 2}, gpu.Point{Semaphore: b, Value: 3}))

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(gpu.WaitAll(ctx, gpu.Point{Semaphore: a, Value: 2}, gpu.Point{Semaphore: b, Value: 3}))
	// Output:
	// 1 <nil>
	// gpu: wait for a semaphore to reach 2, which is at 1, and nothing that was issued signals it (Device.Parked lists what was not): context deadline exceeded
}

// A function is called when a value is reached, unless it is taken back before.
func ExampleSemaphore_OnReached() {
	s, err := gpu.NewSemaphore(0)
	check(err)
	s.OnReached(2, func(err error) { fmt.Println("reached:", err) })
	cancel := s.OnReached(3, func(err error) { fmt.Println("never") })
	check(s.Signal(2))
	fmt.Println(cancel())
	check(s.Signal(3))
	// Output:
	// reached: <nil>
	// true
}

// A memoryFile is a file in memory, of a fixed size.
type memoryFile struct{ data []byte }

func (f *memoryFile) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(p, at)
}

func (f *memoryFile) WriteAt(p []byte, at int64) (int, error) { return copy(f.data[at:], p), nil }
