package interop_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// check ends the example on an error.
func check(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
}

// at returns a list of one point.
func at(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

// A library stands for code that uses the driver's own API. With the simulated GPU, that API is a
// device of package driver.
type library struct {
	driver.Device
	stream driver.Stream
	event  driver.Event
}

// call runs fn on a thread on which the library's device is current.
func (l *library) call(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		check(l.Bind())
		fn()
	}()
	<-done
}

func newLibrary(d driver.Driver) *library {
	v, err := d.Open(0)
	check(err)
	l := &library{Device: v}
	l.call(func() {
		var err, err2 error
		l.stream, err = l.NewStream()
		l.event, err2 = l.NewEvent()
		check(err, err2)
	})
	return l
}

// end frees the library's objects. The runtime's device must have been closed before.
func (l *library) end() {
	l.call(func() { check(l.DestroyStream(l.stream), l.DestroyEvent(l.event), l.Close()) })
}

// A queue works on a library's stream. The library's own work runs between the queue's operations.
func ExampleAdoptStream() {
	ctx, d := context.Background(), simdriver.New(simdriver.Config{})
	dev, err := gpu.Open(d, 0, gpu.Options{})
	check(err)
	lib := newLibrary(d)
	defer lib.end()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 8)
	check(err)

	q, err := interop.AdoptStream(dev, lib.stream)
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	check(
		q.Submit(gpu.Order{Signal: at(s, 1)}, gpu.Fill(mem.All(), []byte{1})),
		s.WaitIssued(ctx, 1), // from now on the library's work comes after the fill
	)
	lib.call(func() { check(lib.Fill(lib.stream, mem.Ptr(), 2, 1, 4)) })
	out := make([]byte, 8)
	check(
		q.Submit(gpu.Order{Signal: at(s, 2)}, gpu.Download(out, mem.All())), // after the library's work
		s.Wait(ctx, 2),
		q.Close(), // from now on only the library uses the stream
	)
	fmt.Println(out)
	// Output: [2 2 2 2 1 1 1 1]
}

// A library and the runtime wait for each other's work, each by an event that the other records.
// The host does not wait for the device in between.
func ExampleAdoptEvent() {
	ctx, d := context.Background(), simdriver.New(simdriver.Config{})
	dev, err := gpu.Open(d, 0, gpu.Options{})
	check(err)
	lib := newLibrary(d)
	defer lib.end()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 8)
	check(err)
	ours, err := interop.NewEvent(dev)
	check(err)
	theirs, err := interop.AdoptEvent(dev, lib.event, nil)
	check(err)

	s, err := gpu.NewSemaphore(0)
	check(err)
	check(
		dev.Queue(0).Submit(gpu.Order{Signal: at(s, 1)}, gpu.Fill(mem.All(), []byte{1})),
		// The event stands for point s at 1.
		dev.Queue(0).Submit(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, interop.RecordEvent(ours)),
		s.WaitIssued(ctx, 2),
	)
	lib.call(func() {
		check(
			lib.StreamWait(lib.stream, ours.Native()),
			lib.Fill(lib.stream, mem.Ptr(), 2, 1, 4),
			lib.Record(lib.event, lib.stream),
		)
	})
	out := make([]byte, 8)
	check(
		// Point s at 3 stands for the event.
		dev.Queue(1).Submit(gpu.Order{Wait: at(s, 2), Signal: at(s, 3)}, interop.WaitEvent(theirs)),
		dev.Queue(0).Submit(gpu.Order{Wait: at(s, 3), Signal: at(s, 4)}, gpu.Download(out, mem.All())),
		s.Wait(ctx, 4),
		ours.Close(), theirs.Close(),
	)
	fmt.Println(out)
	// Output: [2 2 2 2 1 1 1 1]
}

// The host and a stream take turns. A number in host memory says whose turn it is. The stream has
// all its work before the host begins.
func ExampleWaitValue() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	check(err)
	defer dev.Close()
	words, err := dev.Alloc(gpu.HostMem, 16)
	check(err)
	// number is the first 8 bytes of the buffer words, as the host accesses them.
	number := (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(words.Bytes())))
	input := words.Bytes()[8:]

	s, sum := dev.Queue(0).NewStream(), make([]byte, 8)
	turn := words.Range(0, 8)
	for i := range uint64(3) {
		check(s.Do(
			interop.WaitValue(turn, 2*i+1), // the host writes this number
			gpu.Download(sum[i:i+1], words.Range(8+i, 1)),
			interop.WriteValue(turn, 2*i+2), // now it is the host's turn
		))
	}
	for i := range uint64(3) {
		input[i] = byte(10 * i)
		number.Store(2*i + 1)
		for number.Load() < 2*i+2 {
			runtime.Gosched()
		}
	}
	check(s.Wait(context.Background()))
	fmt.Println(sum[:3], number.Load())
	// Output: [0 10 20] 6
}
