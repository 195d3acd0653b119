package interop_test

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// A process reads memory that another process writes. An event orders the two devices, so no host
// waits for the write. Two drivers stand for the processes. Real processes send each other the
// handles, encoded by MarshalBinary.
func ExampleEvent() {
	ctx, machine := context.Background(), new(simdriver.Machine)
	writer, err := gpu.Open(simdriver.New(simdriver.Config{Machine: machine}), 0, gpu.Options{})
	check(err)
	defer writer.Close()
	reader, err := gpu.Open(simdriver.New(simdriver.Config{Machine: machine}), 0, gpu.Options{})
	check(err)
	defer reader.Close() // closed before the writer, which owns the memory

	mem, err := writer.Alloc(gpu.DeviceMem, 4)
	check(err)
	written, err := interop.NewSharedEvent(writer)
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err)
	check(
		writer.Queue(0).Submit(gpu.Order{Signal: at(s, 1)}, gpu.Fill(mem.All(), []byte{1, 2, 3, 4})),
		writer.Queue(0).Submit(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, interop.RecordEvent(written)),
		s.WaitIssued(ctx, 2), // now the reader may wait for the event
	)
	memory, err := interop.ExportMemory(mem)
	check(err)
	event, err := written.Export()
	check(err)

	far, err := interop.ImportMemory(reader, memory, nil)
	check(err)
	ready, err := interop.ImportEvent(reader, event, nil)
	check(err)
	t, got := reader.Queue(0).NewStream(), make([]byte, 4)
	check(t.Do(interop.WaitEvent(ready), gpu.Download(got, far.All())), t.Wait(ctx))
	fmt.Println(got)
	_, err = interop.ImportMemory(writer, memory, nil)
	fmt.Println(err)
	// Output:
	// [1 2 3 4]
	// gpu: import shared memory: 4 bytes on Simulated GPU 0: sim: open memory: 4 bytes at 0x4000000000010000: exported by this process: only other processes can open it
}
