package main

import (
	"context"

	"github.com/puregpu/puregpu/nvtx"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var domain = nvtx.NewDomain("math")

// profiled runs an example in a range, which NVIDIA's profilers show above the work that the example submits, and marks
// the moment if it fails: nsys profile --trace=cuda,nvtx ./math
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
