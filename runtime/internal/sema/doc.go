// Package sema provides semaphores. A semaphore is a 64-bit value that only grows, like a Vulkan
// timeline semaphore. The host signals it, and so does finished work. The host and other work can
// wait until the semaphore reaches a value. The package knows work only through two interfaces:
//
//   - A [Producer] is a sequence of numbered work, such as a GPU stream. When work has been issued,
//     [Semaphore.Publish] announces the values that the work will signal. When the work is done,
//     [Semaphore.Arrive] raises the semaphore to the announced values.
//   - A [Waiter] waits for one or more points. A [Point] is a semaphore and a value. The waiter
//     registers a [Timepoint] with the semaphore of each point that is not reached, and is called
//     when the timepoint is released.
//
// # Timepoints
//
// A timepoint is one registered wait for a value of a semaphore. The semaphore keeps its timepoints
// in heaps, ordered by value. To release a timepoint means to remove it from its heap and to notify
// its owner. A timepoint is released when the value is reached or the semaphore fails, unless
// [Timepoint.Cancel] has removed it before. A timepoint registered with [UntilIssued] is also
// released when work that will signal the value has been issued.
//
// The owner of a timepoint is a waiter, a function that the program gave to [Semaphore.OnReached],
// or a goroutine that is blocked in [Wait] or [Semaphore.WaitIssued]. A waiter may take timepoints
// from a [TimepointPool].
//
// A method that releases timepoints, except [Semaphore.Signal], only removes them from the heaps.
// It returns them as a linked list: first the timepoints registered with [UntilIssued], then all
// others. Each of these two groups is ordered by value and then by age. The caller passes the list
// to [Release], [ReleaseIssuing] or [ReleaseFromHost], which notify the owners. So owners are
// notified with no semaphore locked.
//
// # Locks
//
// Each semaphore has one mutex. While the mutex is held, the package calls no outside code except
// [Producer.Want], [Producer.Passed] and the function given to [Semaphore.Next]. Values and
// failures are atomic: reading them takes no lock. A signal from the host takes no lock either if
// the semaphore has no timepoint and no signal in flight.
package sema
