// Package gpu runs work on GPUs: DAGs of it, submitted from any goroutine, in any order, far ahead.
//
// A [Semaphore] is a timeline, a value that only grows. Every operation of a [Queue] has a list of points to wait for and a
// list of points to signal, and returns at once: it may wait for a point that nobody has promised to signal yet. An
// operation whose waits are issued or reached goes to the device in the caller's own call; any other is parked, and the
// device's own thread issues it when the last of its waits is issued. Waits between operations of one device never involve
// the host, and waits that the order of the work already gives cost nothing.
//
// # Errors
//
// There are three classes. A caller's mistake is returned by the call, and nothing has changed. What goes wrong with a
// submission later fails the semaphores that it would have signalled, and with them whatever waits for those; other work is
// untouched. When a device is lost everything submitted to it fails, now and later, with an error that is [driver.ErrLost];
// other devices go on.
//
// # Threads
//
// Everything here is safe for concurrent use, and no method leaves a trace on the calling thread: the current device or
// context of the caller stays what it is.
package gpu
