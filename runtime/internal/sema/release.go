package sema

// A Waiter is work that is issued after one or more points, or a barrier, or a link between two
// semaphores. It has a [Timepoint] for each point that it waits for. The goroutine that releases a
// timepoint calls the methods, with no semaphore locked. This goroutine may hold a lock of the
// producer whose work signals the point.
type Waiter interface {
	// TimepointReleased is called once for each timepoint of the waiter that is released. err is
	// the semaphore's failure if that released the timepoint, otherwise nil. If ready is true, this
	// was the last timepoint, and the caller must call IssueHere or HandOver.
	//
	// A waiter without work, such as a barrier, may signal its own points here instead. Then ready
	// is false. more has the timepoints that these signals release. The caller releases them in a
	// loop, because recursion could become too deep if many such waiters form a chain.
	TimepointReleased(err error) (ready bool, more *Timepoint)

	// IssueHere issues a ready waiter on the calling thread and returns true. It does nothing and
	// returns false if the waiter must be handed over instead, for example because issuing it may
	// block.
	IssueHere() bool

	// HandOver gives ready waiters to the threads that issue them. list has one timepoint of each
	// waiter. HandOver is called on the first waiter of the list. That suffices, because all
	// waiters for which TimepointReleased returns true have the same type. The caller must not use
	// the list afterwards.
	HandOver(list *Timepoint)
}

const (
	// issueHere is the largest number of ready waiters that one call of ReleaseIssuing or
	// ReleaseFromHost issues itself. Issuing one takes less time than handing it over to another
	// thread. Other threads issue the rest in parallel.
	issueHere = 1

	// handOver is the largest number of waiters in one call of HandOver.
	handOver = 32
)

// Release notifies the owners of the timepoints in list. It issues no waiter itself, and calls each
// function that was given to OnReached on a new goroutine. So Release may be called with a
// producer's lock held, and soon returns.
func Release(list *Timepoint) { start(notify(list, 0)) }

// ReleaseIssuing is like Release, but may issue a ready waiter on the calling thread.
func ReleaseIssuing(list *Timepoint) { start(notify(list, issueHere)) }

// ReleaseFromHost notifies the owners of the timepoints in list. It is for calls of the program,
// such as Signal. It may issue a ready waiter on the calling thread. After it has notified all
// other owners, it calls the functions that were given to OnReached itself, in the order of the
// list. If one function panics or calls runtime.Goexit, the functions after it are still called.
func ReleaseFromHost(list *Timepoint) { call(notify(list, issueHere)) }

// start calls the functions of the timepoints in list, each on a new goroutine.
func start(list *Timepoint) {
	for t := list; t != nil; t = t.next {
		go t.fn(t.err)
	}
}

func call(list *Timepoint) {
	for t := list; t != nil; t = t.next {
		callOne(t)
	}
}

func callOne(t *Timepoint) {
	returned := false
	defer func() {
		if !returned { // fn has panicked or called runtime.Goexit
			call(t.next)
		}
	}()
	t.fn(t.err)
	returned = true
}

// notify calls TimepointReleased of the waiters in list, and wakes the goroutines that are blocked
// in Wait or WaitIssued. notify issues some of the ready waiters on the calling thread, at most as
// many as budget says, and hands over the others. It returns the timepoints that belong to
// functions. The caller of notify calls these functions.
func notify(list *Timepoint, budget int) *Timepoint {
	giveWay, woken := budget > 0, false
	var ready, functions List
	nready := 0
	for t := list; t != nil; {
		next := t.next
		t.next = nil
		switch w := t.waiter; {
		case w != nil:
			isReady, more := w.TimepointReleased(t.err)
			next = more.before(next)
			if !isReady {
				break
			}
			if budget > 0 && w.IssueHere() {
				budget--
				break
			}
			ready.Join(t) // the timepoint stays valid: nothing else issues or recycles the ready waiter
			if nready++; nready == handOver {
				ready.first.waiter.HandOver(ready.first)
				ready, nready = List{}, 0
			}
		case t.host != nil:
			t.host.wake()
			woken = true
		case t.fn != nil:
			functions.Join(t)
		}
		t = next
	}
	if nready > 0 {
		ready.first.waiter.HandOver(ready.first)
	}
	if woken && giveWay {
		go noop()
	}
	return functions.first
}

// noop is the body of a goroutine that is started only for its effect on Go's scheduler: a
// goroutine that was just woken runs sooner. Go puts a woken goroutine into a slot of the current
// processor (P). Other processors do not steal from that slot for a while, because the current
// goroutine may be about to block. A newly started goroutine takes the slot and pushes the woken
// goroutine into the run queue. From there an idle processor steals it at once, even if the caller
// goes on computing.
func noop() {}
