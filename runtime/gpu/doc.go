// Package gpu runs work on GPUs: DAGs of it, submitted from any goroutine, in any order, far ahead.
//
// A [Semaphore] is a timeline, a value that only grows. Every operation of a [Queue] has a list of points to wait for and a
// list of points to signal, and returns at once: it may wait for a point that nobody has promised to signal yet. An
// operation whose waits are issued or reached goes to the device in the caller's own call; any other is parked, and issued
// when the last of its waits is: by the device's own thread, or, if it is the first that a signal of the host releases, by
// that signal. Waits between operations of one device never involve the host, and waits that the order of the work already
// gives cost nothing.
//
// A [Stream] is for work that comes one after the other: the operations of a queue without lists, and one error for all.
//
// A [Slice] is memory with a type, and a [TypedKernel] is a kernel whose arguments are a struct, which [Typed] checks. Neither costs
// more than the [Range] and the [Dispatch] that it stands for.
//
// A [Pool] gives out memory in the same order, for [Queue.Alloca] and [Queue.Dealloca]. A [CommandBuffer] is work recorded
// once and executed often, as a graph where the device has graphs. A [Group] is several devices. A [Channel] is a rank's end of
// a communicator, by which devices of one process or of many reduce and exchange data.
//
// Memory and events are shared with other processes of the machine: see [Buffer.Export] and [SharedEvent]. Streams and events that others
// make by the driver's own API are taken in by [Device.AdoptQueue] and [Device.AdoptEvent], and [Queue.WriteValue] and [Queue.WaitValue] hand on
// numbers in memory.
//
// # Errors
//
// There are three classes.
//
// A mistake of the caller's is returned by the call, as [ErrArgument], [ErrRange] or [ErrClosed], and nothing has changed: the
// points that the operation would have signalled are as they were, and may be signalled by another one.
//
// What goes wrong with a submission later, in the driver or on the device, in a host call or a file, fails the semaphores that
// it would have signalled, with a [SubmitError], and with them whatever waits for those, on all devices, by the same error.
// The queue, the device and all other work go on. The memory that the submission was to write may have anything in it.
//
// Work that waits for failed work does not run if it has not been issued yet. Work that was issued runs: a device cannot be stopped. Its
// signals fail with the same error, and the memory that it wrote is undefined. That happens behind a collective that fails. The optimizer's
// step that was submitted behind an all-reduce, for example, is applied to the weights although the gradients were not reduced. So restore
// or broadcast the program's state after a failure: see the example allreduce.
//
// When a device is lost everything submitted to it fails, what it has and what comes, with an error that is [driver.ErrLost]:
// parked work at once, and each call with the error too. Its memory is gone. Only Close is left to be called; it returns. Semaphores
// that have not failed go on. Other devices go on too, with one exception. If a stream of another device waits for unfinished work of the
// lost one, that device is lost too, at once, with an error that names the first. This may be any
// device whose work the program orders behind another one's, of a [Group] or not. CUDA does not open a lost device again in the same process.
//
// A channel fails as a whole, with a [ChannelError], because its ranks can go on only together: when a rank dies, when a group of
// operations fails, takes too long or misses a wait, or when somebody aborts it. The device and all else goes on, also work that was
// issued behind the channel's.
//
// A semaphore that has failed stays so. Work goes on with a new one.
//
// # Zero values
//
// A zero [Semaphore] is at 0, and works. A zero [Order], [Options], [PoolOptions], [CommandOptions], [Range] or [Grid] means what is
// said there. A zero [Device], [Queue], [Stream], [Buffer], [Slice], [Pool], [CommandBuffer], [Executable], [Kernel], [TypedKernel], [Channel],
// [ChannelMemory] or [SharedEvent] was neither opened nor made: what it is asked for or given to is [ErrArgument], what it tells is zero or nil, and to close it, or none, does
// nothing. A zero [Group] has no devices.
//
// A nil pointer, a nil context or a nil function that is given to a call is [ErrArgument], unless the call says what it means, and nothing panics:
// a point of no semaphore, a range of no buffer, a driver that is a pointer to none. Of a nil [Buffer] and a nil [Semaphore] all methods may be called,
// and are those of a zero value or [ErrArgument], so that what a failed call has returned may be passed on; Close and Shutdown of nil do nothing. Any other method of a nil
// pointer panics, as is usual in Go.
//
// # Ownership
//
// What a submission names it holds: buffers, kernels and pinned memory may be closed right after the call, and are given back
// when the work is found done. A device finds that out when somebody waits or asks, and now and then while work is submitted;
// [Queue.Flush] asks. Lists, patterns, arguments and data of updates are copied by the call. Device.Close gives back all that
// is left; buffers, executables and kernels of a closed device may still be closed, and do nothing.
//
// # Blocking
//
// Waits block, for as long as their context lets them. Close and Shutdown of devices, groups and channels block until what is in flight
// has ended, Close for up to ten seconds, and Shutdown until its context ends; their error says what did not end in
// that time ([CloseError]), and what the driver did not take back. What makes or frees native objects blocks for as long as the driver does: opening,
// allocating, importing, loading. Submitting blocks only while it makes something that later calls use again: pinned
// memory for UploadCopy, memory of a pool that grows, a graph, or a block of a recording ([Queue.Execute]). An allocation
// that finds no memory waits up to a second for unused memory. A caller that submits far faster than
// events are made waits for those before it. Nothing else blocks.
//
// # Threads
//
// Everything here is safe for concurrent use, and no method leaves a trace on the calling thread: the current device or
// context of the caller stays what it is. Functions of the program are called without locks, and may call anything here but,
// from host calls and notifications, Close and Shutdown of their own device, which waits for them.
package gpu
