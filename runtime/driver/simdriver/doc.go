// Package simdriver is a simulated GPU in Go, for tests. It implements [driver.Driver] with
// streams, events, memory, modules and kernels, and needs no hardware.
//
// A [Driver] simulates one or several devices. Each stream executes its operations in order on its
// own goroutine. Events mark positions in streams. A stream can wait for events of any device of
// the driver. Kernels are Go functions, made by [NewKernel] and listed by name in [Config.Kernels].
// If a program loads PTX, the Go functions run in place of the kernels with the same names.
//
// The devices implement almost all optional interfaces of package driver. A call that needs a
// feature which the device's [driver.Caps] do not announce fails with [driver.ErrUnsupported].
// Unordered nodes of a graph execute concurrently. A dependent launch begins when the previous
// launch is done. Priorities have no effect. Pages of virtual memory can be mapped at several
// places on 64-bit Linux; elsewhere a second place is ErrUnsupported.
//
// The ranks of a communicator are devices of one Driver. A collective waits in its stream, like a
// kernel, until the streams of all ranks have reached it. Then the collective executes for all
// ranks. If ranks disagree, or one leaves, operations that need all ranks hang until AbortComm, and
// CommError returns an error. As with NCCL, only ranks that joined with CommDesc.Plain can be
// suspended. DestroyComm resumes a suspended rank first, so it waits for the other ranks. Floats
// are reduced as float64 and rounded once; integers wrap.
//
// A multiprocessor holds as many blocks of a kernel as four limits of [driver.Info] allow: threads
// in whole warps, blocks, registers (32 for every thread), and shared memory.
//
// A stream that waits for a value in memory polls it at least once a millisecond. Values are read
// and written atomically, and the program must do so too.
//
// Drivers with the same [Machine] are processes of one machine, and can share memory and events.
//
// The compiler reads only the names of the kernels in a source. Each must be in [Config.Kernels].
// The compiler does not find kernels that a macro makes. It does find kernels that a preprocessor
// condition excludes.
//
// # Strictness
//
// The simulated devices do what a GPU may do in the worst case:
//
//   - An access outside an allocation, or to freed memory, is found when the operation executes,
//     and loses the device: see [AccessError].
//   - Memory of a pool exists from the moment when a stream executes the allocation until a stream
//     executes the free. Its addresses are reused as soon as stream order allows.
//   - A kernel needs EnablePeer before it uses memory of another device's Alloc. All operations
//     except CopyPeer need AccessPool before they use another device's pool.
//   - Handles must be of objects that exist. Most must be of the same device.
//   - Until CommReady has returned true, a rank accepts only CommReady, CommError, AbortComm and
//     DestroyComm.
//   - With [Config.Strict] a call that needs a bound thread fails on a thread where the device is
//     not current.
//
// Operations read and write memory with plain Go code, so the race detector finds accesses that
// streams and events do not order.
//
// # Faults and control
//
// [Driver.Inject] makes calls fail, or operations when they execute. [Driver.LoseDevice] loses a
// device, [Driver.KillComm] a rank of a communicator, [Driver.Kill] a process. [Driver.StallStream]
// and [Driver.StallDevice] hold operations back, and [Driver.SetLatency] makes them slow. A fault
// whose N is 0 and whose error is [driver.ErrUnsupported] simulates a library without the feature.
// [Driver.Counters] counts the calls and the live objects, and [Driver.Leaks] names leaks.
//
// With [Config.Deterministic] nothing executes by itself: [Driver.Step] executes one of the ready
// operations, chosen by [Config.Seed]. Without Deterministic the driver works inside bubbles of
// testing/synctest: its goroutines wait only for channels, timers and wait groups.
package simdriver
