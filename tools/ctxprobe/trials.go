package main

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
)

// emptyPTX has a kernel that does nothing, one that writes to memory, and a variable.
const emptyPTX = `.version 6.4
.target sm_52
.address_size 64
.visible .global .align 16 .b8 variable[64];
.visible .entry empty() { ret; }
.visible .entry touch(.param .u64 touch_param_0)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [touch_param_0];
	cvta.to.global.u64 %rd2, %rd1;
	mov.u32 %r1, 1515870810;
	st.global.v4.u32 [%rd2], {%r1, %r1, %r1, %r1};
	st.global.v4.u32 [%rd2+16], {%r1, %r1, %r1, %r1};
	st.global.v4.u32 [%rd2+32], {%r1, %r1, %r1, %r1};
	st.global.v4.u32 [%rd2+48], {%r1, %r1, %r1, %r1};
	ret;
}
` + "\x00"

const size = 64 // bytes of each memory

// A bench makes arguments for functions when they are needed, in its context. If it cannot make an
// argument, it panics with the error.
type bench struct {
	lib  *cuda.Library
	dev  cuda.Device
	num  int32 // the device's ordinal
	ctx  cuda.Context
	made map[string]any
}

func made[T any](b *bench, what string, f func() (T, error)) T {
	if v, ok := b.made[what]; ok {
		return v.(T)
	}
	v, err := f()
	if err != nil {
		panic(fmt.Errorf("%s: %w", what, err))
	}
	b.made[what] = v
	return v
}

// next returns another device.
func (b *bench) next() cuda.Device {
	return made(b, "another device", func() (cuda.Device, error) {
		n, err := b.lib.DeviceGetCount()
		if err == nil && n < 2 {
			err = errors.New("there is one only")
		}
		if err != nil {
			return 0, err
		}
		return b.lib.DeviceGet((b.num + 1) % n)
	})
}

// peer returns the context of the device that next returns.
func (b *bench) peer() cuda.Context {
	return made(b, "another context", func() (cuda.Context, error) { return b.lib.DevicePrimaryCtxRetain(b.next()) })
}
func (b *bench) managed() cuda.DevicePtr {
	return made(b, "managed memory", func() (cuda.DevicePtr, error) { return b.lib.MemAllocManaged(size, cuda.MemAttachGlobal) })
}
func (b *bench) stream() cuda.Stream {
	return made(b, "stream", func() (cuda.Stream, error) { return b.lib.StreamCreate(cuda.StreamNonBlocking) })
}
func (b *bench) event() cuda.Event {
	return made(b, "event", func() (cuda.Event, error) {
		e, err := b.lib.EventCreate(cuda.EventDefault)
		if err == nil {
			err = errors.Join(b.lib.EventRecord(e, b.stream()), b.lib.StreamSynchronize(b.stream()))
		}
		return e, err
	})
}
func (b *bench) mem() cuda.DevicePtr {
	return made(b, "memory", func() (cuda.DevicePtr, error) { return b.lib.MemAlloc(size) })
}
func (b *bench) shared() cuda.Event {
	return made(b, "an event to share", func() (cuda.Event, error) {
		return b.lib.EventCreate(cuda.EventInterprocess | cuda.EventDisableTiming)
	})
}
func (b *bench) host() unsafe.Pointer {
	return made(b, "pinned memory", func() (unsafe.Pointer, error) {
		return b.lib.MemHostAlloc(size, cuda.MemHostAllocPortable|cuda.MemHostAllocDeviceMap)
	})
}

// page returns 64 KiB of the program's own memory.
func (b *bench) page() unsafe.Pointer {
	return made(b, "page", func() (unsafe.Pointer, error) { return unsafe.Pointer(new([1 << 16]byte)), nil })
}
func (b *bench) registered() unsafe.Pointer {
	return made(b, "registered memory", func() (unsafe.Pointer, error) {
		return b.page(), b.lib.MemHostRegister(b.page(), 1<<16, cuda.MemHostRegisterPortable|cuda.MemHostRegisterDeviceMap)
	})
}
func (b *bench) load() (cuda.Module, error) {
	return compiled(func(image unsafe.Pointer, options []cuda.JitOption, values []uintptr) (cuda.Module, error) {
		return b.lib.ModuleLoadDataEx(image, options, values)
	})
}

func (b *bench) loadLibrary() (cuda.CodeLibrary, error) {
	return compiled(func(image unsafe.Pointer, options []cuda.JitOption, values []uintptr) (cuda.CodeLibrary, error) {
		return b.lib.LibraryLoadData(image, options, values, nil, nil)
	})
}

// compiled loads code as cudadriver does.
func compiled[T any](load func(image unsafe.Pointer, options []cuda.JitOption, values []uintptr) (T, error)) (T, error) {
	var logs [2][1 << 12]byte
	var pin runtime.Pinner
	pin.Pin(&logs)
	defer pin.Unpin()
	return load(unsafe.Pointer(unsafe.StringData(emptyPTX)),
		[]cuda.JitOption{cuda.JITInfoLogBuffer, cuda.JITInfoLogBufferSizeBytes, cuda.JITErrorLogBuffer, cuda.JITErrorLogBufferSizeBytes},
		[]uintptr{uintptr(unsafe.Pointer(&logs[0])), 1 << 12, uintptr(unsafe.Pointer(&logs[1])), 1 << 12})
}
func (b *bench) module() cuda.Module       { return made(b, "module", b.load) }
func (b *bench) library() cuda.CodeLibrary { return made(b, "library of code", b.loadLibrary) }
func (b *bench) function() cuda.Function {
	return made(b, "function", func() (cuda.Function, error) { return b.lib.ModuleGetFunction(b.module(), "empty") })
}
func (b *bench) pool() cuda.MemoryPool {
	return made(b, "pool", func() (cuda.MemoryPool, error) { return b.lib.MemPoolCreate(b.poolProps()) })
}
func (b *bench) poolProps() *cuda.MemPoolProps {
	return &cuda.MemPoolProps{AllocType: cuda.MemAllocationTypePinned, Location: b.location()}
}

// sharedPool returns a pool that can be exported to other processes.
func (b *bench) sharedPool() cuda.MemoryPool {
	return made(b, "pool to share", func() (cuda.MemoryPool, error) {
		p := b.poolProps()
		p.HandleTypes = cuda.MemHandleTypePosixFileDescriptor
		return b.lib.MemPoolCreate(p)
	})
}

// descriptor returns the file descriptor of the exported pool.
func (b *bench) descriptor() int32 {
	return made(b, "descriptor of a pool", func() (fd int32, err error) {
		err = b.lib.MemPoolExportToShareableHandle(unsafe.Pointer(&fd), b.sharedPool(), cuda.MemHandleTypePosixFileDescriptor, 0)
		return fd, err
	})
}

// physicalProp returns the properties of physical memory that can be exported to other processes.
func (b *bench) physicalProp() *cuda.MemAllocationProp {
	return &cuda.MemAllocationProp{Type: cuda.MemAllocationTypePinned, RequestedHandleTypes: cuda.MemHandleTypePosixFileDescriptor, Location: b.location()}
}
func (b *bench) granule() uint64 {
	return made(b, "size of physical memory", func() (uint64, error) {
		return b.lib.MemGetAllocationGranularity(b.physicalProp(), cuda.MemAllocGranularityMinimum)
	})
}
func (b *bench) physical() cuda.MemGenericAllocationHandle {
	return made(b, "physical memory", func() (cuda.MemGenericAllocationHandle, error) {
		return b.lib.MemCreate(b.granule(), b.physicalProp(), 0)
	})
}

// physicalDescriptor returns the file descriptor of the exported memory.
func (b *bench) physicalDescriptor() int32 {
	return made(b, "descriptor of physical memory", func() (fd int32, err error) {
		err = b.lib.MemExportToShareableHandle(unsafe.Pointer(&fd), b.physical(), cuda.MemHandleTypePosixFileDescriptor, 0)
		return fd, err
	})
}
func (b *bench) reserved() cuda.DevicePtr {
	return made(b, "range of addresses", func() (cuda.DevicePtr, error) { return b.lib.MemAddressReserve(b.granule(), 0, 0, 0) })
}
func (b *bench) mapped() cuda.DevicePtr {
	return made(b, "mapped memory", func() (cuda.DevicePtr, error) {
		return b.reserved(), b.lib.MemMap(b.reserved(), b.granule(), 0, b.physical(), 0)
	})
}
func (b *bench) location() cuda.MemLocation {
	return cuda.MemLocation{Type: cuda.MemLocationTypeDevice, Id: b.num}
}
func (b *bench) pooled() cuda.DevicePtr {
	return made(b, "memory of a pool", func() (cuda.DevicePtr, error) {
		return b.lib.MemAllocFromPoolAsync(size, b.pool(), b.stream())
	})
}
func (b *bench) graph() cuda.Graph {
	return made(b, "graph", func() (cuda.Graph, error) { return b.lib.GraphCreate(0) })
}
func (b *bench) other() cuda.Graph {
	return made(b, "second graph", func() (cuda.Graph, error) { return b.lib.GraphCreate(0) })
}
func (b *bench) condition() cuda.GraphConditionalHandle {
	return made(b, "condition", func() (cuda.GraphConditionalHandle, error) {
		return b.lib.GraphConditionalHandleCreate(b.graph(), b.ctx, 0, 0)
	})
}
func (b *bench) kernelParams() *cuda.KernelNodeParams {
	return &cuda.KernelNodeParams{Func: b.function(), GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1}
}

// kernelParamsV1 returns the parameters as the older struct, which has the first fields of the
// newer one.
func (b *bench) kernelParamsV1() *cuda.KernelNodeParamsV1 {
	return (*cuda.KernelNodeParamsV1)(unsafe.Pointer(b.kernelParams()))
}
func (b *bench) fillParams() *cuda.MemsetNodeParams {
	return &cuda.MemsetNodeParams{Dst: b.mem(), Value: 1, ElementSize: 4, Width: size / 4, Height: 1}
}
func (b *bench) copyParams() *cuda.Memcpy3D {
	return &cuda.Memcpy3D{SrcMemoryType: cuda.MemoryTypeUnified, SrcDevice: b.mem(), DstMemoryType: cuda.MemoryTypeUnified,
		DstDevice: b.mem() + size/2, WidthInBytes: size / 2, Height: 1, Depth: 1}
}
func (b *bench) fillNode() cuda.GraphNode {
	return made(b, "fill node", func() (cuda.GraphNode, error) {
		return b.lib.GraphAddMemsetNode(b.graph(), nil, b.fillParams(), b.ctx)
	})
}
func (b *bench) copyNode() cuda.GraphNode {
	return made(b, "copy node", func() (cuda.GraphNode, error) {
		return b.lib.GraphAddMemcpyNode(b.graph(), []cuda.GraphNode{b.fillNode()}, b.copyParams(), b.ctx)
	})
}
func (b *bench) kernelNode() cuda.GraphNode {
	return made(b, "kernel node", func() (cuda.GraphNode, error) { return b.lib.GraphAddKernelNodeV1(b.graph(), nil, b.kernelParamsV1()) })
}
func (b *bench) exec() cuda.GraphExec {
	return made(b, "exec", func() (cuda.GraphExec, error) {
		b.fillNode()
		b.copyNode()
		b.kernelNode()
		return b.lib.GraphInstantiateWithFlags(b.graph(), 0)
	})
}

// parent returns a third graph. childNode adds the second graph to the third.
func (b *bench) parent() cuda.Graph {
	return made(b, "third graph", func() (cuda.Graph, error) { return b.lib.GraphCreate(0) })
}
func (b *bench) childNode() cuda.GraphNode {
	return made(b, "child node", func() (cuda.GraphNode, error) { return b.lib.GraphAddChildGraphNode(b.parent(), nil, b.other()) })
}
func (b *bench) parentExec() cuda.GraphExec {
	return made(b, "exec with a child", func() (cuda.GraphExec, error) {
		b.childNode()
		return b.lib.GraphInstantiateWithFlags(b.parent(), 0)
	})
}

// capturing returns a stream that captures.
func (b *bench) capturing() cuda.Stream {
	return made(b, "capturing stream", func() (cuda.Stream, error) {
		return b.stream(), b.lib.StreamBeginCapture(b.stream(), cuda.StreamCaptureModeRelaxed)
	})
}

// A trial is a function to try.
type trial struct {
	name string         // the exported name
	need func(b *bench) // makes the arguments before the call; may be nil
	call func(b *bench) error
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }

// third returns the error of a call with three results.
func third[T, U any](_ T, _ U, err error) error { return err }

// trials lists the functions that runtime/driver/cudadriver calls.
var trials = []trial{
	{name: "cuInit", call: func(b *bench) error { return b.lib.Init(0) }},
	{name: "cuDeviceGetCount", call: func(b *bench) error { return second(b.lib.DeviceGetCount()) }},
	{name: "cuDeviceGet", call: func(b *bench) error { return second(b.lib.DeviceGet(b.num)) }},
	{name: "cuDeviceGetName", call: func(b *bench) error { return second(b.lib.DeviceGetName(b.dev)) }},
	{name: "cuDeviceTotalMem_v2", call: func(b *bench) error { return second(b.lib.DeviceTotalMem(b.dev)) }},
	{name: "cuDeviceGetUuid", call: func(b *bench) error { return second(b.lib.DeviceGetUuidV1(b.dev)) }},
	{name: "cuDeviceGetUuid_v2", call: func(b *bench) error { return second(b.lib.DeviceGetUuid(b.dev)) }},
	{name: "cuDeviceGetPCIBusId", call: func(b *bench) error { return second(b.lib.DeviceGetPCIBusId(b.dev)) }},
	{name: "cuDeviceGetAttribute", call: func(b *bench) error {
		return second(b.lib.DeviceGetAttribute(cuda.DeviceAttributeManagedMemory, b.dev))
	}},
	{name: "cuDeviceCanAccessPeer", call: func(b *bench) error { return second(b.lib.DeviceCanAccessPeer(b.dev, b.dev)) }},
	{name: "cuDeviceGetP2PAttribute", need: func(b *bench) { b.next() }, call: func(b *bench) error {
		return second(b.lib.DeviceGetP2PAttribute(cuda.DeviceP2PAttributeAccessSupported, b.dev, b.next()))
	}},
	{name: "cuDevicePrimaryCtxRetain", call: func(b *bench) error { return second(b.lib.DevicePrimaryCtxRetain(b.dev)) }},
	{name: "cuDevicePrimaryCtxRelease_v2", need: func(b *bench) { b.lib.DevicePrimaryCtxRetain(b.dev) },
		call: func(b *bench) error { return b.lib.DevicePrimaryCtxRelease(b.dev) }},
	{name: "cuCtxGetCurrent", call: func(b *bench) error { return second(b.lib.CtxGetCurrent()) }},
	{name: "cuCtxSetCurrent", call: func(b *bench) error { return b.lib.CtxSetCurrent(b.ctx) }},
	{name: "cuCtxPushCurrent_v2", call: func(b *bench) error { return b.lib.CtxPushCurrent(b.ctx) }},
	{name: "cuCtxPopCurrent_v2", call: func(b *bench) error { return second(b.lib.CtxPopCurrent()) }},
	{name: "cuCtxGetStreamPriorityRange", call: func(b *bench) error { return third(b.lib.CtxGetStreamPriorityRange()) }},
	{name: "cuCtxEnablePeerAccess", need: func(b *bench) { b.peer() }, call: func(b *bench) error { return b.lib.CtxEnablePeerAccess(b.peer(), 0) }},

	{name: "cuStreamCreate", call: func(b *bench) error { return second(b.lib.StreamCreate(cuda.StreamNonBlocking)) }},
	{name: "cuStreamCreateWithPriority", call: func(b *bench) error { return second(b.lib.StreamCreateWithPriority(cuda.StreamNonBlocking, 0)) }},
	{name: "cuStreamDestroy_v2", need: func(b *bench) { b.stream() }, call: func(b *bench) error { return b.lib.StreamDestroy(b.stream()) }},
	{name: "cuStreamQuery", need: func(b *bench) { b.stream() }, call: func(b *bench) error { return b.lib.StreamQuery(b.stream()) }},
	{name: "cuStreamSynchronize", need: func(b *bench) { b.stream() }, call: func(b *bench) error { return b.lib.StreamSynchronize(b.stream()) }},
	{name: "cuStreamWaitEvent", need: func(b *bench) { b.event() }, call: func(b *bench) error { return b.lib.StreamWaitEvent(b.stream(), b.event(), 0) }},
	{name: "cuStreamBeginCapture_v2", need: func(b *bench) { b.stream() }, call: func(b *bench) error {
		return b.lib.StreamBeginCapture(b.stream(), cuda.StreamCaptureModeRelaxed)
	}},
	{name: "cuStreamEndCapture", need: func(b *bench) { b.capturing() }, call: func(b *bench) error {
		return second(b.lib.StreamEndCapture(b.capturing()))
	}},
	{name: "cuStreamGetCtx", need: func(b *bench) { b.stream() }, call: func(b *bench) error { return second(b.lib.StreamGetCtx(b.stream())) }},
	{name: "cuStreamGetPriority", need: func(b *bench) { b.stream() }, call: func(b *bench) error { return second(b.lib.StreamGetPriority(b.stream())) }},
	{name: "cuStreamIsCapturing", need: func(b *bench) { b.stream() }, call: func(b *bench) error { return second(b.lib.StreamIsCapturing(b.stream())) }},
	{name: "cuStreamWriteValue64_v2", need: func(b *bench) { b.stream(); b.mem() }, call: func(b *bench) error {
		return b.lib.StreamWriteValue64(b.stream(), b.mem(), 1, cuda.StreamWriteValueDefault)
	}},
	{name: "cuStreamWaitValue64_v2", need: func(b *bench) { // the wait is for a value that is already in memory
		must(errors.Join(b.lib.StreamWriteValue64(b.stream(), b.mem(), 1, cuda.StreamWriteValueDefault), b.lib.StreamSynchronize(b.stream())))
	}, call: func(b *bench) error {
		return b.lib.StreamWaitValue64(b.stream(), b.mem(), 1, cuda.StreamWaitValueGeq)
	}},
	{name: "cuEventCreate", call: func(b *bench) error { return second(b.lib.EventCreate(cuda.EventDisableTiming)) }},
	{name: "cuEventDestroy_v2", need: func(b *bench) { b.event() }, call: func(b *bench) error { return b.lib.EventDestroy(b.event()) }},
	{name: "cuEventRecord", need: func(b *bench) { b.event() }, call: func(b *bench) error { return b.lib.EventRecord(b.event(), b.stream()) }},
	{name: "cuEventQuery", need: func(b *bench) { b.event() }, call: func(b *bench) error { return b.lib.EventQuery(b.event()) }},
	{name: "cuEventElapsedTime", need: func(b *bench) { b.event() }, call: func(b *bench) error {
		return second(b.lib.EventElapsedTimeV1(b.event(), b.event()))
	}},
	{name: "cuEventElapsedTime_v2", need: func(b *bench) { b.event() }, call: func(b *bench) error {
		return second(b.lib.EventElapsedTime(b.event(), b.event()))
	}},

	{name: "cuMemGetInfo_v2", call: func(b *bench) error { return third(b.lib.MemGetInfo()) }},
	{name: "cuMemAlloc_v2", call: func(b *bench) error { return second(b.lib.MemAlloc(size)) }},
	{name: "cuMemFree_v2", need: func(b *bench) { b.mem() }, call: func(b *bench) error { return b.lib.MemFree(b.mem()) }},
	{name: "cuMemHostAlloc", call: func(b *bench) error {
		return second(b.lib.MemHostAlloc(size, cuda.MemHostAllocPortable|cuda.MemHostAllocDeviceMap))
	}},
	{name: "cuMemFreeHost", need: func(b *bench) { b.host() }, call: func(b *bench) error { return b.lib.MemFreeHost(b.host()) }},
	{name: "cuMemHostGetDevicePointer_v2", need: func(b *bench) { b.host() }, call: func(b *bench) error {
		return second(b.lib.MemHostGetDevicePointer(b.host(), 0))
	}},
	{name: "cuMemAllocManaged", call: func(b *bench) error { return second(b.lib.MemAllocManaged(size, cuda.MemAttachGlobal)) }},
	{name: "cuMemPrefetchAsync", need: func(b *bench) { b.stream(); b.managed() }, call: func(b *bench) error {
		return b.lib.MemPrefetchAsyncV1(b.managed(), size, b.dev, b.stream())
	}},
	{name: "cuMemPrefetchAsync_v2", need: func(b *bench) { b.stream(); b.managed() }, call: func(b *bench) error {
		return b.lib.MemPrefetchAsync(b.managed(), size, cuda.MemLocation{Type: cuda.MemLocationTypeDevice, Id: b.num}, 0, b.stream())
	}},
	{name: "cuMemHostRegister_v2", need: func(b *bench) { b.page() }, call: func(b *bench) error {
		return b.lib.MemHostRegister(b.page(), 1<<16, cuda.MemHostRegisterPortable|cuda.MemHostRegisterDeviceMap)
	}},
	{name: "cuMemHostUnregister", need: func(b *bench) { b.registered() }, call: func(b *bench) error { return b.lib.MemHostUnregister(b.page()) }},
	{name: "cuMemsetD8Async", need: both, call: func(b *bench) error { return b.lib.MemsetD8Async(b.mem(), 1, size, b.stream()) }},
	{name: "cuMemsetD16Async", need: both, call: func(b *bench) error { return b.lib.MemsetD16Async(b.mem(), 1, size/2, b.stream()) }},
	{name: "cuMemsetD32Async", need: both, call: func(b *bench) error { return b.lib.MemsetD32Async(b.mem(), 1, size/4, b.stream()) }},
	{name: "cuMemsetD2D32Async", need: both, call: func(b *bench) error { return b.lib.MemsetD2D32Async(b.mem(), 8, 1, 1, size/8, b.stream()) }},
	{name: "cuMemcpyAsync", need: both, call: func(b *bench) error { return b.lib.MemcpyAsync(b.mem(), b.mem()+size/2, size/2, b.stream()) }},
	{name: "cuMemcpyPeerAsync", need: both, call: func(b *bench) error {
		return b.lib.MemcpyPeerAsync(b.mem(), b.ctx, b.mem()+size/2, b.ctx, size/2, b.stream())
	}},
	{name: "cuMemcpyHtoDAsync_v2", need: both, call: func(b *bench) error { return b.lib.MemcpyHtoDAsync(b.mem(), b.host(), size, b.stream()) }},
	{name: "cuMemcpyDtoHAsync_v2", need: both, call: func(b *bench) error { return b.lib.MemcpyDtoHAsync(b.host(), b.mem(), size, b.stream()) }},

	{name: "cuModuleLoadDataEx", call: func(b *bench) error { return second(b.load()) }},
	{name: "cuModuleUnload", need: func(b *bench) { b.module() }, call: func(b *bench) error { return b.lib.ModuleUnload(b.module()) }},
	{name: "cuModuleGetLoadingMode", call: func(b *bench) error { return second(b.lib.ModuleGetLoadingMode()) }},
	{name: "cuLibraryLoadData", call: func(b *bench) error { return second(b.loadLibrary()) }},
	{name: "cuLibraryGetModule", need: func(b *bench) { b.library() }, call: func(b *bench) error { return second(b.lib.LibraryGetModule(b.library())) }},
	{name: "cuLibraryUnload", need: func(b *bench) { b.library() }, call: func(b *bench) error { return b.lib.LibraryUnload(b.library()) }},
	{name: "cuModuleGetFunction", need: func(b *bench) { b.module() }, call: func(b *bench) error {
		return second(b.lib.ModuleGetFunction(b.module(), "empty"))
	}},
	{name: "cuModuleGetGlobal_v2", need: func(b *bench) { b.module() }, call: func(b *bench) error {
		return third(b.lib.ModuleGetGlobal(b.module(), "variable"))
	}},
	{name: "cuFuncLoad", need: func(b *bench) { b.function() }, call: func(b *bench) error { return b.lib.FuncLoad(b.function()) }},
	{name: "cuFuncGetAttribute", need: func(b *bench) { b.function() }, call: func(b *bench) error {
		return second(b.lib.FuncGetAttribute(cuda.FuncAttributeNumRegs, b.function()))
	}},
	{name: "cuFuncSetAttribute", need: func(b *bench) { b.function() }, call: func(b *bench) error {
		return b.lib.FuncSetAttribute(b.function(), cuda.FuncAttributeMaxDynamicSharedSizeBytes, 1024)
	}},
	{name: "cuFuncGetParamInfo", need: func(b *bench) { b.function() }, call: func(b *bench) error {
		err := third(b.lib.FuncGetParamInfo(b.function(), 0))
		if errors.Is(err, cuda.ErrorInvalidValue) {
			err = nil // the call itself works: the kernel has no parameters
		}
		return err
	}},
	{name: "cuOccupancyMaxActiveBlocksPerMultiprocessor", need: func(b *bench) { b.function() }, call: func(b *bench) error {
		return second(b.lib.OccupancyMaxActiveBlocksPerMultiprocessor(b.function(), 64, 0))
	}},
	{name: "cuOccupancyMaxPotentialClusterSize", need: func(b *bench) { b.function(); b.stream() }, call: func(b *bench) error {
		c := b.launchConfig()
		c.HStream, c.Attrs, c.NumAttrs = 0, nil, 0
		return second(b.lib.OccupancyMaxPotentialClusterSize(b.function(), c))
	}},
	{name: "cuMemGetAddressRange_v2", need: func(b *bench) { b.mem() }, call: func(b *bench) error {
		return third(b.lib.MemGetAddressRange(b.mem()))
	}},
	{name: "cuIpcGetMemHandle", need: func(b *bench) { b.mem() }, call: func(b *bench) error { return second(b.lib.IpcGetMemHandle(b.mem())) }},
	// This trial passes a zero handle, because a process cannot open its own handles.
	{name: "cuIpcOpenMemHandle_v2", call: func(b *bench) error {
		return refusal(second(b.lib.IpcOpenMemHandle(cuda.IpcMemHandle{}, cuda.IPCMemLazyEnablePeerAccess)))
	}},
	{name: "cuIpcCloseMemHandle", need: func(b *bench) { b.mem() }, call: func(b *bench) error {
		return refusal(b.lib.IpcCloseMemHandle(b.mem()))
	}},
	{name: "cuIpcGetEventHandle", need: func(b *bench) { b.shared() }, call: func(b *bench) error { return second(b.lib.IpcGetEventHandle(b.shared())) }},
	{name: "cuIpcOpenEventHandle", call: func(b *bench) error { return refusal(second(b.lib.IpcOpenEventHandle(cuda.IpcEventHandle{}))) }},
	{name: "cuLaunchKernelEx", need: func(b *bench) { b.function(); b.stream() }, call: func(b *bench) error {
		return b.lib.LaunchKernelEx(b.launchConfig(), b.function(), nil, nil)
	}},
	{name: "cuLaunchKernel", need: func(b *bench) { b.function(); b.stream() }, call: func(b *bench) error {
		return b.lib.LaunchKernel(b.function(), 1, 1, 1, 1, 1, 1, 0, b.stream(), nil, nil)
	}},

	{name: "cuDeviceGetDefaultMemPool", call: func(b *bench) error { return second(b.lib.DeviceGetDefaultMemPool(b.dev)) }},
	{name: "cuDeviceGetMemPool", call: func(b *bench) error { return second(b.lib.DeviceGetMemPool(b.dev)) }},
	{name: "cuDeviceSetMemPool", need: func(b *bench) { b.pool() }, call: func(b *bench) error { return b.lib.DeviceSetMemPool(b.dev, b.pool()) }},
	{name: "cuMemPoolCreate", call: func(b *bench) error { return second(b.lib.MemPoolCreate(b.poolProps())) }},
	{name: "cuMemPoolDestroy", need: func(b *bench) { b.pool() }, call: func(b *bench) error { return b.lib.MemPoolDestroy(b.pool()) }},
	{name: "cuMemPoolGetAttribute", need: func(b *bench) { b.pool() }, call: func(b *bench) error {
		return b.lib.MemPoolGetAttribute(b.pool(), cuda.MemPoolAttrReleaseThreshold, unsafe.Pointer(new(uint64)))
	}},
	{name: "cuMemPoolSetAttribute", need: func(b *bench) { b.pool() }, call: func(b *bench) error {
		return b.lib.MemPoolSetAttribute(b.pool(), cuda.MemPoolAttrReleaseThreshold, unsafe.Pointer(new(uint64)))
	}},
	{name: "cuMemPoolExportToShareableHandle", need: func(b *bench) { b.sharedPool() }, call: func(b *bench) error {
		return b.lib.MemPoolExportToShareableHandle(unsafe.Pointer(new(int32)), b.sharedPool(), cuda.MemHandleTypePosixFileDescriptor, 0)
	}},
	{name: "cuMemPoolImportFromShareableHandle", need: func(b *bench) { b.descriptor() }, call: func(b *bench) error {
		return second(b.lib.MemPoolImportFromShareableHandle(uintptr(b.descriptor()), cuda.MemHandleTypePosixFileDescriptor, 0))
	}},
	// This trial passes memory that is not from a pool.
	{name: "cuMemPoolExportPointer", need: func(b *bench) { b.mem() }, call: func(b *bench) error {
		return refusal(second(b.lib.MemPoolExportPointer(b.mem())))
	}},
	// This trial passes a pool that was not imported.
	{name: "cuMemPoolImportPointer", need: func(b *bench) { b.pool() }, call: func(b *bench) error {
		return refusal(second(b.lib.MemPoolImportPointer(b.pool(), &cuda.MemPoolPtrExportData{})))
	}},
	{name: "cuMemPoolTrimTo", need: func(b *bench) { b.pool() }, call: func(b *bench) error { return b.lib.MemPoolTrimTo(b.pool(), 0) }},
	{name: "cuMemPoolSetAccess", need: func(b *bench) { b.pool() }, call: func(b *bench) error {
		return b.lib.MemPoolSetAccess(b.pool(), []cuda.MemAccessDesc{{Location: b.location(), Flags: cuda.MemAccessFlagsProtReadWrite}})
	}},
	{name: "cuMemAllocFromPoolAsync", need: func(b *bench) { b.pool(); b.stream() }, call: func(b *bench) error {
		return second(b.lib.MemAllocFromPoolAsync(size, b.pool(), b.stream()))
	}},
	{name: "cuMemFreeAsync", need: func(b *bench) { b.pooled() }, call: func(b *bench) error { return b.lib.MemFreeAsync(b.pooled(), b.stream()) }},

	{name: "cuMemGetAllocationGranularity", call: func(b *bench) error {
		return second(b.lib.MemGetAllocationGranularity(b.physicalProp(), cuda.MemAllocGranularityMinimum))
	}},
	{name: "cuMemCreate", need: func(b *bench) { b.granule() }, call: func(b *bench) error { return second(b.lib.MemCreate(b.granule(), b.physicalProp(), 0)) }},
	{name: "cuMemRelease", need: func(b *bench) { b.physical() }, call: func(b *bench) error { return b.lib.MemRelease(b.physical()) }},
	{name: "cuMemAddressReserve", need: func(b *bench) { b.granule() }, call: func(b *bench) error { return second(b.lib.MemAddressReserve(b.granule(), 0, 0, 0)) }},
	{name: "cuMemAddressFree", need: func(b *bench) { b.reserved() }, call: func(b *bench) error { return b.lib.MemAddressFree(b.reserved(), b.granule()) }},
	{name: "cuMemMap", need: func(b *bench) { b.physical(); b.reserved() }, call: func(b *bench) error {
		return b.lib.MemMap(b.reserved(), b.granule(), 0, b.physical(), 0)
	}},
	{name: "cuMemUnmap", need: func(b *bench) { b.mapped() }, call: func(b *bench) error { return b.lib.MemUnmap(b.mapped(), b.granule()) }},
	{name: "cuMemSetAccess", need: func(b *bench) { b.mapped() }, call: func(b *bench) error {
		return b.lib.MemSetAccess(b.mapped(), b.granule(), []cuda.MemAccessDesc{{Location: b.location(), Flags: cuda.MemAccessFlagsProtReadWrite}})
	}},
	{name: "cuMemRetainAllocationHandle", need: func(b *bench) { b.mapped() }, call: func(b *bench) error { return second(b.lib.MemRetainAllocationHandle(b.mapped())) }},
	{name: "cuMemExportToShareableHandle", need: func(b *bench) { b.physical() }, call: func(b *bench) error {
		return b.lib.MemExportToShareableHandle(unsafe.Pointer(new(int32)), b.physical(), cuda.MemHandleTypePosixFileDescriptor, 0)
	}},
	{name: "cuMemImportFromShareableHandle", need: func(b *bench) { b.physicalDescriptor() }, call: func(b *bench) error {
		return second(b.lib.MemImportFromShareableHandle(uintptr(b.physicalDescriptor()), cuda.MemHandleTypePosixFileDescriptor))
	}},

	{name: "cuGraphCreate", call: func(b *bench) error { return second(b.lib.GraphCreate(0)) }},
	{name: "cuGraphDestroy", need: func(b *bench) { b.graph() }, call: func(b *bench) error { return b.lib.GraphDestroy(b.graph()) }},
	{name: "cuGraphAddEmptyNode", need: func(b *bench) { b.graph() }, call: func(b *bench) error { return second(b.lib.GraphAddEmptyNode(b.graph(), nil)) }},
	{name: "cuGraphAddKernelNode", need: nodes, call: func(b *bench) error {
		return second(b.lib.GraphAddKernelNodeV1(b.graph(), nil, b.kernelParamsV1()))
	}},
	{name: "cuGraphAddKernelNode_v2", need: nodes, call: func(b *bench) error {
		return second(b.lib.GraphAddKernelNode(b.graph(), nil, b.kernelParams()))
	}},
	{name: "cuGraphNodeGetType", need: func(b *bench) { b.kernelNode() }, call: func(b *bench) error { return second(b.lib.GraphNodeGetType(b.kernelNode())) }},
	{name: "cuGraphKernelNodeSetAttribute", need: func(b *bench) { b.kernelNode() }, call: func(b *bench) error {
		return b.lib.GraphKernelNodeSetAttribute(b.kernelNode(), cuda.LaunchAttributePriority, new(cuda.LaunchAttributeValue))
	}},
	{name: "cuGraphAddDependencies_v2", need: func(b *bench) { b.kernelNode(); b.fillNode() }, call: func(b *bench) error {
		return b.lib.GraphAddDependencies(b.graph(), []cuda.GraphNode{b.kernelNode()}, []cuda.GraphNode{b.fillNode()}, make([]cuda.GraphEdgeData, 1))
	}},
	{name: "cuGraphDestroyNode", need: func(b *bench) { b.kernelNode() }, call: func(b *bench) error { return b.lib.GraphDestroyNode(b.kernelNode()) }},
	{name: "cuGraphAddMemsetNode", need: nodes, call: func(b *bench) error {
		return second(b.lib.GraphAddMemsetNode(b.graph(), nil, b.fillParams(), b.ctx))
	}},
	{name: "cuGraphAddMemcpyNode", need: nodes, call: func(b *bench) error {
		return second(b.lib.GraphAddMemcpyNode(b.graph(), nil, b.copyParams(), b.ctx))
	}},
	{name: "cuGraphAddChildGraphNode", need: func(b *bench) { b.graph(); b.other() }, call: func(b *bench) error {
		return second(b.lib.GraphAddChildGraphNode(b.graph(), nil, b.other()))
	}},
	{name: "cuGraphConditionalHandleCreate", need: func(b *bench) { b.graph() }, call: func(b *bench) error {
		return second(b.lib.GraphConditionalHandleCreate(b.graph(), b.ctx, 0, 0))
	}},
	{name: "cuGraphAddNode_v2", need: func(b *bench) { b.condition() }, call: func(b *bench) error {
		p := &cuda.GraphNodeParams{Type: cuda.GraphNodeTypeConditional}
		c := p.Anon1.Conditional()
		c.Handle, c.Type, c.Size, c.Ctx = b.condition(), cuda.GraphCondTypeIf, 1, b.ctx
		return second(b.lib.GraphAddNode(b.graph(), nil, nil, p))
	}},
	{name: "cuGraphAddEventRecordNode", need: func(b *bench) { b.graph(); b.event() }, call: func(b *bench) error {
		return second(b.lib.GraphAddEventRecordNode(b.graph(), nil, b.event()))
	}},
	{name: "cuGraphInstantiateWithFlags", need: func(b *bench) { b.fillNode() }, call: func(b *bench) error {
		return second(b.lib.GraphInstantiateWithFlags(b.graph(), 0))
	}},
	{name: "cuGraphExecDestroy", need: func(b *bench) { b.exec() }, call: func(b *bench) error { return b.lib.GraphExecDestroy(b.exec()) }},
	{name: "cuGraphExecKernelNodeSetParams", need: func(b *bench) { b.exec() }, call: func(b *bench) error {
		return b.lib.GraphExecKernelNodeSetParamsV1(b.exec(), b.kernelNode(), b.kernelParamsV1())
	}},
	{name: "cuGraphExecKernelNodeSetParams_v2", need: func(b *bench) { b.exec() }, call: func(b *bench) error {
		return b.lib.GraphExecKernelNodeSetParams(b.exec(), b.kernelNode(), b.kernelParams())
	}},
	{name: "cuGraphExecMemsetNodeSetParams", need: func(b *bench) { b.exec() }, call: func(b *bench) error {
		return b.lib.GraphExecMemsetNodeSetParams(b.exec(), b.fillNode(), b.fillParams(), b.ctx)
	}},
	{name: "cuGraphExecMemcpyNodeSetParams", need: func(b *bench) { b.exec() }, call: func(b *bench) error {
		return b.lib.GraphExecMemcpyNodeSetParams(b.exec(), b.copyNode(), b.copyParams(), b.ctx)
	}},
	{name: "cuGraphExecChildGraphNodeSetParams", need: func(b *bench) { b.parentExec() }, call: func(b *bench) error {
		return b.lib.GraphExecChildGraphNodeSetParams(b.parentExec(), b.childNode(), b.other())
	}},
	{name: "cuGraphLaunch", need: func(b *bench) { b.exec(); b.stream() }, call: func(b *bench) error { return b.lib.GraphLaunch(b.exec(), b.stream()) }},
}

// refusal returns nil for errors that reject an invalid argument: a function that returns such an
// error needs no context. refusal returns other errors unchanged.
func refusal(err error) error {
	for _, known := range []cuda.Result{cuda.ErrorInvalidValue, cuda.ErrorInvalidHandle, cuda.ErrorMapFailed} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}

// launchConfig returns a launch of one thread, in a cluster of one block.
func (b *bench) launchConfig() *cuda.LaunchConfig {
	a := &cuda.LaunchAttribute{Id: cuda.LaunchAttributeClusterDimension}
	*a.Value.ClusterDim() = cuda.LaunchAttributeValueClusterDim{X: 1, Y: 1, Z: 1}
	return &cuda.LaunchConfig{GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1, HStream: b.stream(),
		Attrs: a, NumAttrs: 1}
}

func both(b *bench) { b.stream(); b.mem(); b.host() }

func nodes(b *bench) { b.graph(); b.mem(); b.function() }

// try tries a function in this process. It returns the answer, unless the process crashes.
func try(name, library string, device int) (answer string) {
	i := 0
	for i < len(trials) && trials[i].name != name {
		i++
	}
	if i == len(trials) {
		return notTried + "there is no trial for it"
	}
	t := trials[i]
	b, failure := newBench(library, device)
	defer func() {
		if p := recover(); p != nil {
			answer = fmt.Sprintf("%sto make what it takes: %v", notTried, p)
		}
	}()
	must(failure)
	if !b.lib.HasSymbol(name) {
		return notTried + "the driver has no such function"
	}
	if t.need != nil {
		t.need(b)
	}
	err := withoutContext(b.lib, func() error { return t.call(b) })
	if err == nil {
		return no
	}
	if with := t.call(b); with != nil {
		return fmt.Sprintf("%sit fails with a context too: %v", notTried, with)
	}
	return yes + resultName(err)
}

// resultName returns the name of CUDA's error.
func resultName(err error) string {
	if r, ok := errors.AsType[cuda.Result](err); ok {
		return r.Name()
	}
	return err.Error()
}

// withoutContext calls a function on a thread that has no current context.
func withoutContext(lib *cuda.Library, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		for { // removes contexts that earlier calls have left on the thread
			ctx, err := lib.CtxGetCurrent()
			if err != nil || ctx == 0 {
				break
			}
			if _, err := lib.CtxPopCurrent(); err != nil {
				break
			}
		}
		done <- f()
	}()
	return <-done
}

// must panics if err is not nil.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// newBench makes a device's context current on the calling thread until the process ends. No other
// goroutine gets the thread.
func newBench(library string, device int) (b *bench, err error) {
	b = &bench{num: int32(device), made: map[string]any{}}
	runtime.LockOSThread()
	if b.lib, err = cuda.Open(cuda.Options{Path: library}); err != nil {
		return nil, err
	}
	if err := b.lib.Init(0); err != nil {
		return nil, err
	}
	if b.dev, err = b.lib.DeviceGet(b.num); err != nil {
		return nil, err
	}
	if b.ctx, err = b.lib.DevicePrimaryCtxRetain(b.dev); err != nil {
		return nil, err
	}
	return b, b.lib.CtxSetCurrent(b.ctx)
}
