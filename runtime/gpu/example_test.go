package gpu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// simulated opens a simulated GPU with two queues and the kernel double.
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

// check ends the example on an error.
func check(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
}

// at returns a list of one point.
func at(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

// An operation may wait for a point before any work is submitted that signals the point.
func ExampleSemaphore() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 8)
	check(err)
	defer mem.Close()
	s, err := gpu.NewSemaphore(0)
	check(err)
	got := make([]byte, 8)
	check( // the last step first
		dev.Queue(1).Submit(gpu.Order{Wait: at(s, 2), Signal: at(s, 3)}, gpu.Download(got, mem.All())),
		dev.Queue(0).Submit(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, gpu.Fill(mem.All(), []byte{1, 2})),
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

// A stream runs operations one after the other. Wait returns the first error of the stream.
func ExampleStream() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 8)
	check(err)
	defer mem.Close()
	got := make([]byte, 8)
	s := dev.Queue(0).NewStream()
	s.Do(
		gpu.Fill(mem.All(), []byte{1}),
		gpu.Upload(mem.Range(2, 2), []byte{7, 8}),
		gpu.Download(got, mem.All()),
	)
	check(s.Wait(context.Background()))
	fmt.Println(got)

	s.Fill(mem.Range(4, 8), []byte{2}) // fails: the buffer has only 8 bytes
	s.Download(got, mem.All())
	err = s.Wait(context.Background())
	fmt.Println(errors.Is(err, gpu.ErrRange), got)
	// Output:
	// [1 1 7 8 1 1 1 1]
	// true [1 1 7 8 1 1 1 1]
}

// Two launches may run at the same time. A download waits for both.
func ExampleQueue() {
	dev := simulated()
	defer dev.Close()
	code, err := dev.Load(simdriver.Image("double"))
	check(err)
	double, err := code.Kernel("double")
	check(err)
	mem, err := dev.Alloc(gpu.DeviceMem, 16)
	check(err)
	defer mem.Close()
	s, err := gpu.NewSemaphore(0)
	check(err)
	left, err := gpu.NewSemaphore(0)
	check(err)
	right, err := gpu.NewSemaphore(0)
	check(err)

	in, out := []float32{1, 2, 3, 4}, make([]float32, 4)
	half := func(r gpu.Range) gpu.Op { return gpu.Launch(double, gpu.GridFor(2, 256), uint64(2), r) }
	check(
		dev.Queue(0).Submit(gpu.Order{Signal: at(s, 1)}, gpu.Upload(mem.All(), gpu.BytesOf(in))),
		dev.Queue(0).Submit(gpu.Order{Wait: at(s, 1), Signal: at(left, 1)}, half(mem.Range(0, 8))),
		dev.Queue(1).Submit(gpu.Order{Wait: at(s, 1), Signal: at(right, 1)}, half(mem.Range(8, 8))),
		dev.Queue(0).Submit(gpu.Order{Wait: append(at(left, 1), at(right, 1)...), Signal: at(s, 2)}, gpu.Download(gpu.BytesOf(out), mem.All())),
		s.Wait(context.Background(), 2),
	)
	fmt.Println(out)
	// Output:
	// [2 4 6 8]
}

// A link signals the semaphore follower when s reaches a value. If s fails, follower fails, too.
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

// A host call runs in stream order. If its function returns an error, the stream fails.
func ExampleHostCall() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.HostMem, 4)
	check(err)
	defer mem.Close()
	s := dev.Queue(0).NewStream()
	check(s.Do(
		gpu.Fill(mem.All(), []byte{7}),
		gpu.HostCall(func() error {
			fmt.Println("the host sees", mem.Bytes())
			return errors.New("and does not like it")
		}).Label("check"),
	))
	err = s.Wait(context.Background())
	var failed *gpu.SubmitError
	fmt.Println(errors.As(err, &failed), failed.Op, failed.Label, failed.Err)
	// Output:
	// the host sees [7 7 7 7]
	// true host call check and does not like it
}

// The device writes to memory of the program.
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
		dev.Queue(0).Submit(gpu.Order{Signal: at(s, 1)}, gpu.Fill(mem.Range(0, 3), []byte("*"))),
		mem.Close(), // the memory stays pinned until the device has finished
		s.Wait(context.Background(), 1),
	)
	<-freed
	fmt.Printf("%s\n", own)
	// Output:
	// *** program's own
}

// A download may still run after its semaphore has failed. When the points in Order.Free are
// signalled, the program may use the slice again.
func ExampleOrder_free() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 4)
	check(err)
	defer mem.Close()
	s, err := gpu.NewSemaphore(0)
	check(err)
	free, err := gpu.NewSemaphore(0)
	check(err)
	slice := make([]byte, 4)
	check(dev.Queue(0).Submit(gpu.Order{Signal: at(s, 1), Free: at(free, 1)}, gpu.Download(slice, mem.All())))
	s.Fail(errors.New("too late"))
	fmt.Println(s.Wait(context.Background(), 1))
	check(free.Wait(context.Background(), 1))
	copy(slice, "mine")
	fmt.Printf("%s\n", slice)
	// Output:
	// too late
	// mine
}

// A stream reads from a file and writes to another file. Goroutines move the data through pinned
// memory.
func ExampleReadFrom() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 5)
	check(err)
	defer mem.Close()
	s := dev.Queue(0).NewStream()
	in, out := bytes.NewReader([]byte("hello, device")), &memoryFile{data: []byte("it says .....!")}
	check(s.Do(gpu.ReadFrom(mem.All(), in, 0), gpu.WriteTo(out, 8, mem.All())), s.Wait(context.Background()))
	fmt.Printf("%s\n", out.data)

	check(s.Do(gpu.ReadFrom(mem.All(), in, 10))) // the file has only 13 bytes
	fmt.Println(s.Wait(context.Background()))
	// Output:
	// it says hello!
	// gpu: transfer on queue 0 of Simulated GPU 0: read: 5 bytes at 10: unexpected EOF
}

// WaitAny waits for any of several points, and returns the index of a reached point. WaitAll waits
// for all of them.
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

// OnReached calls a function when a value is reached. The program may cancel the call before that.
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

// A memoryFile is a file of a fixed size in memory.
type memoryFile struct{ data []byte }

func (f *memoryFile) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(p, at)
}

func (f *memoryFile) WriteAt(p []byte, at int64) (int, error) { return copy(f.data[at:], p), nil }
