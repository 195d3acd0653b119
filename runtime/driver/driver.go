// Package driver is the interface that the runtime needs from a GPU API: devices, streams, events,
// memory, kernels and copies. It leaves out everything that can be built from these. Package
// runtime/gpu knows GPUs only through package driver.
//
// Methods are thin: most of them make one native call. [Caps] says which features a device has. A
// [Device] implements the optional interfaces that its Caps announce.
//
// # Threads
//
// Most methods are submitting or creating methods, and the last sentence of their documentation
// says which. Any thread may call a submitting method. A creating method needs a bound thread.
//
// Submitting methods may be called on any OS thread, at any time and without preparation, whatever
// device is current there. [Device] has these: [Device.Record], [Device.Query],
// [Device.StreamWait], [Device.Fill], [Device.FillStrided], [Device.Copy], [Device.Upload],
// [Device.Download] and [Device.Launch]. The optional interfaces have these: [Pools].AllocAsync and
// FreeAsync, [Graphs].SetNode, SetNodes and LaunchGraph, [Timers].Elapsed, [Peers].CopyPeer,
// [Prefetcher].Prefetch, [Adopter].Capturing, and both methods of [Values]. If an API needs a
// current device, the driver makes it current around the call, on a locked thread, and restores the
// previous one.
//
// A thread is bound to a device if a goroutine is locked to the thread, and the thread's last
// [Device.Bind] was for this device. The runtime has such threads.
//
// No method of a Device may be called after Close.
package driver

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// A Driver is a GPU API with its devices. Its methods may be called concurrently.
type Driver interface {
	// Name is the driver's name: "cuda", "hip", "sim".
	Name() string

	// Devices describes the devices, in the API's own order. A driver without devices returns an
	// empty list and no error.
	Devices() ([]Info, error)

	// Open prepares the device with the given index in Devices. It does not change the calling
	// thread's current device.
	Open(index int) (Device, error)
}

// Info describes a device. The driver reads it once, so [Device.Info] costs nothing.
type Info struct {
	Index       int
	Name        string
	UUID        [16]byte
	PCI         string // "0000:3b:00.0", or "" if there is no such address
	Arch        string // "sm_90", "gfx942", "sim"
	Memory      uint64 // bytes
	Processors  int
	WarpSize    int
	MaxThreads  int    // maximum number of threads in a block
	MaxBlock    [3]int // maximum number of threads in each dimension of a block
	MaxGrid     [3]int // maximum number of blocks in each dimension of a grid
	SharedMem   int    // bytes per block without opting in
	SharedOptIn int    // maximum bytes per block, with opting in
	Integrated  bool   // the GPU uses the host's memory

	// In the following fields 0 or "" means that the value is unknown, except for Minor and
	// NUMANode.

	Version       int    // version of the API's library: 13000 is CUDA 13.0, 60443484 is HIP 6.4.43484
	DriverVersion string // version of the operating system's driver: "580.95.05"; on Linux only
	Major, Minor  int    // compute capability: 9 and 0 of "sm_90", 9 and 4 of "gfx942"
	MIG           bool   // the device is a part of a GPU (NVIDIA's MIG)
	NUMANode      int    // the nearest NUMA node of the host; -1 if unknown

	Clock       int // clock of the multiprocessors, kHz
	MemoryClock int // clock of the memory, kHz
	MemoryBus   int // width of the memory bus, bits
	L2          int // bytes of cache
	CopyEngines int // engines that copy while kernels run

	Registers          int // 32-bit registers that a block can use
	ProcessorThreads   int // threads that a multiprocessor holds at once
	ProcessorBlocks    int // blocks that a multiprocessor holds at once
	ProcessorRegisters int
	ProcessorSharedMem int // bytes

	Cooperative bool // blocks of a launch can wait for each other
	Clusters    bool // kernels can have clusters of blocks
}

// Caps says what a device's API can do.
type Caps struct {
	RerecordEvents bool // an event may be recorded again while its last record, or a wait for that record, is pending
	Managed        bool // memory can be managed: the host and the device use it at the same address
	HostRegister   bool // the program's host memory can be pinned
	KernelParams   bool // the sizes of a kernel's parameters are known
	Pools          bool // the device is a [Pools]
	HostPools      bool // pools can be of host memory
	PoolSharing    bool // the device is a [PoolSharing]
	Graphs         bool // the device is a [Graphs]
	Conditionals   bool // the device is a [Conditionals]
	Timers         bool // the device is a [Timers]
	Peers          bool // the device is a [Peers]
	Comms          bool // the device is a [Comms]
	Native         bool // the device is a [Natives]
	Capture        bool // the device is a [Capturer]
	Adopt          bool // the device is an [Adopter]
	Values         bool // the device is a [Values]
	IPCMem         bool // the device is an [IPCMem]
	MemSharing     bool // the device is a [MemSharing]
	VirtualMem     bool // the device is a [VirtualMem]
	IPCEvents      bool // the device is an [IPCEvents]
	Compile        bool // the device is a [Compilers]

	Cooperative     bool // launches can be cooperative
	Clusters        bool // launches can set the size of their clusters
	DependentLaunch bool // launches can be dependent
	LaunchEvents    bool // launches can record an event when they have begun
	NodeAttrs       bool // kernel nodes of a graph can be cooperative, and set the size of their clusters

	Prefetch         bool // the device is a [Prefetcher]
	ReadOnlyRegister bool // the device is a [ReadOnlyRegistrar]
	ManagedPools     bool // pools can be of managed memory
	PoolsByStream    bool // memory must be freed in the stream that allocated it; see [Pools]
	// ChecksOrder: if two unordered nodes of a graph use the same memory and one of them writes it,
	// executing the graph loses the device. The driver may overlook such accesses.
	ChecksOrder bool
	// ResizeNodes: SetNode may change the size of a copy, or of a fill without stride. If the API
	// refuses the size, SetNode returns an error.
	ResizeNodes bool

	MemInfo   bool // the device is a [MemInfo]
	Links     bool // the device is a [Links]
	Occupancy bool // the device is an [Occupancy]
	NodeTimes bool // the device is a [NodeTimer]

	// PriorityRange holds the least urgent and the most urgent priority of the API's streams.
	// Smaller numbers are more urgent. The two are equal if streams have no priorities. NewStream
	// makes streams of priority 0.
	PriorityRange [2]int
}

// Handles of a device's objects. Zero means no object.
type (
	Stream   uintptr
	Event    uintptr
	Module   uintptr
	Function uintptr

	// Ptr is an address that the device can use.
	Ptr uint64
)

// A MemKind is a kind of memory.
type MemKind int

// The kinds of memory.
const (
	DeviceMem        MemKind = iota // device memory without a host address
	HostMem                         // host memory, pinned and visible to all devices of the driver
	ManagedMem                      // memory with the same address on the host and the device, moved as needed
	CommMem                         // device memory for communicators; needs Caps.Comms
	WriteCombinedMem                // like HostMem, but for the host only to write: reading is slow
	ShareableMem                    // device memory to share through file descriptors; needs Caps.MemSharing
)

// OfDevice reports whether memory of this kind is on a device.
func (k MemKind) OfDevice() bool { return k == DeviceMem || k == CommMem || k == ShareableMem }

// Mem is an allocation. Host is nil if the host cannot use it.
type Mem struct {
	Kind MemKind
	Ptr  Ptr
	Host unsafe.Pointer
	Size uint64
}

// A Device is an open device. Call Close on a bound thread. Afterwards the thread is unbound.
//
// Fills and copies of size 0 do nothing. On a lost device every call may fail, including calls that
// destroy objects.
type Device interface {
	Info() Info
	Caps() Caps

	// Bind makes the device current on the calling thread, whatever was current before.
	Bind() error

	// Unbind takes this device from the calling thread, if the device is current there and the API
	// allows a thread without a device. Otherwise Unbind does nothing.
	Unbind() error

	// Close closes the device. Streams, events, modules and memory must have been destroyed.
	Close() error

	// NewStream makes a stream that is not ordered with any other stream. It needs a bound thread.
	NewStream() (Stream, error)
	// DestroyStream destroys a stream. If the stream has pending work, the error is [ErrBusy], and
	// nothing has changed. But if the driver knows that this work can never execute, the stream is
	// destroyed. DestroyStream needs a bound thread.
	DestroyStream(Stream) error

	// NewEvent makes an event without timing. It needs a bound thread.
	NewEvent() (Event, error)
	// DestroyEvent destroys an event. While streams wait for the event, the call may fail with
	// [ErrBusy] and change nothing, unless these waits can never end. DestroyEvent needs a bound
	// thread.
	DestroyEvent(Event) error

	// Record records the event after all work submitted to the stream so far. Any thread may call
	// it.
	Record(Event, Stream) error
	// Query reports whether the work before the event's last record is done. An event that was
	// never recorded is done. An error concerns the device, not the event: see [Error.Lost]. Any
	// thread may call Query.
	Query(Event) (done bool, err error)
	// StreamWait makes later work of the stream wait for the last record of an event. The event may
	// be of another device of the same driver. Any thread may call it.
	StreamWait(Stream, Event) error

	// Alloc makes memory; size is not zero. It needs a bound thread.
	Alloc(kind MemKind, size uint64) (Mem, error)
	// Free frees memory of Alloc, and may wait for the device. It needs a bound thread.
	Free(Mem) error
	// Register pins host memory for the device; the memory stays the caller's. Register needs a
	// bound thread.
	Register(p unsafe.Pointer, size uint64) (Ptr, error)
	// Unregister undoes Register. It needs a bound thread.
	Unregister(p unsafe.Pointer) error

	// Fill writes count elements of width 1, 2 or 4 bytes at dst, which is aligned to width. Any
	// thread may call it.
	Fill(s Stream, dst Ptr, pattern uint32, width int, count uint64) error
	// FillStrided writes count elements of 4 bytes, one every stride bytes, at dst; dst and stride
	// are aligned to 4. Any thread may call it.
	FillStrided(s Stream, dst Ptr, pattern uint32, stride, count uint64) error
	// Copy copies within and between memory that this device can address: its own memory, the
	// host's memory, and memory of other devices. For pools of other devices see [Peers].CopyPeer.
	// Any thread may call Copy.
	Copy(s Stream, dst, src Ptr, n uint64) error
	// Upload copies from host memory, which must stay pinned until the stream has passed the copy.
	// Any thread may call it.
	Upload(s Stream, dst Ptr, src unsafe.Pointer, n uint64) error
	// Download copies to host memory, which must stay pinned until the stream has passed the copy.
	// Any thread may call it.
	Download(s Stream, dst unsafe.Pointer, src Ptr, n uint64) error

	// Load makes a module from device code in a form that the API knows. An error includes the
	// compiler's log. Load needs a bound thread.
	Load(image []byte) (Module, error)
	// Unload destroys a module. It needs a bound thread.
	Unload(Module) error
	// Function finds a kernel by name. It needs a bound thread.
	Function(Module, string) (Function, FuncInfo, error)
	// Global finds a variable by name, and returns its address and its size in bytes. It needs a
	// bound thread.
	Global(Module, string) (Ptr, uint64, error)
	// Launch launches a kernel. It does not keep l. Any thread may call it.
	Launch(s Stream, l *Launch) error
}

// FuncInfo describes a kernel.
type FuncInfo struct {
	MaxThreads int    // maximum number of threads in a block of this kernel
	SharedMem  int    // bytes of static shared memory
	Registers  int    // registers of a thread
	LocalMem   int    // bytes of local memory of a thread
	Cluster    [3]int // cluster size that the kernel is compiled with, in blocks; zeros if none
	MaxCluster int    // maximum number of blocks in a cluster, for blocks of one thread; 0 if unknown
	Params     []int  // sizes of the kernel's parameters in bytes; nil if Caps.KernelParams is not set
}

// An Error is the error of a driver's call.
type Error struct {
	Driver string
	Op     string // the call: "launch"
	Err    error  // the API's own error
	Lost   bool   // the device is lost
	OOM    bool   // out of memory
}

func (e *Error) Error() string {
	// The API's errors begin with the driver's name too.
	s := e.Driver + ": " + e.Op + ": " + strings.TrimPrefix(e.Err.Error(), e.Driver+": ")
	if e.Lost {
		s += " (the device is lost)"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is find [ErrLost] if Lost is set, and [ErrOutOfMemory] if OOM is set.
func (e *Error) Is(target error) bool {
	return target == ErrLost && e.Lost || target == ErrOutOfMemory && e.OOM
}

// Errors that all drivers share.
var (
	ErrLost        = errors.New("device lost")
	ErrOutOfMemory = errors.New("out of device memory")
	ErrBusy        = errors.New("still in use")
	ErrSameProcess = errors.New("exported by this process: only other processes can open it")
	ErrUnsupported = fmt.Errorf("not supported by this device: %w", errors.ErrUnsupported)
)
