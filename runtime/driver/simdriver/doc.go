// Package simdriver is a GPU made of Go: it satisfies [driver.Driver] with streams, events, memory, modules and kernels
// that need no hardware, and it is made for tests of programs that use GPUs.
//
// A [Driver] simulates one device or several. Each stream executes its operations in order on a goroutine of its own,
// events mark positions in streams, and streams wait for events of any device of the driver. Kernels are Go functions
// that are registered by name ([NewKernel]); a program that loads PTX runs them in place of the kernels of the same names.
//
// The devices are [driver.Pools], [driver.Graphs], [driver.Timers], [driver.Peers], [driver.Comms], [driver.CommSuspension], [driver.MemInfo],
// [driver.Links], [driver.Occupancy], [driver.Compilers], [driver.Priorities], [driver.Adopter], [driver.Values], [driver.IPCMem], [driver.IPCEvents],
// [driver.MemSharing] and [driver.PoolSharing] as far as their [driver.Caps] say so; where they do not, the methods fail with [driver.ErrUnsupported]. Nodes of a graph that no path orders execute concurrently. A dependent launch begins when the one in
// front of it is done, as any other, and priorities are kept and told, but nothing follows them.
//
// The ranks of a communicator are devices of one Driver. What a rank collects waits in its stream, as a kernel would, until the
// other ranks' streams have come as far; then all of it is done. Where ranks disagree, or one goes away, the others hang until
// AbortComm, and find an error in CommError. As with NCCL only ranks that joined plainly can be suspended,
// and one that is suspended takes its memory again, together with the others, before it is destroyed. Floats are reduced as float64 and rounded once; integers wrap.
//
// A multiprocessor holds as many blocks of a kernel as its limits in [driver.Info] allow: threads, counted in whole warps, blocks,
// registers, of which every thread has 32, and shared memory.
//
// A stream that waits for a value in memory looks for it every now and then, at least each millisecond. Values are written and read as
// atomics are, and so should they be by whoever else does.
//
// Drivers that have the same [Machine] are processes of one machine, which share memory and events.
//
// Of a source that is compiled only the kernels' names are read, which must be registered. Those that a macro makes are not
// found, and those that a condition leaves out are.
//
// # What it is strict about
//
// The simulated devices do what a GPU may do at worst. An access outside an allocation, or to freed memory, is found when
// the operation executes, and loses the device: see [AccessError]. Memory of a pool is there from the moment at which a
// stream executes the allocation until one executes the free, and its addresses are used again as soon as stream order
// allows that. A kernel that touches memory of another device needs [driver.Peers], or access to the pool that it is of;
// fills and copies of ordinary memory need neither. Handles are checked, on the right device and alive.
// Handles of communicators are good for nothing but their end until CommReady has been asked and has said so.
// With [Config.Strict] a creating call from a thread on which another device is current, or none, fails. An operation in execution
// reads and writes the memory with plain Go code, so that the race detector finds accesses that no stream and no event
// orders.
//
// # What tests can do with it
//
// [Driver.Inject] makes calls fail or makes operations fail when they execute, [Driver.LoseDevice] takes a device away,
// [Driver.KillComm] a rank of a communicator, [Driver.Kill] a process; [Driver.StallStream] and [Driver.StallDevice] hold operations back,
// [Driver.SetLatency] makes them slow. A fault without a number whose error is [driver.ErrUnsupported] stands for what a library
// lacks.
// [Driver.Counters] counts the calls and the live objects, and [Driver.Leaks] names what was not given back.
//
// With [Config.Deterministic] nothing executes by itself: [Driver.Step] executes one operation of those that are ready,
// chosen by [Config.Seed]. Without it the driver works inside bubbles of testing/synctest: its goroutines block on
// channels and timers only.
package simdriver
