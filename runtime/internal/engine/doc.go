// Package engine is the scheduler: it gives operations to native streams, in the order that semaphores ask
// for, and finds out when they are done.
//
// It knows devices of a [driver.Driver], timelines, semaphores (package sema) and operations (package
// work). It does not know what an operation works with. The layers above it, package gpu first of all, show
// it their things through seven small interfaces:
//
//   - [Owner] is the device that the layers above know. It makes queues, frees memory, makes errors.
//   - [Action] is an operation that is more than native calls: an allocation, an execution, a collective.
//   - [Rest] is the part of a record that belongs to the layers above.
//   - [Holder] is a thing that work uses: memory, code, a recording.
//   - [Memory] has an address, perhaps only from its allocation on.
//   - [Lane] is a queue that issues in an order of its own on a thread of its own: a communicator's.
//   - [Observer] is told what becomes of one submission: a tracer.
//
// # The way of a fill
//
// Queue.Fill checks its arguments and takes a record from its timeline ([Timeline.Get]). The record is a
// [Submission] with what package gpu needs besides. Fill sets the operation (Op), its address (Dst), the
// buffer that it uses (Holds), waits and signals, and calls [Timeline.Submit]. From then on the record is the
// scheduler's. These steps follow, each in the file named:
//
//  1. timeline.go, Timeline.issue. No lock is held. The record gets an event. The waits become marks
//     (gather): "behind number n of that timeline". If nobody has issued what a wait is for, the submission
//     is early: step 6.
//  2. timeline.go, lockFor and findEvents. Marks that the stream comes after anyway are left out
//     (cover.go). Behind each other mark an event is looked up, or recorded (mark.go). Then the timeline's
//     mu is locked.
//  3. timeline.go, give. With mu locked: the uses get the mark of the next number, the stream is told to
//     wait for the events, the operation makes its native calls, and an event is recorded if mark.go says
//     that one is needed now.
//  4. timeline.go, announce and enter. Still locked: the signals are published with the number, so that
//     others can come after it, and the submission goes into the ring (ring.go). Then mu is unlocked, and
//     what was parked for these signals is released.
//  5. Somebody asks the device (poll.go, Timeline.poll): a waiter, the poller, or every 128th submitter. If
//     an event has been passed, retire.go takes the submissions up to there out of the ring, gives their
//     signals, lets go of what they held, and puts the records back (records.go).
//  6. A submission that is early is parked (submit.go, parking.go): it leaves a timepoint with each
//     semaphore. The last timepoint that is released makes it ready. Then the pending-queue thread
//     (pendingqueue.go), or the goroutine that signals, begins at step 1.
//
// # What holds
//
// A timeline's mu is held during the native calls of one submission, and never while waiting for another
// timeline. Lane threads are the exception: the library may keep one inside a call. So nobody waits for the
// mu of a timeline with a lane except work of that lane, and Close.
//
// Numbers say everything: issued, marked (an event is behind it) and passed only grow. Memory, events,
// recordings and Close look at what streams have passed. Signals may be given earlier, because
// work can fail before its stream has passed it (earlyfailure.go).
//
// A record is used by one goroutine at a time: the submitter, whoever issues it, whoever retires it. While it
// is in the ring, others read it under the ring's mu. A parked record is under the device's mu, and counts its
// open waits.
//
// Nothing is allocated on this way, except the first time: records, events and timepoints come from pools.
package engine
