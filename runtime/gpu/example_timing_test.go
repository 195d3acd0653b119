package gpu_test

import (
	"context"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A Timing measures an operation's time on the device, without a trace.
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
	s := dev.Queue(0).NewStream()
	clear := gpu.Fill(buf.All(), []byte{0}).Timed(timing)
	for range 3 {
		if err := s.Do(clear); err != nil {
			panic(err)
		}
		if err := s.Wait(context.Background()); err != nil {
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
