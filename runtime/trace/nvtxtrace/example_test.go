package nvtxtrace_test

import (
	"context"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace/nvtxtrace"
)

// If a profiler such as Nsight Systems is attached, it shows each labelled operation as a range.
// Otherwise the device has no tracer. A program that opens its driver by package drivers need not
// set the tracer.
func ExampleTracer() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{Tracer: nvtxtrace.Tracer{}})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 4)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Close()
	got, stream := make([]float32, 4), dev.Queue(0).NewStream()
	if err := stream.Do(x.Fill(1).Label("ones"), x.Download(got)); err != nil {
		log.Fatal(err)
	}
	if err := stream.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	// Output: [1 1 1 1]
}
