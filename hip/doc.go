// Package hip binds the HIP runtime API of ROCm without cgo: the functions of its headers from 5.2 to 7.2.
//
// [Open] finds libamdhip64 and resolves its functions. Every function is a method of [Library]: inputs are arguments,
// outputs are results, and the last result is an error, nil on success. An error code is a [Result], a constant: compare
// it with errors.Is(err, hip.ErrorNotReady). A function that the library lacks returns a [*dl.SymbolError] that names the
// release that brought it.
//
// The bindings are proven against an echo library and against the real libraries' symbols; they have not been run on an
// AMD GPU.
//
// # Releases
//
// The headers of 5.2 to 7.2 were compared with each other. A function for which the library's release has another struct, other numbers of an
// enumeration or other parameters than this package is not called, and returns a [*dl.SymbolError] that says what differs and what to call
// instead, if there is something; the function's documentation says it, too. These are
//
//   - before 5.3 MemCreate, MemGetAllocationGranularity and MemGetAllocationPropertiesFromHandle
//   - before 5.5 GraphNodeGetType
//   - before 6.0 DrvMemcpy3D, DrvMemcpy3DAsync, DrvMemcpy2DUnaligned, MemcpyParam2D, MemcpyParam2DAsync, PointerGetAttributes,
//     SignalExternalSemaphoresAsync and WaitExternalSemaphoresAsync
//   - from 7.0 on DrvGraphAddMemsetNode and DrvGraphExecMemsetNodeSetParams
//
// What goes without a type is as the library has it: before 6.0 PointerGetAttribute and DrvPointerGetAttributes write 0 for host
// memory and 1 for a device's, and IpcOpenMemHandle takes 0 in place of IpcMemLazyEnablePeerAccess.
//
// # Threads
//
// HIP keeps the current device per OS thread, and a goroutine moves between threads: lock it with [runtime.LockOSThread]
// from SetDevice on until the last call that needs it. Device 0 is current where nothing was set.
package hip

//go:generate go run github.com/puregpu/puregpu/tools/gen hip
