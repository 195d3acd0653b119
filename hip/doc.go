// Package hip binds the HIP runtime API of ROCm without cgo: the functions of its headers from 5.2
// to 7.2.
//
// [Open] finds libamdhip64 and resolves its functions. Every function is a method of [Library]:
// inputs are arguments, outputs are results, and the last result is an error, nil on success. An
// error code is a constant of type [Result]: compare it with errors.Is(err, hip.ErrorNotReady). A
// function that the library lacks returns a [*dl.SymbolError] that names the release that
// introduced it.
//
// The bindings are tested with a C library that records calls, and against the real libraries'
// symbols. They have not been run on an AMD GPU.
//
// # Releases
//
// In some releases a function takes another struct, other enumeration values or other parameters.
// The method then does not call the function. It returns a [*dl.SymbolError] that says what differs
// and what to call instead. The method's documentation says so too. The methods refuse these
// functions in these releases:
//
//   - before 5.3 MemCreate, MemGetAllocationGranularity and MemGetAllocationPropertiesFromHandle
//   - before 5.5 GraphNodeGetType
//   - before 6.0 DrvMemcpy3D, DrvMemcpy3DAsync, DrvMemcpy2DUnaligned, MemcpyParam2D,
//     MemcpyParam2DAsync, PointerGetAttributes, SignalExternalSemaphoresAsync and
//     WaitExternalSemaphoresAsync
//   - from 7.0 on DrvGraphAddMemsetNode and DrvGraphExecMemsetNodeSetParams
//
// Plain integers pass unchanged, with the library's meaning: before 6.0 PointerGetAttribute and
// DrvPointerGetAttributes write 0 for host memory and 1 for device memory, and IpcOpenMemHandle
// takes 0 instead of IpcMemLazyEnablePeerAccess.
//
// # Threads
//
// HIP keeps the current device per OS thread, and a goroutine moves between threads. Call
// [runtime.LockOSThread] before SetDevice, until the last call that needs the device. A thread
// starts with device 0.
package hip

//go:generate go run github.com/puregpu/puregpu/tools/gen hip
