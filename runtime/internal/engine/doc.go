// Package engine is the scheduler. It issues operations to native streams (CUDA or HIP streams), in
// the order that semaphores define, and finds out when the operations are done.
//
// The engine knows devices of a [driver.Driver], timelines, semaphores (package sema) and
// operations (package work). The engine does not know the objects that operations use, such as
// buffers and recordings. The layers above (packages memory, recording, comm and gpu) give the
// engine access to these objects through seven small interfaces:
//
//   - [Owner] is the device object of the layers above. It creates queues, frees memory and makes
//     errors.
//   - [Action] is an operation that is more than native calls: an allocation, an execution, a
//     collective.
//   - [Rest] is the data of a submission that belongs to the layers above.
//   - [Holder] is a thing that work uses: memory, code, a recording.
//   - [Memory] is device memory. Its address may be unknown until its allocation has been issued.
//   - [Lane] is the queue of a communicator. It issues operations on a thread of its own, in the
//     order of the calls.
//   - [Observer] follows one submission, for a trace or a Timing.
//
// # Words
//
// A Submission is one operation with its waits and signals. A [Timeline] is a native stream whose
// submissions are numbered 1, 2, 3, … A submission is issued when its native calls have been made.
// The stream has passed a submission when an event behind the submission is complete. Then the
// submission is retired: its signals are given, the objects that it holds are released, and the
// Submission is recycled. A submission that is issued and not retired is in flight.
//
// Each wait is for a point: a value of a semaphore. The work for a wait is the work that will
// signal that point. A wait is open while its point is not reached and the work for it has not been
// issued. For a host call, for a submission that waits for a device of another driver, and for a
// published barrier (barrier.go), a wait is open until its point is reached. A submission is parked
// while one of its waits is open. When no wait is open any more, the submission is ready.
//
// # How a fill is executed
//
// Queue.Submit, in package gpu, calls the function for the kind of its Op, here Queue.fill. That
// function checks the arguments and takes a Submission from the queue's timeline ([Timeline.Get]).
// Queue.fill sets the operation (Op), the address to fill (Dst), the buffer (Holds), the waits and
// the signals, and calls [Timeline.Submit]. From then on the Submission belongs to the scheduler.
// The following steps are taken, each in the file named:
//
//  1. timeline.go, Timeline.issue. No lock is held. If the submission has no event, issue takes one
//     from the pool (equip). The waits of the submission are turned into marks (gather). A mark
//     means "behind number n of timeline t". If the work for a wait has not been issued, the
//     outcome is Early, and step 6 follows.
//  2. timeline.go, lockFor and findEvents. Marks that the stream is already ordered after are
//     removed (cover.go). For each mark that is left, the engine looks up an event recorded behind
//     the mark, or records one (mark.go). Then the engine locks Timeline.mu.
//  3. timeline.go, give. With mu locked, the submission's mark is added to the uses of the memory.
//     Then the stream is made to wait for the events, and the native calls of the operation are
//     made. An event is recorded if mark.go says that one is needed now.
//  4. timeline.go, announce and enter. With mu still locked, the signals are published with the
//     submission's number, so that other work can wait for them. The submission is put into the
//     ring of submissions in flight (ring.go). Then mu is unlocked, and the timepoints that waited
//     until this work was issued are released.
//  5. timeline.go, Timeline.Poll and tidy. Several goroutines query events, for example one that
//     waits, the poller (poll.go), the timer for downloads (landing.go), and now and then a
//     submitter (tidy). If an event is complete, the submissions in front of it are retired
//     (retire.go).
//  6. submit.go, parking.go. An Early submission is parked: it registers a timepoint with the
//     semaphore of each open wait. When the last timepoint is released, the submission is ready.
//     Then the pending-queue thread (pendingqueue.go), the goroutine that released the timepoint,
//     or a new goroutine continues at step 1.
//
// # Invariants
//
// Timeline.mu is held during the native calls of one submission, and never while waiting for
// another timeline. On a lane's timeline, the communication library may block the lane's thread
// inside a call for long, with Timeline.mu held. So only operations of that timeline and Close wait
// for this mutex.
//
// Three numbers of a timeline only grow. Timeline.issued is the last number given to the stream.
// Timeline.marked is the highest number with an event recorded right behind it. Timeline.passed is
// the highest number that a complete event proves complete. Memory, events, recordings and Close
// depend only on Timeline.passed. Signals may fail earlier: work can fail before its stream has
// passed it (earlyfailure.go).
//
// One goroutine at a time owns a Submission: the submitter, then the goroutine that issues it, then
// the goroutine that retires it. Other goroutines read a Submission in the ring under the ring's
// mu. For a parked Submission, Device.mu protects its place in the list, and an atomic integer
// counts its open waits.
//
// Submitting, issuing and retiring allocate nothing in the steady state: Submissions, events and
// timepoints come from pools.
package engine
