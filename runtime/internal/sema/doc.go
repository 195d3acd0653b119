// Package sema provides semaphores: values that only grow, signalled by the host or by work and
// awaited by either. It does not know what kind of work there is. Two interfaces are all that it
// sees of it:
//
//   - A [Producer] does numbered work in order. Work that has been issued announces the values that
//     it will signal with [Semaphore.Publish], and signals them with [Semaphore.Arrive].
//   - A [Waiter] waits for one or more points. It leaves a [Timepoint] with the semaphore of each, and
//     is told when that is released.
//
// # Timepoints
//
// A timepoint is a record of "this semaphore reaches this value". The semaphore keeps it in a heap,
// ordered by value, and releases it when the value is reached, when the semaphore fails or, if that is
// all the waiter needs, when the work that will signal the value has been issued. Three kinds of owner
// have timepoints: a waiter, a function of the program (OnReached), and a goroutine that has parked
// ([Wait]). A waiter takes its timepoints from a [TimepointPool].
//
// A method that releases timepoints returns them as a chain, in order: by value, then by age. Its
// caller passes the chain to [Release], [ReleaseIssuing] or [ReleaseFromHost] once it holds no lock. So
// no code of a waiter or of the program runs under a lock.
//
// # Locks
//
// Each semaphore has one mutex. While a method holds it, it calls nothing but [Producer.Want],
// [Producer.Passed] and the function given to [Semaphore.Next]. Values and failures are atomic: most operations on a semaphore that nothing waits
// for take no lock.
package sema
