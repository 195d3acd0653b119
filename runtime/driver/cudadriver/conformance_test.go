package cudadriver

import (
	"testing"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

// TestGPUConformance runs the runtime's suite on the GPU.
func TestGPUConformance(t *testing.T) {
	keep := openGPU(t) // keeps the context through all tests, because making one takes 0.1 s
	lib := keep.lib
	_, noComms := nccl.Open(nccl.Options{})
	if noComms != nil {
		t.Logf("without communicators: %v", noComms)
	}
	gputest.Run(t, func(t *testing.T) gputest.Harness {
		d, err := New(lib)
		if err != nil {
			t.Fatal(err)
		}
		return gputest.Harness{
			Driver:  d,
			Kernels: true,
			Comms:   noComms == nil,
			Far:     func(t *testing.T) gputest.Far { return gputest.StartFar(t, "TestGPUSharingFar") },
			Current: func() any {
				c, err := lib.CtxGetCurrent()
				if err != nil {
					t.Fatal(err)
				}
				return c
			},
			SetCurrent: func(device int) {
				dev, err := lib.DeviceGet(int32(device))
				if err != nil {
					t.Fatal(err)
				}
				c, err := lib.DevicePrimaryCtxRetain(dev)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { lib.DevicePrimaryCtxRelease(dev) })
				if err := lib.CtxSetCurrent(c); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
