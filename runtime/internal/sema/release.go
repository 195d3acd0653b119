package sema

// A Waiter is work (not a goroutine) that waits for one or more points before it is issued. It has
// a [Timepoint] for each of these points. The goroutine that signals a point, or fails its
// semaphore, calls the methods without locks.
type Waiter interface {
	// TimepointReleased is called once for each timepoint of the waiter, when it is released. err
	// is the failure of the semaphore, or nil. ready reports that this was the last timepoint, and
	// that the waiter must be issued now.
	//
	// A waiter without work, such as a barrier, signals its own points here instead and returns
	// false. more has the timepoints that these signals release. The caller releases them in a
	// loop, because recursion could become too deep if many such waiters form a chain.
	TimepointReleased(err error) (ready bool, more *Timepoint)

	// IssueHere issues a ready waiter on the calling thread. If that may block, it does nothing and
	// returns false.
	IssueHere() bool

	// HandOver gives ready waiters to the threads that issue them. list has one timepoint of each.
	// All waiters in the list are of one type, and HandOver is called on the first waiter. The
	// caller must not use the list afterwards.
	HandOver(list *Timepoint)
}

const (
	// issueHere is the number of ready waiters that a signalling goroutine issues itself. Issuing
	// one takes less time than handing it over to another thread. Other threads issue the rest in
	// parallel.
	issueHere = 1

	// handOver is the largest number of waiters in one call of HandOver.
	handOver = 32
)

// Release notifies the owners of the timepoints in list. Goroutines that retire work, or make it
// fail, use Release. It issues no waiter itself and starts a goroutine for each function
// (OnReached), because the caller may have more work to retire.
func Release(list *Timepoint) { start(notify(list, 0)) }

// ReleaseIssuing is like Release, but may issue a ready waiter on the calling thread.
func ReleaseIssuing(list *Timepoint) { start(notify(list, issueHere)) }

// ReleaseFromHost notifies the owners of the timepoints in list. It is used in calls of the
// program, such as Signal. It calls the functions (OnReached) itself, in order, after everything
// else. If one function panics or calls runtime.Goexit, the others are still called.
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
// in Wait. It issues at most budget of the ready waiters on the calling thread, and hands over the
// others. It returns the timepoints that belong to functions, in order. The caller calls these
// functions.
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
			ready.Join(t) // the timepoint stays valid: a ready waiter keeps its timepoints until it is issued
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
// processor (P). Other processors do not steal from that slot for some 80 µs, because the current
// goroutine may be about to block. A newly started goroutine takes the slot and pushes the woken
// one into the run queue. From there an idle processor steals it at once, even if the caller goes
// on computing.
func noop() {}
