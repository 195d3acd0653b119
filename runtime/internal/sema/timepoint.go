package sema

// A Timepoint stands for a wait for a value of a semaphore. The semaphore keeps it until the wait
// is over.
type Timepoint struct {
	value  uint64
	order  uint64 // among timepoints of the same value: first come, first served
	index  int    // in the semaphore's heap, or -1; protected by the semaphore's mu
	issued bool   // it is released when a producer of the value is issued
	on     *Semaphore

	// One of these is set. It is notified when the timepoint is released.
	waiter Waiter
	fn     func(error) // called once, without locks
	host   *hostEvent

	next *Timepoint // in a chain, or in a pool
	err  error      // the failure that released it
}

// Until says when a timepoint is released.
type Until uint8

const (
	UntilIssued      Until = iota // a producer has been issued, or the value is reached
	UntilReached                  // the value is reached; the producers are polled until then
	UntilReachedLazy              // the value is reached; no producer is polled for this timepoint
)

// Init prepares a timepoint of the waiter w for Register. The timepoint must not be registered.
func (t *Timepoint) Init(w Waiter) { t.waiter, t.index = w, -1 }

// Waiter returns the waiter that owns the timepoint.
func (t *Timepoint) Waiter() Waiter { return t.waiter }

// Next returns the next timepoint of a chain.
func (t *Timepoint) Next() *Timepoint { return t.next }

// Register adds a timepoint to the semaphore, which keeps it until it is released, and returns
// Unknown. If the wait is over already, Register returns the state of the wait instead and does not
// add the timepoint. It returns Ordered only for [UntilIssued].
func (s *Semaphore) Register(value uint64, t *Timepoint, until Until) WaitState {
	if value <= s.value.Load() {
		return s.endState()
	}
	s.mu.Lock()
	l := s.expect(hasWaiters)
	var how WaitState
	switch {
	case value <= s.value.Load():
		how = s.endState()
	case until == UntilIssued && l.signals.Reaches(value):
		how = Ordered
	default:
		t.value, t.order, t.on = value, l.order, s
		l.order++
		if t.issued = until == UntilIssued; t.issued {
			l.issued.push(t)
		} else {
			l.reach.push(t)
		}
		if until != UntilReachedLazy {
			l.signals.Want(value, Producer.Want)
			for i := range l.joins {
				for _, m := range l.joins[i].marks {
					m.Producer.Want(m.Seq)
				}
			}
		}
		s.mu.Unlock()
		return Unknown
	}
	s.updateFlags()
	s.mu.Unlock()
	return how
}

// Cancel removes a registered timepoint from its semaphore. It returns false if the timepoint was
// released or is being released.
func (t *Timepoint) Cancel() bool {
	s := t.on
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.index < 0 {
		return false
	}
	if t.issued {
		s.list.issued.remove(t.index)
	} else {
		s.list.reach.remove(t.index)
	}
	s.updateFlags()
	return true
}

// OnReached calls fn once: with nil when the value is reached, or with the failure. If the wait is
// over already, OnReached calls fn before it returns. cancel keeps fn from being called, and
// reports whether it was in time.
func (s *Semaphore) OnReached(value uint64, fn func(error)) (cancel func() bool) {
	t := &Timepoint{fn: fn, index: -1}
	switch s.Register(value, t, UntilReached) {
	case Reached:
		fn(nil)
	case Failed:
		fn(s.Failed())
	default:
		return t.Cancel
	}
	return TooLate
}

// TooLate is the cancel function for a call that was already made. It returns false.
func TooLate() bool { return false }

// A List gathers released timepoints, in order.
type List struct {
	first *Timepoint
	last  *Timepoint
}

// First returns the chain.
func (l *List) First() *Timepoint { return l.first }

// Join appends a chain.
func (l *List) Join(t *Timepoint) {
	if t == nil {
		return
	}
	if l.last == nil {
		l.first = t
	} else {
		l.last.next = t
	}
	for l.last = t; l.last.next != nil; {
		l.last = l.last.next
	}
}

// before puts the chain t in front of the chain rest.
func (t *Timepoint) before(rest *Timepoint) *Timepoint {
	if t == nil {
		return rest
	}
	last := t
	for last.next != nil {
		last = last.next
	}
	last.next = rest
	return t
}

// A timepointHeap orders timepoints by value, then by age.
type timepointHeap []*Timepoint

func (h timepointHeap) less(i, j int) bool {
	if h[i].value != h[j].value {
		return h[i].value < h[j].value
	}
	return h[i].order < h[j].order
}

func (h timepointHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timepointHeap) push(t *Timepoint) {
	t.index = len(*h)
	*h = append(*h, t)
	h.up(t.index)
}

func (h *timepointHeap) remove(i int) *Timepoint {
	old := *h
	t, last := old[i], len(old)-1
	old.swap(i, last)
	old[last] = nil
	*h = old[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
	t.index = -1
	return t
}

// pop removes the timepoints up to a value and returns them in order, in front of the chain rest.
func (h *timepointHeap) pop(value uint64, rest *Timepoint) *Timepoint {
	if len(*h) == 0 || (*h)[0].value > value {
		return rest
	}
	var first *Timepoint
	end := &first
	if h.inOrder(value) { // usually the slice is sorted already
		for i, t := range *h {
			t.index = -1
			*end, end = t, &t.next
			(*h)[i] = nil
		}
		*h = (*h)[:0]
	}
	for len(*h) > 0 && (*h)[0].value <= value {
		t := h.remove(0)
		*end, end = t, &t.next
	}
	*end = rest
	return first
}

// inOrder reports whether the values of all timepoints are at most value, and the slice is sorted.
// It stops at the first timepoint for which this does not hold.
func (h timepointHeap) inOrder(value uint64) bool {
	for i, t := range h {
		if t.value > value || i > 0 && h.less(i, i-1) {
			return false
		}
	}
	return true
}

func (h timepointHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h timepointHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
