package gpu

import "sync"

// A timepoint is a record of "semaphore reaches value", held by the semaphore until it does.
type timepoint struct {
	value  uint64
	order  uint64 // among timepoints of the same value, first come first served
	index  int    // in the semaphore's heap, or -1
	issued bool   // enough that the value's producer is issued; otherwise the value must be reached
	lazy   bool   // nobody waits for it: the device need not be asked on its account
	sub    *submission
	on     *Semaphore  // that has it; for sub
	fn     func(error) // called without locks, once; or
	host   *hostEvent  // that is to be woken; or
	link   *Point      // that is to be signalled; or

	next *timepoint // in a pool, or in a list of released ones
	err  error      // what it was released with
}

// A timepointList gathers released timepoints, in order.
type timepointList struct {
	first *timepoint
	last  *timepoint
}

// join puts a chain behind what is there.
func (l *timepointList) join(t *timepoint) {
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

// before puts a chain in front of another.
func (t *timepoint) before(rest *timepoint) *timepoint {
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

// A timepointHeap orders timepoints by value.
type timepointHeap []*timepoint

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

func (h *timepointHeap) push(t *timepoint) {
	t.index = len(*h)
	*h = append(*h, t)
	h.up(t.index)
}

func (h *timepointHeap) remove(i int) *timepoint {
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

// pop takes the timepoints up to a value off the heap and puts them in front of a list, in order.
func (h *timepointHeap) pop(value uint64, rest *timepoint) *timepoint {
	if len(*h) == 0 || (*h)[0].value > value {
		return rest
	}
	var first *timepoint
	end := &first
	if h.inOrder(value) { // who are many have mostly come one after the other
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

// inOrder reports whether all are up to a value, and in order as they lie. It looks at none that will not be popped.
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

// ObjectStats counts the records of a pool.
type ObjectStats struct {
	Made int // ever
	Held int // of which there still are: Device.Trim gives others back
	Free int // of which are not in use
}

// A timepointPool recycles timepoints.
type timepointPool struct {
	mu    sync.Mutex
	free  *timepoint
	stats ObjectStats
}

func (p *timepointPool) get() *timepoint {
	p.mu.Lock()
	t := p.free
	if t != nil {
		p.free = t.next
		p.stats.Free--
	} else {
		p.stats.Made++
		p.stats.Held++
	}
	p.mu.Unlock()
	if t == nil {
		t = new(timepoint)
	}
	t.next, t.index = nil, -1
	return t
}

func (p *timepointPool) put(t *timepoint) {
	*t = timepoint{index: -1}
	p.mu.Lock()
	t.next, p.free = p.free, t
	p.stats.Free++
	p.mu.Unlock()
}

// trim drops the free timepoints.
func (p *timepointPool) trim() {
	p.mu.Lock()
	p.free = nil
	p.stats.Held -= p.stats.Free
	p.stats.Free = 0
	p.mu.Unlock()
}

func (p *timepointPool) statistics() ObjectStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}
