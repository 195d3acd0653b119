// Package sema provides semaphores: values that only grow. The host or work signals them, and the
// host or work waits for them. The package does not know what kind of work there is. It sees work
// through two interfaces:
//
//   - A [Producer] does numbered work in order. When work has been issued, [Semaphore.Publish]
//     announces the values that it will signal. When it is over, [Semaphore.Arrive] signals them.
//   - A [Waiter] waits for one or more points. It leaves a [Timepoint] with the semaphore of each,
//     and is told when the timepoint is released.
//
// # Timepoints
//
// A timepoint is a record of "this semaphore reaches this value". The semaphore keeps it in a heap,
// ordered by value. It releases the timepoint when the value is reached or the semaphore fails. If
// the waiter only needs a producer, it releases the timepoint when the work that will signal the
// value has been issued. A timepoint belongs to a waiter, to a function of the program (OnReached),
// or to a goroutine that has parked ([Wait]). A waiter takes its timepoints from a [TimepointPool].
//
// A method that releases timepoints returns them as a chain, in order: by value, then by age. The
// caller passes the chain to [Release], [ReleaseIssuing] or [ReleaseFromHost] when it holds no
// lock. So no code of a waiter or of the program runs under a lock.
//
// # Locks
//
// Each semaphore has one mutex. While a method holds it, it calls only [Producer.Want],
// [Producer.Passed] and the function given to [Semaphore.Next]. Values and failures are atomic: if
// nothing waits for a semaphore, most operations on it take no lock.
package sema
