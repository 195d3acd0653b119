// Package gpu runs work on GPUs. Programs submit it from any goroutine, in any order, and far ahead
// of the device.
//
// # The names to begin with
//
//	dev, err := gpu.Open(driver, 0, gpu.Options{})     // a Device
//	stream := dev.Queue(0).NewStream()                 // a Stream: work in order
//	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, n)
//	module, err := dev.Load(image)                     // a Module: PTX, cubin, …
//	kernel, err := module.Kernel("scale")              // a Kernel
//	err = stream.Do(
//		x.Upload(data),
//		gpu.Launch(kernel, gpu.GridFor(n, 256), x, float32(2), uint32(n)),
//		x.Download(data),
//	)
//	err = stream.Wait(ctx)
//
// [Open] opens a [Device]. A [Stream] does operations in order and has one error for all of them. A
// [Slice] is device memory with a type, a [Buffer] is memory in bytes, and a [Range] is a part of a
// buffer. A [Module] is loaded code, a [Kernel] is an entry point of it, and a [Grid] is the shape
// of a launch. tools/kernelgen generates Go code that loads modules and launches kernels. The
// compiler then checks the arguments of launches.
//
// An [Op] says what to do. [Fill], [Copy], [Upload], [Download], [Launch], [Execute], [HostCall]
// and other functions make Ops, and so do methods of Slice and of generated kernels. Three methods
// take Ops: [Stream.Do], [Queue.Submit] and [CommandBuffer.Add].
//
// # Beyond one stream
//
// A [Queue] does operations in any order that semaphores allow. A [Semaphore] is a timeline, a
// value that only grows. A [Point] is a value of a semaphore. Every operation of a queue has an
// [Order]: a list of points to wait for and a list of points to signal. The call returns without
// waiting for these points. The operation may wait for a point before any work that signals the
// point has been submitted. A wait is issued when a device has been given the work that signals the
// point. If all waits are issued or reached, the call itself gives the operation to the device.
// Otherwise the operation is parked, and is given to the device when its last wait is issued or
// reached. When a device has been given an operation, the device waits without the host. If the
// order of the work already satisfies a wait, the device has nothing to wait for. [Stream.Point]
// and [Stream.After] connect streams with each other and with queues.
//
// A [Pool] gives out memory in the order of the work: see [Alloc] and [Free]. A [CommandBuffer] is
// work that is recorded once and executed often. It runs as a graph if the device has graphs and a
// graph is worth its cost ([Mode]). A [Group] is several devices. Package collective has
// communicators, through which devices of one process or of many reduce and exchange data.
//
// [Native] calls other libraries. Package interop shares memory and events with other processes of
// the machine, takes in streams and events of other code, and makes operations that exchange
// numbers in memory with other code.
//
// # Errors
//
// There are three classes of errors.
//
// First, mistakes of the caller. The call returns them, for example as [ErrArgument], [ErrRange] or
// [ErrClosed]. In a queue such a call has changed nothing: another operation may still signal the
// points that the refused operation would have signalled. A Stream fails with the error.
//
// Second, failures after the call: in the driver, on the device, in a host call or in a file. Such
// a failure fails the semaphores that the operation would have signalled, with a [SubmitError].
// Everything that waits for these semaphores fails with the same error, on all devices. The queue,
// the device and all other work go on. The contents of the memory that the operation was to write
// are undefined.
//
// Work that waits for failed work does not run if it has not been issued yet. Work that was issued
// runs, because a device cannot be stopped. Its signals fail with the same error, and the contents
// of the memory that it wrote are undefined. For example, work that was issued behind a collective
// runs even if the collective fails. Then an optimizer changes the weights by gradients that were
// not reduced. So restore or broadcast the program's state after a failure: see the example
// allreduce.
//
// Third, the loss of a device. When a device is lost, all its unfinished and parked work fails
// immediately with an error that is [ErrLost]. Work submitted later fails too. The device's memory
// is gone, and only Close is useful. Semaphores that have not failed can still be used. Other
// devices go on, with one exception. If a stream of another device waits for unfinished work of the
// lost device, the other device is lost too. Its error names the device that was lost first. CUDA
// does not open a lost device again in the same process.
//
// The ranks of a communicator of package collective can go on only together. So a communicator
// fails as a whole: when a rank dies, when a group of operations fails or takes too long, when a
// wait of a group fails, or when the program aborts the communicator. The device goes on, and so
// does work that was issued behind the group.
//
// A semaphore that has failed stays failed. To go on, use a new semaphore.
//
// # Nil and zero values
//
// A zero [Semaphore] is at 0, and works. A zero [Order], [Options], [PoolOptions],
// [CommandOptions], [Grid] or [LaunchAttrs] means what its documentation says. A zero [Group] has
// no devices. A zero value of any other type cannot be used. Operations on such a value, and
// operations that take it as an argument, return [ErrArgument]. The error names the operation and
// the type. Methods of the value that only return facts return zero or nil. Closing the value does
// nothing.
//
// A nil pointer behaves like a pointer to a zero value, so the result of a failed call may be
// passed on. A nil [Semaphore] is the exception: operations on it return [ErrArgument]. If an
// argument of a call is a nil pointer, context or function, the error is [ErrArgument], unless the
// documentation of the call gives nil a meaning. Nothing panics, even for a point without a
// semaphore or a range without a buffer. Methods that have a value as their receiver, such as the
// methods of [Slice] and [Op], cannot be called through a nil pointer.
//
// # Ownership
//
// A submission holds the objects that it names. Buffers and modules may be closed right after the
// call, and are released when the work is known to be done. A device looks for finished work when
// the program waits or queries, and now and then while work is submitted. [Queue.Flush] makes the
// device look at once. Lists, patterns and arguments are copied by the call. Device.Close releases
// all remaining objects. Buffers and modules of a closed device may still be closed, which does
// nothing.
//
// # Blocking
//
// Waits block as long as their context lets them. Close and Shutdown of devices, groups and
// communicators block until the work in flight has ended: Close for up to ten seconds, Shutdown
// until its context ends. Their error counts the work that did not end in time ([CloseError]), and
// says whether native objects were left to the driver. Calls that make or free native objects block
// as long as the driver does: opening, allocating, importing, loading. Submitting blocks while the
// call makes something that later calls use again: pinned memory for an upload or a download,
// memory of a pool that grows, scratch memory of a queue ([Op.Scratch]), a graph, or an instance of
// a recording ([Execute]). An allocation that finds no memory waits up to a second for unused
// memory. A caller that submits faster than the runtime makes events waits for an event. Otherwise
// calls block only if their documentation says so.
//
// # Threads
//
// All functions and methods of this package are safe for concurrent use. Only an [Op] that writes
// memory of the program, or has a [Timing], must not be used by several goroutines at a time. No
// method changes the calling thread's current device or context. Functions of the program are
// called without locks, and may call this package, with one exception: host calls and notifications
// must not call Close or Shutdown of their own device, because Close and Shutdown wait for them.
// Functions given to [Native] have rules of their own.
package gpu
