package sema

// A Timepoint is one wait for a value of a semaphore. It is registered with the semaphore until the
// semaphore releases it or Cancel removes it.
type Timepoint struct {
	value  uint64
	order  uint64     // orders timepoints with the same value by age
	index  int        // position in the semaphore's heap, or -1 if not registered; protected by the semaphore's mu
	issued bool       // registered with UntilIssued, so in the heap Semaphore.issued, not in Semaphore.reach
	on     *Semaphore // the semaphore of the last Register that registered the timepoint

	// The owner: exactly one of these three is set. It is notified when the timepoint is released.
	waiter Waiter
	fn     func(error)
	host   *hostEvent

	next *Timepoint // the next in a list of released timepoints, or in the free list of a pool
	err  error      // the semaphore's failure, if that released the timepoint
}

// Until says when a timepoint is released. A failure of the semaphore releases every timepoint.
type Until uint8

const (
	UntilIssued      Until = iota // when work that signals this value or more has been issued, or the value is reached
	UntilReached                  // when the value is reached; the producers are polled until then
	UntilReachedLazy              // when the value is reached; this timepoint causes no polling
)

// Init makes w the owner of the timepoint. The timepoint must not be registered.
func (t *Timepoint) Init(w Waiter) { t.waiter, t.index = w, -1 }

// Waiter returns the waiter that owns the timepoint.
func (t *Timepoint) Waiter() Waiter { return t.waiter }

// Next returns the next timepoint of a list.
func (t *Timepoint) Next() *Timepoint { return t.next }

// Register registers t for a value, and returns Unknown. If the value is reached or the semaphore
// has failed, Register does not register t, and returns Reached or Failed. With [UntilIssued], if
// work that signals the value or more has been issued, Register does not register t either, and
// returns Ordered.
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

// Cancel removes a timepoint from its semaphore. The timepoint must have been registered at least
// once. If it has been released or cancelled since its last registration, Cancel returns false. The
// owner of a released timepoint may not have been notified yet.
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

// OnReached calls fn once, unless cancel is called in time: with nil when the value is reached, or
// with the error when the semaphore fails. If one of these has already happened, OnReached calls fn
// before it returns. cancel returns true if it has prevented the call of fn.
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

// TooLate is the cancel function that OnReached returns if OnReached has already called fn. Package
// gpu also returns TooLate when it has registered nothing.
func TooLate() bool { return false }

// A List is a linked list of released timepoints. The zero List is empty.
type List struct {
	first *Timepoint
	last  *Timepoint
}

// First returns the first timepoint, or nil. The others follow by Next.
func (l *List) First() *Timepoint { return l.first }

// Join appends t and all timepoints that follow it by Next.
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

// before returns the linked list t with the linked list rest appended. Both may be nil.
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

// pop removes the timepoints for values up to value. It returns them as a linked list, in order,
// with rest appended.
func (h *timepointHeap) pop(value uint64, rest *Timepoint) *Timepoint {
	if len(*h) == 0 || (*h)[0].value > value {
		return rest
	}
	var first *Timepoint
	end := &first
	if h.inOrder(value) { // the usual case: all are removed, in the order of the slice
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

// inOrder reports whether the heap's slice is sorted and no timepoint is for more than value. It
// stops at the first timepoint that is out of order or above value.
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
