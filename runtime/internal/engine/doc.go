// Package engine is the scheduler. It issues operations to native streams, in the order that
// semaphores define, and finds out when they are done.
//
// It knows devices of a [driver.Driver], timelines, semaphores (package sema) and operations
// (package work). It does not know the objects that operations use, such as buffers and recordings.
// The layers above, mainly package gpu, give it access to those through seven small interfaces:
//
//   - [Owner] is the device object of the layers above. It makes queues, frees memory, makes
//     errors.
//   - [Action] is an operation that is more than native calls: an allocation, an execution, a
//     collective.
//   - [Rest] is the part of a submission's record that belongs to the layers above.
//   - [Holder] is a thing that work uses: memory, code, a recording.
//   - [Memory] has an address, perhaps only from its allocation on.
//   - [Lane] is a queue that issues in an order of its own on a thread of its own: a
//     communicator's.
//   - [Observer] follows one submission, for a trace or a Timing.
//
// # How a fill is executed
//
// Queue.Fill checks its arguments and takes a record from its timeline ([Timeline.Get]). The record
// is a [Submission] together with the data of package gpu. Fill sets the operation (Op), its
// address (Dst), the buffer that it uses (Holds), waits and signals, and calls [Timeline.Submit].
// From then on the record belongs to the scheduler. These steps follow, each in the file named:
//
//  1. timeline.go, Timeline.issue. No lock is held. The record gets an event. The waits become
//     marks (gather): "behind number n of that timeline". If no work that would satisfy a wait has
//     been issued, the submission is Early and continues with step 6.
//  2. timeline.go, lockFor and findEvents. Marks that the stream is ordered after anyway are
//     removed (cover.go). For each other mark an event behind it is looked up, or recorded
//     (mark.go). Then the timeline's mu is locked.
//  3. timeline.go, give. With mu locked, the mark of the next number is added to the uses of the
//     memory, the stream is made to wait for the events, and the operation makes its native calls.
//     An event is recorded if mark.go says that one is needed now.
//  4. timeline.go, announce and enter. With mu still locked, the signals are published with the
//     number, so that other work can wait for them, and the submission is put into the ring
//     (ring.go). Then mu is unlocked, and timepoints that waited for these signals are released.
//  5. timeline.go, Timeline.Poll. A goroutine that waits, the poller (poll.go), or every 128th
//     submitter queries the driver. If an event is complete, retire.go takes the submissions up to
//     that event out of the ring, gives their signals, releases what they held, and recycles the
//     records (records.go).
//  6. submit.go, parking.go. An Early submission is parked: it registers a timepoint with the
//     semaphore of each wait. The last timepoint that is released makes it ready. Then the
//     pending-queue thread (pendingqueue.go), or the goroutine that signals, starts at step 1.
//
// # Invariants
//
// A timeline's mu is held during the native calls of one submission, and never while waiting for
// another timeline. Lane threads are the exception: the communication library may keep such a
// thread inside a call, with mu held. So only the lane's own work and Close wait for the mu of a
// timeline with a lane.
//
// The numbers of a timeline only grow: issued, marked (an event is recorded behind it) and passed.
// Memory, events, recordings and Close depend only on what streams have passed. Signals may be
// given earlier, because work can fail before its stream has passed it (earlyfailure.go).
//
// Only one goroutine at a time uses a record: the submitter, then the goroutine that issues it,
// then the one that retires it. While the record is in the ring, others read it under the ring's
// mu. While it is parked, the device's mu protects its place in the list, and an atomic counts its
// open waits.
//
// Submitting, issuing and retiring allocate nothing in the steady state: records, events and
// timepoints come from pools.
package engine
