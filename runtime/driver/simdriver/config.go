package simdriver

import (
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

const (
	driverName    = "sim"
	defaultMemory = 1 << 30
	maxDevices    = 1024
	maxMemory     = 1 << 46 // a device's addresses are 2⁴⁸
)

// A Config says what to simulate. The zero Config is one device with 1 GiB and what CUDA can do, which executes in the
// background, without delays, and has no kernels.
type Config struct {
	// Devices is how many there are, at most 1024. 0 is one; a negative number is none.
	Devices int

	// Memory is each device's memory in bytes; 0 is 1 GiB. An allocation takes memory of the process when it is first
	// touched.
	Memory uint64

	// HostMemory bounds host and managed memory of all devices together, in bytes; 0 is 4 GiB.
	HostMemory uint64

	// Caps says what the devices can do; nil is CUDACaps.
	Caps *driver.Caps

	// Apart says that the hardware has no way from one device to another: EnablePeer fails with [driver.ErrUnsupported],
	// and so does AccessPool for pools of device memory. Copies go between devices all the same.
	Apart bool

	// Links, if not nil, returns what Link says of the way from one device to another, by their indexes, in place of Apart: where
	// it is of kind [driver.LinkNone], EnablePeer and AccessPool fail. It may be called concurrently. If it is nil, and Apart not set,
	// the kind is unknown, the rank 0, and everything works.
	Links func(from, to int) driver.Link

	// Machine is what the drivers of several processes stand on: what one of them exports the others open. nil is one of its own.
	Machine *Machine

	// StaysLost says that a device that was lost stays so for good, as one of CUDA's does in the process. Otherwise one that was closed
	// as often as it was opened is well again when it is opened anew, as after a restart of the process.
	StaysLost bool

	// LazyComms lets ranks connect when they first need to, as libraries do: the first Collect that needs another rank, all of
	// them or one to send to or receive from, does not return before that one has called its own.
	LazyComms bool

	// LingerComms lets DestroyComm wait for the other ranks to destroy theirs, unless the communicator was aborted.
	LingerComms bool

	// CommMemory is how many bytes of its device each rank of a communicator takes once it has been made, which it gives back while it is
	// suspended. 0 is none.
	CommMemory uint64

	// Kernels are the kernels that modules can have, by name. One of C++ that is not extern "C", such as an instance of a template, has
	// the expression for a name by which sources that are compiled ask for it: "scale<float>". Space in names means nothing. The map is read by New alone.
	Kernels map[string]Kernel

	// Strict refuses creating calls from threads on which the device is not current. Only Linux and Windows can tell threads apart; elsewhere Strict does nothing.
	Strict bool

	// Deterministic executes nothing by itself, but only in Driver.Step and Driver.Run, in an order that follows from
	// Seed and from the calls made. Latency does nothing then.
	Deterministic bool
	Seed          uint64

	// Latency is what Driver.SetLatency would set.
	Latency map[Op]time.Duration

	// Faults are what Driver.Inject would add, in this order.
	Faults []Fault

	// OnExecute, if not nil, is called after each operation that a stream executed, before its events complete, on the
	// goroutine that executed it, and likewise after each node of a graph that does something. It must be safe to be
	// called concurrently, may submit, and must not call Step or Run, nor destroy streams or events.
	OnExecute func(Executed)
}

// Executed says that a stream executed an operation.
type Executed struct {
	Device int
	Stream driver.Stream
	Seq    uint64 // how many operations of the stream have executed, with this one
	Op     Op
	Kernel string // the kernel's name, if Op is OpLaunch

	Priority int         // of the stream
	Node     driver.Node // the graph's node that it was, if it was one; Seq is then that of the graph's launch
	Err      error       // what the device was lost with, if this operation lost it
}

// CUDACaps returns what NVIDIA's devices can do.
func CUDACaps() driver.Caps {
	return driver.Caps{
		RerecordEvents: true, Managed: true, HostRegister: true, KernelParams: true,
		Pools: true, HostPools: true, Graphs: true, Timers: true, Peers: true, Comms: true, Prefetch: true, ReadOnlyRegister: true,
		ResizeNodes: true, ManagedPools: true, Native: true, Capture: true, MemInfo: true, Links: true, Occupancy: true, PriorityRange: [2]int{0, -5},
		Cooperative: true, Clusters: true, DependentLaunch: true, LaunchEvents: true, NodeAttrs: true,
		IPCMem: true, IPCEvents: true, MemSharing: true, PoolSharing: true, Adopt: true, Values: true, Compile: true,
	}
}

// HIPCaps returns what may be relied on with AMD's devices, whatever the release: an event must not be recorded anew before its
// last record, and the waits for it, are over. They have no memory pools, since package hipdriver uses HIP's only where it is asked
// to. With Cooperative, Pools and PoolsByStream set besides, they are what that package finds from ROCm 6.2 on, if HIP's pools are
// asked for.
func HIPCaps() driver.Caps {
	return driver.Caps{Managed: true, HostRegister: true, Graphs: true, Timers: true, Peers: true, Comms: true, Prefetch: true,
		Native: true, Capture: true, Adopt: true, MemInfo: true, Links: true, Occupancy: true, IPCMem: true, Compile: true, PriorityRange: [2]int{1, -1}}
}
