package simdriver

import (
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

const (
	driverName    = "sim"
	defaultMemory = 1 << 30
	maxDevices    = 1024
	maxMemory     = 1 << 46 // each device has 2⁴⁸ addresses
)

// A Config configures a driver. The zero Config is one device with 1 GiB and CUDA's features. The
// device executes in the background, without delays, and has no kernels.
type Config struct {
	// Devices is the number of devices, at most 1024. 0 means one; a negative number means none.
	Devices int

	// Memory is each device's memory in bytes; 0 is 1 GiB. An allocation takes memory of the
	// process when the allocation is first touched.
	Memory uint64

	// HostMemory limits the host and managed memory of all devices together, in bytes; 0 is 4 GiB.
	HostMemory uint64

	// Caps are the features of the devices; nil is CUDACaps with NodeTimes.
	Caps *driver.Caps

	// Apart means that the devices have no links. EnablePeer then fails with
	// [driver.ErrUnsupported], and so do AccessPool for pools of device memory, and imports of
	// memory and pools of another device. Copies between devices still work.
	Apart bool

	// Links, if not nil, replaces Apart. It returns the result of Link from one device to another,
	// by their indexes. If the kind is [driver.LinkNone], the calls fail that fail with Apart.
	// Links may be called concurrently. If Links is nil and Apart is not set, the kind of each link
	// is unknown, the rank is 0, and all access works.
	Links func(from, to int) driver.Link

	// Machine is the machine on which the driver is a process. Processes of one Machine can open
	// each other's exports. nil means that the driver has a machine of its own.
	Machine *Machine

	// StaysLost means that a lost device stays lost, as in a process with CUDA. Without StaysLost a
	// lost device works again after its last Close, as after a restart of the process.
	StaysLost bool

	// LazyComms makes ranks connect when they first need to, as libraries do: all ranks for
	// collectives, and each sender with each receiver. The first Collect that uses a connection
	// waits until the connection's other ranks have called Collect too.
	LazyComms bool

	// LingerComms makes DestroyComm wait until the other ranks call DestroyComm, unless the
	// communicator was aborted or has failed.
	LingerComms bool

	// CommMemory is the number of bytes of device memory that each rank takes from the time when
	// CommReady returns true. The memory is freed while the communicator is suspended.
	CommMemory uint64

	// Kernels are the kernels that modules can have, by name. The name of a C++ kernel that is not
	// extern "C", such as an instance of a template, is the expression in Source.Names:
	// "scale<float>". Spaces in names are ignored. Only New reads the map.
	Kernels map[string]Kernel

	// Strict refuses calls that need a bound thread on threads where the device is not current.
	// Strict does nothing except on Linux and Windows, where threads can be distinguished.
	Strict bool

	// Deterministic executes operations only in Driver.Step and Driver.Run, in an order that
	// follows from Seed and from the calls made. Latency then does nothing.
	Deterministic bool
	Seed          uint64

	// Latency sets the latencies that Driver.SetLatency sets.
	Latency map[Op]time.Duration

	// Faults are injected as by Driver.Inject, in this order.
	Faults []Fault

	// OnExecute, if not nil, is called after each operation of a stream, on the goroutine that
	// executed the operation. Events behind the operation complete only after the call. OnExecute
	// is also called after each node of a graph, except empty, child and conditional nodes. It must
	// be safe for concurrent calls. It may submit work, but must not call Step or Run, or destroy
	// streams or events.
	OnExecute func(Executed)
}

// Executed describes an operation that a stream executed.
type Executed struct {
	Device int
	Stream driver.Stream
	Seq    uint64 // number of operations that the stream has executed, including this one
	Op     Op
	Kernel string // the kernel's name, if Op is OpLaunch

	Priority int         // priority of the stream
	Node     driver.Node // the graph's node, if the operation is a node's; Seq is then the number of the graph's launch
	Err      error       // the error with which this operation lost the device, or nil
}

// CUDACaps returns the features of NVIDIA's devices.
func CUDACaps() driver.Caps {
	return driver.Caps{
		RerecordEvents: true, Managed: true, HostRegister: true, KernelParams: true,
		Pools: true, HostPools: true, Graphs: true, Conditionals: true, Timers: true, Peers: true, Comms: true, Prefetch: true, ReadOnlyRegister: true,
		ResizeNodes: true, ManagedPools: true, Native: true, Capture: true, MemInfo: true, Links: true, Occupancy: true, PriorityRange: [2]int{0, -5},
		Cooperative: true, Clusters: true, DependentLaunch: true, LaunchEvents: true, NodeAttrs: true,
		IPCMem: true, IPCEvents: true, MemSharing: true, VirtualMem: true, PoolSharing: true, Adopt: true, Values: true, Compile: true,
	}
}

// HIPCaps returns features of AMD's devices with ROCm 6.1 or newer. An event must not be recorded
// again before its last record and the waits for that record are complete. The devices have no
// memory pools, because package hipdriver uses HIP's pools only on request. For hipdriver with
// HIP's pools, from ROCm 6.2 on, set Pools and PoolsByStream too. For devices with cooperative
// launches set Cooperative.
func HIPCaps() driver.Caps {
	return driver.Caps{Managed: true, HostRegister: true, Graphs: true, Timers: true, Peers: true, Comms: true, Prefetch: true,
		Native: true, Capture: true, Adopt: true, MemInfo: true, Links: true, Occupancy: true, IPCMem: true, Compile: true, PriorityRange: [2]int{1, -1}}
}
