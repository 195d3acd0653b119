package driver

import (
	"fmt"
	"unsafe"
)

// A Launch is one launch of a kernel. A zero dimension of Grid or Block means one: drivers launch what [Launch.Dims] returns.
type Launch struct {
	Function  Function
	Grid      [3]uint32        // blocks
	Block     [3]uint32        // threads
	SharedMem uint32           // dynamic, bytes; at most Info.SharedOptIn less FuncInfo.SharedMem
	Args      []unsafe.Pointer // one for each parameter, none nil: the API reads as many as the kernel has
	Attrs     LaunchAttrs

	// Begun is an event that the launch records, in its stream, as if between the beginning of all its blocks and all that they do later:
	// what waits for it comes after they have begun, as far as the device can tell that, and at the latest after they have ended. Nothing is
	// said of what they have written. It is one of [Device.NewEvent]. None is zero; without [Caps.LaunchEvents], and in a node of a graph, any
	// other is [ErrUnsupported].
	Begun Event
}

// LaunchAttrs say how a launch runs, besides its shape. The zero value is a launch as any other. Cluster, Cooperative and Dependent
// are what a kernel's code relies on: without the bit for it in [Caps] each is [ErrUnsupported]. Priority and Carveout are wishes,
// and do nothing where the API has no such thing.
type LaunchAttrs struct {
	// Cluster is how many blocks along each dimension make a cluster, whose blocks run at once, wait for each other and reach each
	// other's shared memory. The grid is a multiple of it in each dimension, and it must be no other than the kernel's own, if the
	// kernel was compiled with one. Three zeros are the kernel's own or, if it has none, no clusters. Else a zero dimension means one.
	Cluster [3]uint32

	// Cooperative has all blocks of the grid run at once, so that they can wait for each other. A grid of more blocks than the
	// device's processors hold together ([Occupancy]) is refused.
	Cooperative bool

	// Dependent lets the kernel begin before the one in front of it in the stream, or in the graph, has ended: as soon as all blocks
	// of that one have executed griddepcontrol.launch_dependents or have ended. The kernel executes griddepcontrol.wait before it
	// touches what work in front of it touches, and before it ends: until then nothing in front of it need be over. It is a
	// permission, of which the API need make no use. CUDA calls it programmatic dependent launch.
	Dependent bool

	// Priority is the launch's own, as of [Caps.PriorityRange]; 0 is that of the stream. In a graph it does nothing.
	Priority int

	// Carveout is how much of the memory that a processor has for its cache and for shared memory is to be shared memory, in percent;
	// 0 leaves it to the API, and a negative one is as little as possible.
	Carveout int
}

// Dims returns the blocks of the grid and the threads of a block, with dimensions that are zero as one.
func (l *Launch) Dims() (grid, block [3]uint32) { return ones(l.Grid), ones(l.Block) }

// ClusterDims returns the blocks of a cluster, with dimensions that are zero as one; or zeros if there is no Cluster.
func (a *LaunchAttrs) ClusterDims() [3]uint32 {
	if a.Cluster == [3]uint32{} {
		return a.Cluster
	}
	return ones(a.Cluster)
}

// ones returns dimensions with one for those that are zero.
func ones(n [3]uint32) [3]uint32 { return [3]uint32{max(n[0], 1), max(n[1], 1), max(n[2], 1)} }

// Blocks returns how many blocks a launch has.
func (l *Launch) Blocks() uint64 {
	grid, _ := l.Dims()
	return uint64(grid[0]) * uint64(grid[1]) * uint64(grid[2])
}

// String says what is launched and how, for errors.
func (l *Launch) String() string {
	s := fmt.Sprintf("function %#x, grid %v, block %v, %d bytes of dynamic shared memory", uintptr(l.Function), l.Grid, l.Block, l.SharedMem)
	a := &l.Attrs
	if a.Cluster != [3]uint32{} {
		s += fmt.Sprintf(", clusters of %v blocks", a.Cluster)
	}
	if a.Cooperative {
		s += ", cooperative"
	}
	if a.Dependent {
		s += ", dependent"
	}
	if a.Priority != 0 {
		s += fmt.Sprintf(", priority %d", a.Priority)
	}
	if a.Carveout != 0 {
		s += fmt.Sprintf(", carve-out of %d percent", max(a.Carveout, 0))
	}
	if l.Begun != 0 {
		s += fmt.Sprintf(", event %#x when it has begun", uintptr(l.Begun))
	}
	return s
}
