package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// LaunchAttrs are optional attributes of a launch: clusters, a cooperative launch, a start before
// the previous launch has ended, a priority, and a carve-out for shared memory. With the zero value
// a launch has none of these attributes.
//
// If a launch has clusters, is cooperative or is dependent, and the device does not support that,
// the call that launches or records returns [ErrUnsupported]. For impossible values the call
// returns [ErrArgument]: for example for a grid that is not a multiple of its clusters, or for a
// cooperative grid with more blocks than the device runs at a time ([Kernel.Occupancy]). Only the
// driver knows some limits, for example for clusters of blocks with much shared memory, and for
// cooperative launches with clusters. If a launch exceeds such a limit, its signals fail with the
// driver's error. A zero dimension of Cluster means one. Three zeros mean no clusters, or the
// clusters with which the kernel was compiled.
//
// A dependent launch begins early only if a kernel is directly in front of it. [Queue.Submit]
// records an event behind each launch, which may prevent that. Launches of a [Stream] mostly have
// no event between them, and launches of a [CommandBuffer] have none, in any mode, unless a tracer
// records the times of commands. In a graph, a launch can begin early only if it comes after
// exactly one command, and this command is a launch.
//
// Recorded launches that are cooperative, or in clusters, are part of the graph if
// [driver.Caps].NodeAttrs is set. Otherwise they run between the graphs of the commands before and
// behind them. A launch in a graph has the priority of the queue that executes the graph.
type LaunchAttrs = driver.LaunchAttrs

// A residency says how many blocks of a kernel the device runs at a time.
type residency struct {
	threads   int    // in a block
	sharedMem uint32 // dynamic shared memory of a block, in bytes
	blocks    int
}

// holds returns how many blocks of the kernel the device runs at a time. ok is false if Occupancy
// returns an error. holds remembers the last answer, so repeated launches with the same threads and
// sharedMem query the driver only once.
func (k *Kernel) holds(threads int, sharedMem uint32) (blocks int, ok bool) {
	if r := k.resident.Load(); r != nil && r.threads == threads && r.sharedMem == sharedMem {
		return r.blocks, true
	}
	n, err := k.Occupancy(threads, int(sharedMem))
	if err != nil {
		return 0, false
	}
	r := &residency{threads, sharedMem, n * k.exe.dev.native.Info.Processors}
	k.resident.Store(r)
	return r.blocks, true
}

// checkAttrs checks the attributes of a launch whose grid is otherwise valid. It clamps the
// priority to the device's range. If Cluster is not zero, checkAttrs replaces its zero dimensions
// by one.
func (g *Grid) checkAttrs(k *Kernel) error {
	a, d := &g.Attrs, k.exe.dev
	lacks := func(what, instead string) error {
		return fmt.Errorf("gpu: launch: kernel %s: %s has no %s: %w; %s", k.name, d.native.Info.Name, what, driver.ErrUnsupported, instead)
	}
	switch {
	case a.Cooperative && !d.native.Caps.Cooperative:
		return lacks("cooperative launches", "cut the kernel where its blocks wait for each other")
	case a.Cluster != [3]uint32{} && !d.native.Caps.Clusters:
		return lacks("clusters", "launch a kernel whose blocks do without each other's shared memory")
	case a.Dependent && !d.native.Caps.DependentLaunch:
		return lacks("dependent launches", "launch without")
	case a.Carveout > 100:
		return errs.Argument("launch", "a carve-out of %d percent for kernel %s", a.Carveout, k.name)
	}
	if a.Cluster != [3]uint32{} {
		if err := g.checkCluster(k); err != nil {
			return err
		}
	}
	a.Priority = d.native.Caps.ClampPriority(a.Priority)
	if a.Cooperative && !g.nothing() {
		blocks := uint64(g.Blocks[0]) * uint64(g.Blocks[1]) * uint64(g.Blocks[2])
		// If the limit is not known, only the driver checks it.
		if n, ok := g.resident(k); ok && blocks > n {
			return errs.Argument("launch", "a cooperative grid of %d blocks of %d threads and %d bytes of dynamic shared memory; of kernel %s %s runs %d at once",
				blocks, g.threads(), g.SharedMem, k.name, d.native.Info.Name, n)
		}
	}
	return nil
}

// threads returns the number of threads in a block.
func (g *Grid) threads() int { return int(g.Threads[0]) * int(g.Threads[1]) * int(g.Threads[2]) }

// resident returns how many blocks the grid can have in a cooperative launch of the kernel. ok is
// false if the number is not known.
func (g *Grid) resident(k *Kernel) (blocks uint64, ok bool) {
	n, ok := k.holds(g.threads(), g.SharedMem)
	return uint64(n), ok
}

// checkCluster checks the clusters of a launch, and replaces zero dimensions of the clusters by
// one.
func (g *Grid) checkCluster(k *Kernel) error {
	c, f := &g.Attrs.Cluster, &k.info
	blocks := uint64(1)
	for i := range c {
		c[i] = max(c[i], 1)
		if g.Blocks[i]%c[i] != 0 {
			return errs.Argument("launch", "a grid of %v blocks for kernel %s, which is no multiple of clusters of %v", g.Blocks, k.name, *c)
		}
		if own := f.Cluster[i]; own > 0 && uint64(own) != uint64(c[i]) {
			return errs.Argument("launch", "clusters of %v blocks; kernel %s was compiled for %v", *c, k.name, f.Cluster)
		}
		if blocks *= uint64(c[i]); f.MaxCluster > 0 && blocks > uint64(f.MaxCluster) {
			return errs.Argument("launch", "clusters of %v blocks; of kernel %s they can have %d", *c, k.name, f.MaxCluster)
		}
	}
	return nil
}
