package nvtx_test

import (
	"fmt"

	"github.com/puregpu/puregpu/nvtx"
)

var (
	training = nvtx.NewDomain("training")
	step     = training.Register("step")
)

// A profiler shows the steps of a training loop and, inside each, its forward and backward pass.
func Example() {
	for i := range 3 {
		r := nvtx.Event{Domain: training, String: step, Payload: nvtx.Int(int64(i))}.Start()
		pass("forward")
		pass("backward")
		r.End()
	}
	fmt.Println("done")
	// Output: done
}

func pass(name string) {
	defer training.Push(name).Pop()
	// Submit the work of the pass to the GPU.
}

// With Enabled a program formats a message only if there is a tool.
func ExampleEnabled() {
	batch := []string{"a", "b"}
	if nvtx.Enabled() {
		defer nvtx.Start(fmt.Sprintf("batch of %d: %q", len(batch), batch)).End()
	}
	fmt.Println(len(batch))
	// Output: 2
}
