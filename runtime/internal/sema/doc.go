// Package sema provides semaphores: values that only grow. The host or work signals them, and the
// host or work waits for them. The package does not know what kind of work there is. It knows work
// only through two interfaces:
//
//   - A [Producer] does numbered work in order. When work has been issued, [Semaphore.Publish]
//     announces the values that the work will signal. When the work is over, [Semaphore.Arrive]
//     signals them.
//   - A [Waiter] waits for one or more points. It registers a [Timepoint] with the semaphore of
//     each, and is called when the timepoint is released.
//
// # Timepoints
//
// A timepoint is registered with a semaphore and stands for a wait for one value. The semaphore
// keeps its timepoints in heaps, ordered by value. It releases a timepoint when the value is
// reached or the semaphore fails. A waiter may only need to know
// that the work which will signal the value has been issued. Then the semaphore releases the
// timepoint at that moment.
//
// A timepoint belongs to a waiter, to a function of the program (OnReached), or to a goroutine that
// is blocked in [Wait]. A waiter takes its timepoints from a [TimepointPool].
//
// A method that releases timepoints returns them as a linked chain, ordered by value and then by
// age. The caller passes the chain to [Release], [ReleaseIssuing] or [ReleaseFromHost] after it has
// released its locks. So no code of a waiter or of the program runs under a lock.
//
// # Locks
//
// Each semaphore has one mutex. A method that holds it calls no outside code except
// [Producer.Want], [Producer.Passed] and the function given to [Semaphore.Next]. Values and
// failures are atomic: if nothing waits for a semaphore, most operations on it take no lock.
package sema
