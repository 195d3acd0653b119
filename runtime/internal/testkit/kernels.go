package testkit

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Kernels are simulated versions of the kernels in testdata/kernels.
var Kernels = map[string]simdriver.Kernel{
	"nothing": simdriver.MustKernel(func(*simdriver.Grid, uint64) {}),
	"saxpy": simdriver.MustKernel(func(g *simdriver.Grid, n uint64, a float32, x, y driver.Ptr) {
		n = min(n, g.Size())
		xs, err := simdriver.View[float32](g, x, int(n))
		ys, err2 := simdriver.View[float32](g, y, int(n))
		if errors.Join(err, err2) == nil {
			for i := range xs {
				ys[i] += a * xs[i]
			}
		}
	}),
	"index": simdriver.MustKernel(func(g *simdriver.Grid, n uint64, first, step uint32, out driver.Ptr) {
		n = min(n, g.Size())
		if w, err := simdriver.View[uint32](g, out, int(n)); err == nil {
			for i := range w {
				w[i] = uint32(i)*step + first
			}
		}
	}),
	"words": simdriver.MustKernel(func(g *simdriver.Grid, n uint64, dst, src driver.Ptr) {
		n = min(n, g.Size())
		to, err := simdriver.View[uint32](g, dst, int(n))
		from, err2 := simdriver.View[uint32](g, src, int(n))
		if errors.Join(err, err2) == nil {
			copy(to, from)
		}
	}),
	"values": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr, small uint8, vector [3]float32, pair kernelPair, wide complex128, flag uint8) {
		if w, err := simdriver.View[float64](g, out, 9); err == nil {
			copy(w, []float64{float64(small), float64(vector[0]), float64(vector[1]), float64(vector[2]), float64(pair.A), float64(pair.B),
				real(wide), imag(wide), float64(flag)})
		}
	}),
	"attrs": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr) {
		if w, err := simdriver.View[Launched](g, out, 1); err == nil {
			w[0] = Launched{w[0].Times + 1, g.Cluster, OneIf(g.Attrs.Cooperative), OneIf(g.Attrs.Dependent), int32(g.Attrs.Priority), int32(g.Attrs.Carveout)}
		}
	}),
	"stamp": simdriver.MustKernel(func(g *simdriver.Grid, dst, src driver.Ptr) {
		to, err := simdriver.View[uint32](g, dst, 2)
		from, err2 := simdriver.View[uint32](g, src, 2)
		if errors.Join(err, err2) == nil {
			a := g.Attrs
			a.Cluster = g.Cluster
			to[0], to[1] = from[0]+Stamp(a), from[1]
		}
	}),
	"tensor": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr, small uint8, m [16]uint64, last uint32) {
		if w, err := simdriver.View[uint64](g, out, 18); err == nil {
			w[0], w[17] = uint64(small), uint64(last)
			copy(w[1:], m[:])
		}
	}),
	"meet": simdriver.MustKernel(func(g *simdriver.Grid, rounds uint32, counter, out driver.Ptr) {
		n, err := simdriver.View[uint32](g, counter, 1)
		w, err2 := simdriver.View[uint32](g, out, int(g.Blocks[0]))
		if errors.Join(err, err2) == nil {
			n[0] += rounds * g.Blocks[0]
			for i := range w {
				w[i] = n[0]
			}
		}
	}),
	"ring": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr) {
		if w, err := simdriver.View[[2]uint32](g, out, int(g.Blocks[0])); err == nil {
			n := g.Cluster[0]
			for i := range g.Blocks[0] {
				w[i] = [2]uint32{1000 + i/n*n + (i+1)%n, n}
			}
		}
	}),
	"lead": simdriver.MustKernel(func(g *simdriver.Grid, flags, out driver.Ptr, value uint32) {
		f, err := simdriver.View[uint32](g, flags, 2)
		w, err2 := simdriver.View[uint32](g, out, int(g.Threads[0]))
		if errors.Join(err, err2) == nil {
			f[1] = f[0]
			for i := range w {
				w[i] = value + uint32(i)
			}
		}
	}),
	"follow": simdriver.MustKernel(func(g *simdriver.Grid, flags, out, in driver.Ptr) {
		f, err := simdriver.View[uint32](g, flags, 1)
		w, err2 := simdriver.View[uint32](g, out, int(g.Threads[0]))
		r, err3 := simdriver.View[uint32](g, in, int(g.Threads[0]))
		if errors.Join(err, err2, err3) == nil {
			f[0] = 1
			for i := range w {
				w[i] = r[i] + 1
			}
		}
	}),
	"params": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr, all [4094]uint64, last uint32) {
		if w, err := simdriver.View[uint64](g, out, 3); err == nil {
			copy(w, []uint64{all[0], all[4093], uint64(last)})
		}
	}),
	"most": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr, all [4093]uint64, last uint32) {
		if w, err := simdriver.View[uint64](g, out, 4094); err == nil {
			w[copy(w, all[:])] = uint64(last)
		}
	}),
	"ids": simdriver.MustKernel(func(g *simdriver.Grid, out driver.Ptr) {
		blocks := g.Blocks[0] * g.Blocks[1] * g.Blocks[2]
		w, err := simdriver.View[[4]uint32](g, out, int(blocks))
		if err != nil {
			return
		}
		for t := range g.All() {
			if t.Thread == ([3]uint32{}) {
				b := t.Block
				w[(b[2]*g.Blocks[1]+b[1])*g.Blocks[0]+b[0]] = [4]uint32{b[0], b[1], b[2], g.Threads[0] * g.Threads[1] * g.Threads[2]}
			}
		}
	}),
}

// A Launched is the data that the kernel "attrs" writes about its launches.
type Launched struct {
	Times                  uint32
	Cluster                [3]uint32
	Cooperative, Dependent uint32
	Priority, Carveout     int32
}

// Stamp is the number that the kernel "stamp" adds for the attributes of its launch. Stamp does not
// include the priority, because graphs do not support one.
func Stamp(a gpu.LaunchAttrs) uint32 {
	return 1 + a.Cluster[0] + a.Cluster[1]<<4 + a.Cluster[2]<<8 + OneIf(a.Cooperative)<<12 + OneIf(a.Dependent)<<13 +
		uint32(a.Carveout)<<16
}

// OneIf returns 1 for true and 0 for false.
func OneIf(set bool) uint32 {
	if set {
		return 1
	}
	return 0
}

// A kernelPair is a struct argument of the kernel "values".
type kernelPair struct {
	A int8
	B int64
}

// Launches are attributes of launches, and the cluster sizes that result from them.
var Launches = []struct {
	Attrs   gpu.LaunchAttrs
	Cluster [3]uint32
}{
	{Attrs: gpu.LaunchAttrs{Cooperative: true}},
	{Attrs: gpu.LaunchAttrs{Dependent: true}},
	{Attrs: gpu.LaunchAttrs{Cluster: [3]uint32{2, 2, 1}}, Cluster: [3]uint32{2, 2, 1}},
	{Attrs: gpu.LaunchAttrs{Cluster: [3]uint32{4}}, Cluster: [3]uint32{4, 1, 1}},
	{Attrs: gpu.LaunchAttrs{Priority: -2, Carveout: 100}},
	{Attrs: gpu.LaunchAttrs{Priority: -100, Carveout: -1}},
	{Attrs: gpu.LaunchAttrs{Priority: 100}},
	{Attrs: gpu.LaunchAttrs{Cluster: [3]uint32{0, 0, 2}, Cooperative: true, Dependent: true, Priority: -1, Carveout: 50}, Cluster: [3]uint32{1, 1, 2}},
}

// CanLaunch reports whether a device supports launches with these attributes.
func CanLaunch(caps driver.Caps, a gpu.LaunchAttrs) bool {
	return (!a.Cooperative || caps.Cooperative) && (!a.Dependent || caps.DependentLaunch) && (a.Cluster == [3]uint32{} || caps.Clusters)
}
