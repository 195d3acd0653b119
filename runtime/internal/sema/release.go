package sema

// A Waiter waits for several points at once, with a [Timepoint] for each. The goroutine that has
// signalled the point calls its methods, without locks.
type Waiter interface {
	// Resolved is called once for each released timepoint, with the failure or nil. It reports
	// whether this was the last one and the waiter must be issued now. A waiter that completes at
	// once returns the timepoints that this releases. The caller passes these on without recursion,
	// however long a chain of such waiters is.
	Resolved(err error) (ready bool, more *Timepoint)

	// IssueHere issues a ready waiter on this thread. If that may block the thread, it returns
	// false instead.
	IssueHere() bool

	// HandOver gives ready waiters to the threads that issue them. It is called for the first
	// waiter of a chain, and takes the whole chain: each timepoint belongs to another waiter, and
	// all waiters are of one type. The caller must not use the chain afterwards.
	HandOver(chain *Timepoint)
}

const (
	// issueHere is how many waiters a signal of the host issues itself. Handing one over costs many
	// times as much as issuing it. If there are more, other threads issue them.
	issueHere = 1

	// handOver is how many waiters are handed over at a time.
	handOver = 32
)

// Release passes on timepoints released by work that is over or has failed. It issues no waiter on
// this thread. It calls functions on goroutines of their own, because the caller may have more to
// do.
func Release(list *Timepoint) { start(passOn(list, 0)) }

// ReleaseIssuing is Release for a thread that may issue a waiter itself.
func ReleaseIssuing(list *Timepoint) { start(passOn(list, issueHere)) }

// ReleaseFromHost passes on timepoints released by a call of the program. It calls the functions
// itself, in order, after everything else. If one panics or ends the goroutine, the others are
// called all the same.
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
		if !returned { // fn panics, or ends the goroutine
			call(t.next)
		}
	}()
	t.fn(t.err)
	returned = true
}

// passOn tells waiters and wakes goroutines. It issues up to here waiters on this thread. It
// returns the timepoints that have functions, in order.
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

// nothing is an empty goroutine that makes room for one that was just woken. Go runs the goroutine
// that became ready last next on the same processor, and reserves it for that for some 80 µs, in
// case the current goroutine is about to block. When nothing takes that place, the woken goroutine
// moves to the run queue. There an idle processor takes it at once, even if the program goes on
// computing after its signal.
func nothing() {}
