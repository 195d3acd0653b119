package cuptitrace_test

import (
	"context"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
	_ "github.com/puregpu/puregpu/runtime/trace/cuptitrace"
)

// A program that imports this package has times of the commands of CUDA graphs. This program runs
// on the simulated GPU, which times the commands itself.
func Example() {
	tracer, err := trace.NewTracer(trace.TracerOptions{Times: trace.CommandTimes})
	if err != nil {
		log.Fatal(err)
	}
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{Tracer: tracer})
	if err != nil {
		log.Fatal(err)
	}
	mem, err := dev.Alloc(gpu.DeviceMem, 1024)
	if err != nil {
		log.Fatal(err)
	}
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode, InOrder: true})
	if err != nil {
		log.Fatal(err)
	}
	for i := range uint64(3) {
		if _, err := c.Add(gpu.Fill(mem.Range(256*i, 256), []byte{1}).Label(fmt.Sprint("layer ", i))); err != nil {
			log.Fatal(err)
		}
	}
	if err := c.End(); err != nil {
		log.Fatal(err)
	}
	s := dev.Queue(0).NewStream()
	s.Do(gpu.Execute(c))
	if err := s.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	if err := dev.Close(); err != nil { // now all times are known
		log.Fatal(err)
	}
	records := make([]trace.Record, 100)
	for _, r := range records[:tracer.Take(records)] {
		if r.Kind == trace.KindNode {
			fmt.Println(r.Op, r.Label, r.Ended >= r.Begun)
		}
	}
	// Output:
	// fill layer 0 true
	// fill layer 1 true
	// fill layer 2 true
}
