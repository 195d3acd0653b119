package trace_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

// This program always writes a trace file for Perfetto. Programs that open drivers by package
// drivers do not need this code: run them with PUREGPU_TRACE=run.json.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "run.json")

	t, err := trace.Create(file, trace.Options{})
	if err != nil {
		panic(err)
	}
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{Tracer: t.Tracer()})
	if err != nil {
		panic(err)
	}
	buf, err := dev.Alloc(gpu.DeviceMem, 1<<20)
	if err != nil {
		panic(err)
	}
	done, err := gpu.NewSemaphore(0)
	if err != nil {
		panic(err)
	}
	err = dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{done.At(1)}}, gpu.Fill(buf.All(), []byte{0}).Label("clear the weights"))
	if err == nil {
		err = done.Wait(context.Background(), 1)
	}
	if err != nil {
		panic(err)
	}
	dev.Close()
	if err := t.Close(); err != nil {
		panic(err)
	}
	fmt.Println(t.Tracer().Stats().Submissions, "submission")
	// Output: 1 submission
}

// Each submission that takes longer than 100 ms is logged on one line. No file is written.
func ExampleStart() {
	t, err := trace.Start(io.Discard, trace.Options{Times: trace.NoTimes, Slow: 100 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	d := t.Driver(simdriver.New(simdriver.Config{})) // traces all devices opened with d
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		panic(err)
	}
	defer dev.Close()
	// …
	if err := t.Flush(); err != nil {
		panic(err)
	}
}

// A program reads the records of a tracer itself.
func ExampleTracer() {
	tracer, err := trace.NewTracer(trace.TracerOptions{})
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
	records := make([]trace.Record, 64)
	for _, r := range records[:tracer.Take(records)] {
		if r.Kind == trace.KindSubmission {
			inside := r.Issued <= r.Begun && r.Begun <= r.Ended && r.Ended <= r.Done
			fmt.Println(r.Op, r.Bytes, r.Timed == trace.DeviceTime, inside)
		}
	}
	// Output: fill 4096 true true
}
