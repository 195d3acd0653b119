package explore

import (
	"unsafe"
)

// A Queue holds the goroutines that wait for something.
type Queue struct{ waiting []*goroutine }

//go:norace
func (q *Queue) wait(r *run, o *Object) {
	q.waiting = append(q.waiting, r.current)
	r.block()
}

// wakeAll wakes all waiting goroutines and empties the queue.
//
//go:norace
func (q *Queue) wakeAll(r *run) {
	for i, g := range q.waiting {
		q.waiting[i] = nil
		r.wakeUp(g)
	}
	q.waiting = q.waiting[:0]
}

// wakeOne wakes the i-th waiting goroutine. It returns false if the queue is empty.
//
//go:norace
func (q *Queue) wakeOne(r *run, i int) bool {
	if len(q.waiting) == 0 {
		return false
	}
	g := q.waiting[i]
	q.drop(g)
	r.wakeUp(g)
	return true
}

//go:norace
func (q *Queue) drop(g *goroutine) {
	n := 0
	for _, x := range q.waiting {
		if x != g {
			q.waiting[n] = x
			n++
		}
	}
	q.waiting[n] = nil
	q.waiting = q.waiting[:n]
}

// A Mutex replaces sync.RWMutex and sync.Mutex. The zero value is unlocked.
type Mutex struct {
	Object
	locked  bool
	readers int
	writers int // number of waiting writers
	queue   Queue
	readAt  byte // tells the race detector that each RUnlock happens before the next Lock
}

//go:norace
func (m *Mutex) use(r *run) {
	if m.Object.use(r) {
		m.locked, m.readers, m.writers, m.queue = false, 0, 0, Queue{}
	}
}

// Lock locks for writing.
//
//go:norace
func (m *Mutex) Lock() {
	r := active
	if r == nil {
		if m.locked || m.readers > 0 {
			panic("explore: a mutex that is locked, outside of a run")
		}
		m.locked = true
		return
	}
	m.use(r)
	r.point(OpLock, &m.Object)
	g := r.current
	if m.locked || m.readers > 0 {
		m.writers++
		for m.locked || m.readers > 0 {
			m.queue.wait(r, &m.Object)
		}
		m.writers--
		r.did(g, OpLock, &m.Object)
	}
	m.locked, m.owner = true, g
	if r.traced {
		m.since = g.place
	}
	raceAcquire(unsafe.Pointer(m))
	raceAcquire(unsafe.Pointer(&m.readAt))
}

// TryLock locks for writing if the mutex is unlocked.
//
//go:norace
func (m *Mutex) TryLock() bool {
	r := active
	if r == nil {
		if m.locked || m.readers > 0 {
			return false
		}
		m.locked = true
		return true
	}
	m.use(r)
	r.point(OpTryLock, &m.Object)
	if m.locked || m.readers > 0 {
		return false
	}
	m.locked, m.owner = true, r.current
	if r.traced {
		m.since = r.current.place
	}
	raceAcquire(unsafe.Pointer(m))
	raceAcquire(unsafe.Pointer(&m.readAt))
	return true
}

// Unlock ends Lock.
//
//go:norace
func (m *Mutex) Unlock() {
	r := active
	if r == nil {
		m.locked = false
		return
	}
	if r.current.killed {
		return
	}
	m.use(r)
	raceRelease(unsafe.Pointer(m))
	r.point(OpUnlock, &m.Object)
	if !m.locked {
		r.fail(Panic, "unlock of an unlocked mutex")
	}
	m.locked, m.owner, m.since = false, nil, nil
	m.queue.wakeAll(r)
}

// RLock locks for reading. It waits while another goroutine writes or waits to write.
//
//go:norace
func (m *Mutex) RLock() {
	r := active
	if r == nil {
		if m.locked {
			panic("explore: a mutex that is locked, outside of a run")
		}
		m.readers++
		return
	}
	m.use(r)
	r.point(OpRLock, &m.Object)
	if m.locked || m.writers > 0 {
		for m.locked || m.writers > 0 {
			m.queue.wait(r, &m.Object)
		}
		r.did(r.current, OpRLock, &m.Object)
	}
	m.readers++
	raceAcquire(unsafe.Pointer(m))
}

// TryRLock locks for reading if no goroutine writes or waits to write.
//
//go:norace
func (m *Mutex) TryRLock() bool {
	r := active
	if r == nil {
		if m.locked {
			return false
		}
		m.readers++
		return true
	}
	m.use(r)
	r.point(OpTryLock, &m.Object)
	if m.locked || m.writers > 0 {
		return false
	}
	m.readers++
	raceAcquire(unsafe.Pointer(m))
	return true
}

// RUnlock ends RLock.
//
//go:norace
func (m *Mutex) RUnlock() {
	r := active
	if r == nil {
		m.readers--
		return
	}
	if r.current.killed {
		return
	}
	m.use(r)
	raceRelease(unsafe.Pointer(&m.readAt))
	r.point(OpRUnlock, &m.Object)
	if m.readers == 0 {
		r.fail(Panic, "read unlock of a mutex that is not locked for reading")
	}
	if m.readers--; m.readers == 0 {
		m.queue.wakeAll(r)
	}
}

// A Group replaces sync.WaitGroup.
type Group struct {
	Object
	n     int
	queue Queue
}

//go:norace
func (w *Group) use(r *run) {
	if w.Object.use(r) {
		w.n, w.queue = 0, Queue{}
	}
}

// Add adds to the count.
//
//go:norace
func (w *Group) Add(n int) {
	r := active
	if r == nil {
		w.n += n
		return
	}
	if r.current.killed {
		return
	}
	w.use(r)
	op := OpAdd
	if n < 0 {
		op = OpDone
		raceRelease(unsafe.Pointer(w))
	}
	r.point(op, &w.Object)
	w.n += n
	switch {
	case w.n < 0:
		r.fail(Panic, "negative count of a wait group")
	case w.n == 0:
		w.queue.wakeAll(r)
	}
}

// Wait waits until the count is 0.
//
//go:norace
func (w *Group) Wait() {
	r := active
	if r == nil {
		if w.n > 0 {
			panic("explore: a wait outside of a run")
		}
		return
	}
	w.use(r)
	r.point(OpWait, &w.Object)
	if w.n > 0 {
		w.queue.wait(r, &w.Object)
		r.did(r.current, OpWait, &w.Object)
	}
	raceAcquire(unsafe.Pointer(w))
}

// A Condition replaces sync.Cond.
type Condition struct {
	Object
	queue Queue
}

//go:norace
func (c *Condition) use(r *run) {
	if c.Object.use(r) {
		c.queue = Queue{}
	}
}

// Wait unlocks the lock, waits for Signal or Broadcast, and locks it again.
//
//go:norace
func (c *Condition) Wait(unlock, lock func()) {
	r := active
	if r == nil {
		panic("explore: a wait outside of a run")
	}
	c.use(r)
	r.point(OpWait, &c.Object)
	g := r.current
	c.queue.waiting = append(c.queue.waiting, g)
	unlock()
	for c.has(g) { // Signal or Broadcast may have removed g from the queue already
		g.op, g.obj = OpWait, &c.Object
		r.block()
	}
	r.did(g, OpWait, &c.Object)
	lock()
}

//go:norace
func (c *Condition) has(g *goroutine) bool {
	for _, x := range c.queue.waiting {
		if x == g {
			return true
		}
	}
	return false
}

// Signal wakes any one waiter, since sync.Cond does not specify which.
//
//go:norace
func (c *Condition) Signal() {
	if r := active; r != nil {
		c.use(r)
		r.point(OpSignal, &c.Object)
		c.queue.wakeOne(r, r.pick(len(c.queue.waiting)))
	}
}

// Broadcast wakes all waiters.
//
//go:norace
func (c *Condition) Broadcast() {
	if r := active; r != nil {
		c.use(r)
		r.point(OpSignal, &c.Object)
		c.queue.wakeAll(r)
	}
}

// Step lets other goroutines run before the operation op on o.
//
//go:norace
func Step(op Op, o *Object) {
	if r := active; r != nil {
		r.point(op, o)
	}
}

// StepAt is Step for the object that belongs to address p.
//
//go:norace
func StepAt(op Op, p unsafe.Pointer) {
	if r := active; r != nil {
		r.point(op, r.objectAt(p))
	}
}

//go:norace
func (r *run) objectAt(p unsafe.Pointer) *Object {
	v := r.table.at(p)
	if *v == nil {
		*v = unsafe.Pointer(new(Object))
	}
	return (*Object)(*v)
}

// Release and Acquire tell the race detector that everything before a Release happens before
// everything after a later Acquire of the same p.
//
//go:norace
func Release(p unsafe.Pointer) { raceRelease(p) }

//go:norace
func Acquire(p unsafe.Pointer) { raceAcquire(p) }

// Pick picks one of n alternatives where Go gives the program no guarantee.
//
//go:norace
func Pick(n int) int {
	r := active
	if r == nil {
		return 0
	}
	return r.pick(n)
}

// Epoch returns a number that differs in each run; it is 0 outside a run.
//
//go:norace
func Epoch() uint32 {
	if r := active; r != nil {
		return r.epoch
	}
	return 0
}

// A futex holds the goroutines that wait for a word with the futex system call.
type futex struct {
	Object
	queue Queue
}

// FutexWait waits until FutexWake is called for the word. It returns at once outside a run, and if
// the word does not have the given value. It waits at most limit nanoseconds, unless limit is
// negative.
//
//go:norace
func FutexWait(word *uint32, value uint32, limit int64) {
	r := active
	if r == nil {
		return
	}
	f := r.futexAt(word)
	r.point(OpFutex, &f.Object)
	if *word != value {
		return
	}
	g := r.current
	var t timer
	t.f = func() {
		f.queue.drop(g)
		r.wakeUp(g)
	}
	if limit >= 0 {
		r.start(&t, limit)
	}
	f.queue.wait(r, &f.Object)
	r.stop(&t)
}

// FutexWake wakes up to n goroutines that wait for the word.
//
//go:norace
func FutexWake(word *uint32, n int) (woken int) {
	r := active
	if r == nil {
		return 0
	}
	f := r.futexAt(word)
	r.point(OpFutex, &f.Object)
	for woken < n && f.queue.wakeOne(r, 0) {
		woken++
	}
	return woken
}

// futexAt returns the futex of a word. The key of the futex in the table is not the word's address:
// that is the key of the Object of an atomic value in the word.
//
//go:norace
func (r *run) futexAt(word *uint32) *futex {
	v := r.table.at(unsafe.Add(unsafe.Pointer(word), 1))
	if *v == nil {
		*v = unsafe.Pointer(new(futex))
	}
	return (*futex)(*v)
}

// Thread returns the number of the caller's thread, or 1 outside a run. The number changes with
// each call unless the goroutine is locked to its thread.
//
//go:norace
func Thread() int {
	r := active
	if r == nil {
		return 1
	}
	r.point(OpThread, nil)
	g := r.current
	if g.locks == 0 {
		r.threads++
		return 1<<30 + r.threads
	}
	return g.thread
}

// LockThread and UnlockThread replace LockOSThread and UnlockOSThread.
//
//go:norace
func LockThread() {
	if r := active; r != nil {
		g := r.current
		if g.locks++; g.locks == 1 {
			r.threads++
			g.thread = r.threads
		}
	}
}

//go:norace
func UnlockThread() {
	if r := active; r != nil && r.current.locks > 0 {
		r.current.locks--
	}
}
