// Package simdriver is a simulated GPU in Go, for tests. It implements [driver.Driver] with
// streams, events, memory, modules and kernels, and needs no hardware.
//
// A [Driver] simulates one or several devices. Each stream executes its operations in order on its
// own goroutine, events mark positions in streams, and streams wait for events of any device of the
// driver. Kernels are Go functions, registered by name ([NewKernel]). A program that loads PTX runs
// them in place of the kernels with the same names.
//
// The devices implement [driver.Pools], [driver.Graphs], [driver.Timers], [driver.Peers],
// [driver.Comms], [driver.CommSuspension], [driver.MemInfo], [driver.Links], [driver.Occupancy],
// [driver.Compilers], [driver.Priorities], [driver.Adopter], [driver.Values], [driver.IPCMem],
// [driver.IPCEvents], [driver.MemSharing] and [driver.PoolSharing] if their [driver.Caps] say so;
// otherwise these methods fail with [driver.ErrUnsupported]. Nodes of a graph without an order
// execute concurrently. A dependent launch begins when the previous one is done, and priorities
// have no effect.
//
// The ranks of a communicator are devices of one Driver. A collective waits in its stream, as a
// kernel would, until the other ranks' streams have reached theirs; then all of it is done. If
// ranks disagree, or one goes away, the others hang until AbortComm, and CommError returns an
// error. As with NCCL only ranks that joined plainly can be suspended, and a suspended one takes
// its memory again, together with the others, before it is destroyed. Floats are reduced as float64
// and rounded once; integers wrap.
//
// A multiprocessor holds as many blocks of a kernel as its limits in [driver.Info] allow: threads,
// counted in whole warps, blocks, registers (32 for every thread), and shared memory.
//
// A stream that waits for a value in memory looks at it at least each millisecond. Values are
// written and read atomically, and the program must do so too.
//
// Drivers with the same [Machine] are processes of one machine, which share memory and events.
//
// The compiler only reads the names of the kernels in a source, which must be registered. It does
// not find kernels made by a macro, and does find kernels that a condition excludes.
//
// # Strictness
//
// The simulated devices do what a GPU may do in the worst case. An access outside an allocation, or
// to freed memory, is found when the operation executes, and loses the device: see [AccessError].
// Memory of a pool exists from the moment when a stream executes the allocation until one executes
// the free, and its addresses are reused as soon as stream order allows that. A kernel that uses
// memory of another device needs [driver.Peers], or access to its pool; fills and copies of
// ordinary memory need neither. Handles must be of the right device and not destroyed. Until
// CommReady has reported that a communicator is made, it can only be aborted or destroyed. With
// [Config.Strict] a creating call fails on a thread where another device, or none, is current.
// Operations read and write memory with plain Go code, so the race detector finds accesses without
// an order by streams and events.
//
// # Faults and control
//
// [Driver.Inject] makes calls fail, or operations when they execute. [Driver.LoseDevice] loses a
// device, [Driver.KillComm] a rank of a communicator, [Driver.Kill] a process. [Driver.StallStream]
// and [Driver.StallDevice] hold operations back, and [Driver.SetLatency] makes them slow. A fault
// without a number whose error is [driver.ErrUnsupported] stands for a feature that a library
// lacks. [Driver.Counters] counts the calls and the live objects, and [Driver.Leaks] names leaks.
//
// With [Config.Deterministic] nothing executes by itself: [Driver.Step] executes one of the ready
// operations, chosen by [Config.Seed]. Without it the driver works inside bubbles of
// testing/synctest: its goroutines block only on channels and timers.
package simdriver
