package gpu_test

import (
	"context"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// How long the device takes for an operation, without a trace.
func ExampleTiming() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		panic(err)
	}
	defer dev.Close()
	buf, err := dev.Alloc(gpu.DeviceMem, 1<<20)
	if err != nil {
		panic(err)
	}
	timing, err := dev.NewTiming()
	if err != nil {
		panic(err)
	}
	defer timing.Close()
	done, err := gpu.NewSemaphore(0)
	if err != nil {
		panic(err)
	}
	for i := range uint64(3) {
		o := gpu.Order{Wait: []gpu.Point{done.At(i)}, Signal: []gpu.Point{done.At(i + 1)}, Timing: timing}
		if err := dev.Queue(0).Fill(o, buf.All(), []byte{byte(i)}); err != nil {
			panic(err)
		}
		if err := done.Wait(context.Background(), i+1); err != nil {
			panic(err)
		}
		took, err := timing.Duration()
		fmt.Println(took.Round(time.Minute), err)
	}
	// Output:
	// 0s <nil>
	// 0s <nil>
	// 0s <nil>
}

// A tracer whose records the program looks at itself. Package runtime/trace writes files of them.
func ExampleTracer() {
	tracer, err := gpu.NewTracer(gpu.TracerOptions{})
	if err != nil {
		panic(err)
	}
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{Tracer: tracer})
	if err != nil {
		panic(err)
	}
	s := dev.Queue(0).NewStream()
	buf, err := dev.Alloc(gpu.DeviceMem, 4096)
	if err != nil {
		panic(err)
	}
	if err := s.Fill(buf.All(), []byte{1}); err != nil {
		panic(err)
	}
	if err := s.Wait(context.Background()); err != nil {
		panic(err)
	}
	dev.Close()
	records := make([]gpu.TraceRecord, 64)
	for _, r := range records[:tracer.Take(records)] {
		if r.Kind == gpu.TraceSubmission {
			inside := r.Issued <= r.Begun && r.Begun <= r.Ended && r.Ended <= r.Done
			fmt.Println(r.Op, r.Bytes, r.Timed == gpu.DeviceTime, inside)
		}
	}
	// Output: fill 4096 true true
}
