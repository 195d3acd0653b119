package driver

import (
	"fmt"
	"unsafe"
)

// A Launch is a launch of a kernel. A zero dimension of Grid or Block means one: drivers launch the
// result of [Launch.Dims].
type Launch struct {
	Function  Function
	Grid      [3]uint32        // number of blocks in each dimension
	Block     [3]uint32        // number of threads in each dimension
	SharedMem uint32           // bytes of dynamic shared memory; at most Info.SharedOptIn less FuncInfo.SharedMem
	Args      []unsafe.Pointer // pointers to the arguments: one for each parameter of the kernel, none nil
	Attrs     LaunchAttrs

	// Begun is an event that the launch records in its stream when all blocks of the launch have
	// begun, as far as the device can tell. The event is recorded at the latest when the blocks
	// have ended. The event says nothing about the blocks' writes. Begun is made by
	// [Device.NewEvent], or zero. Without [Caps.LaunchEvents], and in a node of a graph, an event
	// is [ErrUnsupported].
	Begun Event
}

// LaunchAttrs say how a launch runs. The zero value is a usual launch. A kernel's code relies on
// Cluster, Cooperative and Dependent: each is [ErrUnsupported] unless [Caps] has it. For Cluster
// and Cooperative in a node of a graph, [Caps.NodeAttrs] must be set too. Priority and Carveout are
// hints, which drivers ignore if the API lacks them.
type LaunchAttrs struct {
	// Cluster is the number of blocks of a cluster along each dimension. Blocks of a cluster run at
	// once, can wait for each other and can use each other's shared memory. The dimensions must
	// divide the grid's dimensions. If the kernel was compiled with a cluster size, Cluster must
	// equal that size. Three zeros mean the size that the kernel was compiled with, or no clusters.
	// Otherwise a zero dimension means one.
	Cluster [3]uint32

	// Cooperative makes all blocks of the grid run at once, so that they can wait for each other.
	// The launch is refused if the device cannot hold all blocks at once ([Occupancy]).
	Cooperative bool

	// Dependent lets the kernel begin before the previous kernel in the stream, or in the graph,
	// has ended: as soon as all blocks of the previous kernel have executed
	// griddepcontrol.launch_dependents or have ended. The kernel must execute griddepcontrol.wait
	// before it uses memory of earlier work, and before it ends. Before that instruction returns,
	// earlier work may be in flight. The API may ignore Dependent. CUDA calls it programmatic
	// dependent launch.
	Dependent bool

	// Priority is the priority of this launch, in [Caps.PriorityRange]. 0 means the stream's
	// priority. Nodes of a graph ignore Priority.
	Priority int

	// A processor divides one memory between cache and shared memory. Carveout is the percentage
	// for shared memory. 0 lets the API choose. A negative number asks for as little shared memory
	// as possible.
	Carveout int
}

// Dims returns the number of blocks and the number of threads in a block, in each dimension. A
// dimension of zero counts as one.
func (l *Launch) Dims() (grid, block [3]uint32) { return ones(l.Grid), ones(l.Block) }

// ClusterDims returns the number of blocks in a cluster, in each dimension. A dimension of zero
// counts as one. If Cluster is all zeros, ClusterDims returns three zeros.
func (a *LaunchAttrs) ClusterDims() [3]uint32 {
	if a.Cluster == [3]uint32{} {
		return a.Cluster
	}
	return ones(a.Cluster)
}

// ones returns dimensions with ones for zeros.
func ones(n [3]uint32) [3]uint32 { return [3]uint32{max(n[0], 1), max(n[1], 1), max(n[2], 1)} }

// Blocks returns the number of blocks in the grid.
func (l *Launch) Blocks() uint64 {
	grid, _ := l.Dims()
	return uint64(grid[0]) * uint64(grid[1]) * uint64(grid[2])
}

// String describes the launch for errors.
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
		s += fmt.Sprintf(", event %#x at its beginning", uintptr(l.Begun))
	}
	return s
}
