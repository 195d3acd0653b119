package gpu_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestNilAndZeroReceivers calls the methods of nil and zero values. No method may panic, and a
// method that returns an error must say what is wrong (B143).
func TestNilAndZeroReceivers(t *testing.T) {
	testkit.Receivers(t,
		testkit.Receiver{Nil: (*gpu.Device)(nil)},
		testkit.Receiver{Nil: (*gpu.Queue)(nil)},
		testkit.Receiver{Nil: (*gpu.Stream)(nil)},
		testkit.Receiver{Nil: (*gpu.Buffer)(nil)},
		testkit.Receiver{Nil: (*gpu.Pool)(nil)},
		testkit.Receiver{Nil: (*gpu.CommandBuffer)(nil)},
		testkit.Receiver{Nil: (*gpu.Module)(nil)},
		testkit.Receiver{Nil: (*gpu.Kernel)(nil)},
		testkit.Receiver{Nil: (*gpu.Timing)(nil)},
		testkit.Receiver{Nil: (*gpu.Slice[float32])(nil)},
		testkit.Receiver{Nil: (*gpu.TypedKernel[typedArgs])(nil)},
		testkit.Receiver{Nil: (*gpu.Semaphore)(nil), ZeroWorks: true},
		// A nil or zero Group has no devices, and its methods work.
		testkit.Receiver{Nil: (*gpu.Group)(nil), NilWorks: true, ZeroWorks: true},
		testkit.Receiver{Nil: (*gpu.Op)(nil), ZeroWorks: true},
	)
}
