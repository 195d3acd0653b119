package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// LaunchAttrs say how a launch runs, besides its shape: in clusters, cooperatively, before the one in front of it has ended, with a
// priority and a carve-out of shared memory of its own. The zero value is a launch as any other.
//
// What the device does not have is [driver.ErrUnsupported], from the call that launches or records, and what cannot be so is
// [ErrArgument]: a grid that is no multiple of its clusters, one that is cooperative and has more blocks than the device's processors
// hold at once ([Kernel.Occupancy]). What only the driver knows, such as clusters of blocks with much shared memory, or cooperative ones,
// fails the signals with the driver's error. A zero dimension of Cluster means one; three zeros mean no clusters, or those that the
// kernel was compiled with.
//
// A dependent launch begins early only if nothing but a kernel is right in front of it. Two launches of a queue have an event between
// them, which may keep them apart. Those of a [CommandBuffer] have none, in either mode; in a graph a launch begins early that comes
// after one other, and nothing else.
//
// Recorded launches that are cooperative, or in clusters, are part of the graph where [driver.Caps].NodeAttrs is set, and else run
// between the graphs of what is before and behind them. A launch that is part of a graph has the priority of the queue that executes it.
type LaunchAttrs = driver.LaunchAttrs

// A residency is how many blocks of a kernel, of a size, the device holds at once.
type residency struct {
	threads   int
	sharedMem uint32
	blocks    int
}

// holds returns how many blocks of the kernel the device holds at once: the largest grid of a cooperative launch. It reports false if
// the driver does not tell. It remembers the last answer, so that launches of one shape do not ask each time.
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

// checkAttrs checks the attributes of a launch whose grid is right otherwise, makes dimensions of clusters that are zero one, and the
// priority one that the device has.
func (g *Grid) checkAttrs(k *Kernel) error {
	a, d := &g.Attrs, k.exe.dev
	lacks := func(what, instead string) error {
		return fmt.Errorf("gpu: dispatch: kernel %s: %s has no %s: %w; %s", k.name, d.native.Info.Name, what, driver.ErrUnsupported, instead)
	}
	switch {
	case a.Cooperative && !d.native.Caps.Cooperative:
		return lacks("cooperative launches", "cut the kernel where its blocks wait for each other")
	case a.Cluster != [3]uint32{} && !d.native.Caps.Clusters:
		return lacks("clusters", "launch a kernel whose blocks do without each other's shared memory")
	case a.Dependent && !d.native.Caps.DependentLaunch:
		return lacks("dependent launches", "launch without")
	case a.Carveout > 100:
		return argument("dispatch", "a carve-out of %d percent for kernel %s", a.Carveout, k.name)
	}
	if a.Cluster != [3]uint32{} {
		if err := g.checkCluster(k); err != nil {
			return err
		}
	}
	a.Priority = d.native.Caps.ClampPriority(a.Priority)
	if a.Cooperative && !g.nothing() {
		threads := int(g.Threads[0]) * int(g.Threads[1]) * int(g.Threads[2])
		blocks := uint64(g.Blocks[0]) * uint64(g.Blocks[1]) * uint64(g.Blocks[2])
		// Where the driver does not answer, as that of a lost device, the launch finds out.
		if n, ok := k.holds(threads, g.SharedMem); ok && blocks > uint64(n) {
			return argument("dispatch", "a cooperative grid of %d blocks of %d threads and %d bytes of dynamic shared memory; of kernel %s %s runs %d at once",
				blocks, threads, g.SharedMem, k.name, d.native.Info.Name, n)
		}
	}
	return nil
}

// checkBegun checks the event of a launch that has one.
func (g *Grid) checkBegun(k *Kernel) error {
	e, d := g.Begun, k.exe.dev
	switch {
	case !d.native.Caps.LaunchEvents:
		return fmt.Errorf("gpu: dispatch: kernel %s: %s records no event when a launch has begun: %w; record one behind the launch", k.name, d.native.Info.Name, driver.ErrUnsupported)
	case e.dev == nil:
		return argument("dispatch", "an event for kernel %s that was neither made nor adopted", k.name)
	case e.dev != d:
		return argument("dispatch", "the event for kernel %s is of device %s, and the kernel of %s", k.name, e.dev.native.Info.Name, d.native.Info.Name)
	case e.from == forProcesses:
		return argument("dispatch", "the event for kernel %s is one of several processes, which no launch records: make one with NewEvent", k.name)
	}
	return nil
}

// checkCluster checks the clusters of a launch that has some.
func (g *Grid) checkCluster(k *Kernel) error {
	c, f := &g.Attrs.Cluster, &k.info
	blocks := uint64(1)
	for i := range c {
		c[i] = max(c[i], 1)
		if g.Blocks[i]%c[i] != 0 {
			return argument("dispatch", "a grid of %v blocks for kernel %s, which is no multiple of clusters of %v", g.Blocks, k.name, *c)
		}
		if own := f.Cluster[i]; own > 0 && uint64(own) != uint64(c[i]) {
			return argument("dispatch", "clusters of %v blocks; kernel %s was compiled for %v", *c, k.name, f.Cluster)
		}
		if blocks *= uint64(c[i]); f.MaxCluster > 0 && blocks > uint64(f.MaxCluster) {
			return argument("dispatch", "clusters of %v blocks; of kernel %s they can have %d", *c, k.name, f.MaxCluster)
		}
	}
	return nil
}
