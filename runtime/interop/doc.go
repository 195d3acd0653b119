// Package interop lets the runtime work together with other code: with other processes of the
// machine, and with code of this process that uses the driver's own API, such as a library with
// streams of its own. It works with the devices, buffers, queues and operations of package gpu.
//
// # Streams and events
//
// [AdoptStream] makes a queue from other code's stream. An [Event] orders the runtime's work and
// other code's: [RecordEvent] and [WaitEvent] are operations, which [gpu.Stream.Do] and
// [gpu.Queue.Submit] take. [NewEvent] makes an event, and [AdoptEvent] takes one that other code
// made. [Begun] makes a launch record an event when its blocks have begun to run.
//
// # Memory
//
// [ImportPointer] makes a buffer from memory that other code of this process has allocated. To give
// other code memory of the runtime, pass it [gpu.Buffer.Ptr].
//
// There are three ways to share memory with other processes:
//
//   - [ExportMemory] makes a handle of memory of kind [gpu.DeviceMem] that [gpu.Device.Alloc] has
//     allocated. The handle is small: any connection can carry it. [ImportMemory] takes the handle.
//     CUDA and HIP support this.
//   - [ExportMemoryFile] makes a file of memory of kind [gpu.ShareableMem]. [ImportMemoryFile]
//     takes it. The memory outlives the process that allocated it. CUDA on Linux supports this.
//   - [ExportPool] makes a file of a pool, and [ImportPool] takes it. Then [ExportMemory] makes
//     handles of memory of the pool, and [Pool.Import] takes them. CUDA on Linux supports this.
//
// [NewSharedEvent] makes an event for other processes, [Event.Export] makes a handle of it, and
// [ImportEvent] takes the handle.
//
// # Values
//
// [WriteValue] writes a number to memory. [WaitValue] waits until a number in memory is large
// enough. The other side may be the host, a kernel, a network card or another process. Recordings
// take these operations too.
//
// # Calling libraries
//
// A library that is given a stream with each call does not need this package: see [gpu.Native].
package interop
