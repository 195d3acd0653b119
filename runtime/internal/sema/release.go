package sema

// A Waiter is a piece of work (not a goroutine) that waits for several points at once, with a
// [Timepoint] for each. The goroutine that signals a point calls the Waiter's methods, without
// locks.
type Waiter interface {
	// TimepointReleased is called once for each released timepoint of the waiter. err is the failure of the
	// semaphore, or nil. ready reports that this was the last timepoint and that the waiter must be
	// issued now.
	//
	// A waiter that needs no issuing completes within TimepointReleased. more has the timepoints that its
	// signals release. The caller releases these in a loop, so that a long chain of such waiters
	// causes no recursion.
	TimepointReleased(err error) (ready bool, more *Timepoint)

	// IssueHere issues a ready waiter on this thread. If that may block the thread, it returns
	// false instead.
	IssueHere() bool

	// HandOver gives a chain of ready waiters to the threads that issue them. Each timepoint of the
	// chain stands for its waiter; all waiters are of one type, and HandOver is called on the
	// first. The caller must not use the chain afterwards.
	HandOver(chain *Timepoint)
}

const (
	// issueHere is how many waiters a signal of the host issues on its own thread, because handing
	// a waiter over costs many times as much as issuing it. Other threads issue the rest.
	issueHere = 1

	// handOver is how many waiters are handed over with one call.
	handOver = 32
)

// Release notifies the owners of timepoints that were released by work that is over or has failed.
// It issues no waiter on this thread. It calls functions (OnReached) on goroutines of their own,
// because the caller may have more to do.
func Release(list *Timepoint) { start(notify(list, 0)) }

// ReleaseIssuing is Release for a thread that may issue a waiter itself.
func ReleaseIssuing(list *Timepoint) { start(notify(list, issueHere)) }

// ReleaseFromHost notifies the owners of timepoints that were released by a call of the program. It
// calls the functions (OnReached) itself, in order, after everything else. If one panics or ends
// the goroutine, the others are called all the same.
func ReleaseFromHost(list *Timepoint) { call(notify(list, issueHere)) }

// start calls functions on goroutines of their own.
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
		if !returned { // fn panics, or ends the goroutine
			call(t.next)
		}
	}()
	t.fn(t.err)
	returned = true
}

// notify calls TimepointReleased of the waiters in list and wakes the goroutines. It issues up to here of
// the waiters on this thread. It returns the timepoints that belong to functions, in order.
func notify(list *Timepoint, here int) *Timepoint {
	giveWay, woken := here > 0, false
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
			if here > 0 && w.IssueHere() {
				here--
				break
			}
			ready.Join(t) // a ready waiter keeps its timepoints until it is issued
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
		go nothing()
	}
	return functions.first
}

// nothing is run on a new goroutine so that a goroutine that was just woken starts sooner. Go keeps
// the goroutine that became ready last in a slot of the current processor. For some 80 µs no other
// processor takes it from there, in case the current goroutine is about to block. The new goroutine
// takes over the slot, and the woken one moves to the run queue. From there an idle processor takes
// it at once, even if the program goes on computing after its signal.
func nothing() {}
