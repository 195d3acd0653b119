package gpu_test

import (
	"context"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// The first launch has clusters of four blocks. The second is cooperative, with as many blocks as
// the device runs at a time. The third has one block more, and is refused.
func ExampleLaunchAttrs() {
	kernels := map[string]simdriver.Kernel{"blocks": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr) {
		if w, err := simdriver.View[[2]uint32](g, out, 1); err == nil {
			w[0] = [2]uint32{g.Blocks[0], g.Cluster[0]}
		}
	})}
	dev, err := gpu.Open(simdriver.New(simdriver.Config{Kernels: kernels}), 0, gpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	code, err := dev.Load(simdriver.Image("blocks"))
	check(err)
	kernel, err := code.Kernel("blocks")
	check(err)
	type args struct{ Out gpu.Slice[uint32] }
	blocks, err := gpu.Typed[args](kernel)
	check(err)
	s := dev.Queue(0).NewStream()
	out, err := gpu.AllocSlice[uint32](dev, gpu.DeviceMem, 2)
	check(err)

	clusters := gpu.GridFor(1024, 64)
	clusters.Attrs.Cluster = [3]uint32{4}
	held, err := kernel.Occupancy(256, 0)
	check(err)
	together := gpu.Grid{Blocks: [3]uint32{uint32(held * dev.Info().Processors), 1, 1}, Threads: [3]uint32{256}}
	together.Attrs.Cooperative = true
	for _, grid := range []gpu.Grid{clusters, together} {
		got := make([]uint32, 2)
		check(s.Do(blocks.Launch(grid, args{out}), out.Download(got)), s.Wait(context.Background()))
		fmt.Printf("%d blocks in clusters of %d\n", got[0], got[1])
	}
	together.Blocks[0]++
	fmt.Println(s.Do(blocks.Launch(together, args{out})) != nil, out.Close())
	// Output:
	// 16 blocks in clusters of 4
	// 128 blocks in clusters of 1
	// true <nil>
}
