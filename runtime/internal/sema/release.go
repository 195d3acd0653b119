package sema

// A Waiter waits for several points at once, with a [Timepoint] for each. Its methods are called
// without locks, by whoever has signalled the point.
type Waiter interface {
	// Resolved is called once for each timepoint that is released, with the failure or nil. It reports
	// whether this was the last and the waiter must be issued now. A waiter that is done at once
	// returns the timepoints that this releases: the caller passes them on, without recursion, however
	// long a chain of such waiters is.
	Resolved(err error) (ready bool, more *Timepoint)

	// IssueHere issues a ready waiter on this thread, unless that may hold the thread up: then it
	// reports false.
	IssueHere() bool

	// HandOver gives ready waiters to the threads that issue them. It is called for the first waiter of
	// a chain, and takes all: each timepoint of the chain has one waiter, and all are of one type. The
	// chain ends with this call.
	HandOver(chain *Timepoint)
}

const (
	// issueHere is how many waiters a signal of the host issues itself. Handing one over takes many
	// times as long as issuing it. Of many, other threads issue the rest.
	issueHere = 1

	// handOver is how many waiters are handed over at a time.
	handOver = 32
)

// Release passes timepoints on, for work that is over or has failed. It issues no waiter on this
// thread. It calls functions on goroutines of their own, since the caller may have more to do.
func Release(list *Timepoint) { start(passOn(list, 0)) }

// ReleaseIssuing is Release for a thread that may issue a waiter itself.
func ReleaseIssuing(list *Timepoint) { start(passOn(list, issueHere)) }

// ReleaseFromHost passes timepoints on, for a call of the program. It calls the functions itself, in
// order, after all else. A function that does not return keeps no other from being called.
func ReleaseFromHost(list *Timepoint) { call(passOn(list, issueHere)) }

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
		if !returned { // it panics, or ends the goroutine
			call(t.next)
		}
	}()
	t.fn(t.err)
	returned = true
}

// passOn tells waiters and wakes goroutines. It issues so many waiters on this thread. It returns the
// timepoints of functions, in order.
func passOn(list *Timepoint, here int) *Timepoint {
	giveWay, woken := here > 0, false
	var ready, functions List
	nready := 0
	for t := list; t != nil; {
		next := t.next
		t.next = nil
		switch w := t.waiter; {
		case w != nil:
			isReady, more := w.Resolved(t.err)
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

// nothing is a goroutine that gives way to one that was just woken. Go runs the goroutine that became
// ready last next on the same processor, and leaves it to that for some 80 µs, in case the present one
// is about to block. With nothing in that place the woken goroutine is in the run queue, where an idle
// processor takes it at once, even if the program goes on computing after its signal.
func nothing() {}
