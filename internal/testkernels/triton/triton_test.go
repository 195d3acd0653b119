package triton

import (
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// adds implements only triton_add.
type adds struct{ NoTritonTwins }

// programElements is the number of elements that a block of triton_add adds: the kernel's BLOCK.
const programElements = 1024

func (adds) TritonAdd(g *simdriver.Grid, x, y, out driver.Ptr, n int32, _, _ driver.Ptr) error {
	if threads := g.Threads; threads != [3]uint32{128, 1, 1} {
		panic(threads)
	}
	n = min(n, int32(g.Blocks[0])*programElements)
	var views [3][]float32
	for i, p := range []driver.Ptr{x, y, out} {
		view, err := simdriver.View[float32](g, p, int(n))
		if err != nil {
			return err
		}
		views[i] = view
	}
	for i := range views[2] {
		views[2][i] = views[0][i] + views[1][i]
	}
	return nil
}

// TestTwin checks that launching a Triton kernel on a simulated GPU runs its twin, and that the
// error for a kernel without a twin names the kernel.
func TestTwin(t *testing.T) {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{Kernels: SimTriton(adds{})}), 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	code, err := LoadTriton(dev)
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	s := dev.Queue(0).NewStream()
	var mem [3]gpu.Slice[float32]
	for i := range mem {
		if mem[i], err = gpu.AllocSliceIn[float32](s, nil, 3); err != nil {
			t.Fatal(err)
		}
	}
	s.Do(mem[0].UploadCopy([]float32{1, 2, 3}))
	s.Do(mem[1].UploadCopy([]float32{10, 20, 30}))
	s.Do(code.TritonAdd.Launch([3]uint32{1, 1, 1}, mem[0], mem[1], mem[2], 3))
	got := make([]float32, 3)
	s.Do(mem[2].Download(got))
	if err := s.Wait(t.Context()); err != nil || !slices.Equal(got, []float32{11, 22, 33}) {
		t.Errorf("%v, %v", got, err)
	}
	s.Do(code.TritonSoftmax.Launch([3]uint32{1, 1, 1}, mem[0], mem[2], 3, 2))
	if err := s.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "triton_softmax") {
		t.Errorf("a kernel without a twin: %v", err)
	}
}
