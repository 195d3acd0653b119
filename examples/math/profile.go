package main

import (
	"context"

	"github.com/puregpu/puregpu/nvtx"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var domain = nvtx.NewDomain("math")

// profiled runs an example in an NVTX range, and adds a mark if the example fails. NVIDIA's
// profilers show the range above the example's work: nsys profile --trace=cuda,nvtx ./math
func profiled(ctx context.Context, dev *gpu.Device, e example) (string, error) {
	defer domain.Push(e.name).Pop()
	text, err := e.run(ctx, dev)
	if err != nil {
		domain.Mark(err.Error())
	} else if nvtx.Enabled() {
		text += " (in the profile)"
	}
	return text, err
}
