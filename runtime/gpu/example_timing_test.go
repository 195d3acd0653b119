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
