package health_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/health"
)

// A simulated GPU falls off the bus. The watcher reports it to the program, and the program's work
// fails with an error that names the XID.
func Example() {
	sim := simdriver.New(simdriver.Config{})
	dev, err := gpu.Open(sim, 0, gpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 64)
	if err != nil {
		log.Fatal(err)
	}

	var source health.Fake // for NVIDIA's GPUs: nvmlhealth.Open
	w, err := health.Watch(&source, []driver.Info{dev.Info()}, health.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	events := make(chan health.Event, 16)
	w.Notify(events)

	source.Report(0, 79)
	sim.LoseDevice(0, health.XID(79))

	fmt.Println(<-events)
	stream := dev.Queue(0).NewStream()
	stream.Fill(mem.All(), []byte{1})
	err = stream.Wait(context.Background())
	fmt.Println(errors.Is(err, driver.ErrLost))
	if xid, ok := errors.AsType[health.XID](err); ok {
		fmt.Println(xid)
	}

	// Output:
	// device 0 (Simulated GPU 0): XID 79: GPU has fallen off the bus
	// true
	// XID 79: GPU has fallen off the bus
}
