package explore

import (
	"iter"
	"runtime"
	"unsafe"
)

// Channels keep their Go types in rewritten source. Elements of a buffered channel stay in Go's
// channel. This file keeps the lists of waiting goroutines, and hands elements from senders to
// receivers of unbuffered channels.

// A channel is the state that a run adds to a Go channel.
type channel struct {
	Object
	recv, send []*waiter
	closed     bool
}

// A waiter is a goroutine's wait for one channel. A select adds a waiter to each of its channels.
type waiter struct {
	g    *goroutine
	elem unsafe.Pointer // address of the element to send or receive; unused if the channel has a buffer
	ok   *bool
	at   int  // index of the select's case
	met  *int // set to the index of the case that was executed; -1 before
}

//go:norace
func (r *run) channelAt(p unsafe.Pointer) *channel {
	v := r.table.at(p)
	if *v == nil {
		*v = unsafe.Pointer(new(channel))
	}
	return (*channel)(*v)
}

//go:norace
func pointerOf[T any](c <-chan T) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&c)) }

// forget removes the waiters of g from the list.
//
//go:norace
func forget(list []*waiter, g *goroutine) []*waiter {
	n := 0
	for _, w := range list {
		if w.g != g {
			list[n] = w
			n++
		}
	}
	for i := n; i < len(list); i++ {
		list[i] = nil
	}
	return list[:n]
}

// wakeWaiters wakes all waiters; they retry.
//
//go:norace
func (r *run) wakeWaiters(list []*waiter) {
	for _, w := range list {
		r.wakeUp(w.g)
	}
}

// meet returns the first waiter whose wait has not ended and that is not of the given goroutine, or
// nil.
//
//go:norace
func meet(list []*waiter, by *goroutine) *waiter {
	for _, w := range list {
		if w.g != by && *w.met < 0 {
			return w
		}
	}
	return nil
}

// A Case is a case of a select.
type Case interface {
	pointer() unsafe.Pointer
	sends() bool
	try(r *run, c *channel) bool // executes the case if that is possible without waiting
	element() (p unsafe.Pointer, ok *bool)
	once() bool // the same with Go's channel, outside a run
}

// A RecvCase is the case of a receive. After the receive, V and OK hold the result.
type RecvCase[T any] struct {
	c  <-chan T
	V  T
	OK bool
}

// OnRecv returns the case of a receive.
//
//go:norace
func OnRecv[T any](c <-chan T) *RecvCase[T] { return &RecvCase[T]{c: c} }

//go:norace
func (x *RecvCase[T]) pointer() unsafe.Pointer { return pointerOf(x.c) }

//go:norace
func (x *RecvCase[T]) sends() bool { return false }

//go:norace
func (x *RecvCase[T]) element() (unsafe.Pointer, *bool) { return unsafe.Pointer(&x.V), &x.OK }

//go:norace
func (x *RecvCase[T]) once() bool {
	select {
	case x.V, x.OK = <-x.c:
		return true
	default:
		return false
	}
}

//go:norace
func (x *RecvCase[T]) try(r *run, c *channel) bool {
	select {
	case x.V, x.OK = <-x.c: // from the buffer, or the channel is closed
		r.wakeWaiters(c.send)
		return true
	default:
	}
	if cap(x.c) > 0 {
		return false
	}
	w := meet(c.send, r.current)
	if w == nil {
		return false
	}
	x.V, x.OK = *(*T)(w.elem), true
	*w.met = w.at
	raceAcquire(unsafe.Pointer(w.met)) // the sender released met before it waited, and acquires met when it continues
	raceRelease(unsafe.Pointer(w.met))
	r.wakeUp(w.g)
	return true
}

// A SendCase is the case of a send.
type SendCase[T any] struct {
	c chan<- T
	v T
}

// OnSend returns the case of a send.
//
//go:norace
func OnSend[T any](c chan<- T) *SendCase[T] { return &SendCase[T]{c: c} }

// Value sets the value to send.
//
//go:norace
func (x *SendCase[T]) Value(v T) *SendCase[T] {
	x.v = v
	return x
}

//go:norace
func (x *SendCase[T]) pointer() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&x.c)) }

//go:norace
func (x *SendCase[T]) sends() bool { return true }

//go:norace
func (x *SendCase[T]) element() (unsafe.Pointer, *bool) { return unsafe.Pointer(&x.v), nil }

//go:norace
func (x *SendCase[T]) once() bool {
	select {
	case x.c <- x.v:
		return true
	default:
		return false
	}
}

//go:norace
func (x *SendCase[T]) try(r *run, c *channel) bool {
	select {
	case x.c <- x.v: // into the buffer; it panics if the channel is closed
		r.wakeWaiters(c.recv)
		return true
	default:
	}
	if cap(x.c) > 0 {
		return false
	}
	w := meet(c.recv, r.current)
	if w == nil {
		return false
	}
	*(*T)(w.elem), *w.ok = x.v, true
	*w.met = w.at
	raceAcquire(unsafe.Pointer(w.met))
	raceRelease(unsafe.Pointer(w.met))
	r.wakeUp(w.g)
	return true
}

// Select executes one of the cases and returns its index. In a run it waits until a case is ready;
// outside a run it panics if no case is ready. TrySelect does not wait: it returns -1 if no case is
// ready.
//
//go:norace
func Select(cases ...Case) int { return selects(cases, true) }

//go:norace
func TrySelect(cases ...Case) int { return selects(cases, false) }

//go:norace
func selects(cases []Case, waits bool) int {
	r := active
	if r == nil {
		for i, x := range cases {
			if x.pointer() != nil && x.once() {
				return i
			}
		}
		if waits {
			panic("explore: a wait outside of a run")
		}
		return -1
	}
	chans := make([]*channel, len(cases))
	var only *channel
	op := OpSelect
	for i, x := range cases {
		if p := x.pointer(); p != nil {
			chans[i] = r.channelAt(p)
			chans[i].use(r)
			only = chans[i]
			if len(cases) == 1 {
				if op = OpRecv; x.sends() {
					op = OpSend
				}
			}
		}
	}
	g := r.current
	if only == nil {
		r.point(op, nil)
	} else {
		r.point(op, &only.Object)
	}
	met := -1
	for {
		first := r.pick(len(cases))
		for i := range cases {
			i = (i + first) % len(cases)
			if c := chans[i]; c != nil && cases[i].try(r, c) {
				r.touch(g, op, c)
				return i
			}
		}
		if !waits {
			return -1
		}
		for i, x := range cases {
			c := chans[i]
			if c == nil {
				continue
			}
			w := &waiter{g: g, at: i, met: &met}
			w.elem, w.ok = x.element()
			if x.sends() {
				c.send = append(c.send, w)
			} else {
				c.recv = append(c.recv, w)
			}
		}
		raceRelease(unsafe.Pointer(&met))
		r.block()
		for _, c := range chans {
			if c != nil {
				c.recv, c.send = forget(c.recv, g), forget(c.send, g)
			}
		}
		if met >= 0 {
			raceAcquire(unsafe.Pointer(&met))
			r.touch(g, op, chans[met])
			return met
		}
	}
}

// touch adds a send or receive to the hashes of the goroutine and the channel.
//
//go:norace
func (r *run) touch(g *goroutine, op Op, c *channel) {
	h := mix(mix(g.hash, uint64(op)), c.hash+uint64(c.id))
	g.hash, c.hash = h, h
}

// Recv receives a value.
//
//go:norace
func Recv[T any](c <-chan T) T {
	if active == nil {
		return <-c
	}
	x := RecvCase[T]{c: c}
	selects([]Case{&x}, true)
	return x.V
}

// Recv2 receives a value. It returns false if the channel is closed and has no more values.
//
//go:norace
func Recv2[T any](c <-chan T) (T, bool) {
	if active == nil {
		v, ok := <-c
		return v, ok
	}
	x := RecvCase[T]{c: c}
	selects([]Case{&x}, true)
	return x.V, x.OK
}

// A Sender sends a value to a channel.
type Sender[T any] struct{ c chan<- T }

// Send returns the Sender of a channel.
//
//go:norace
func Send[T any](c chan<- T) Sender[T] { return Sender[T]{c} }

// Value sends a value.
//
//go:norace
func (s Sender[T]) Value(v T) {
	if active == nil {
		s.c <- v
		return
	}
	selects([]Case{&SendCase[T]{s.c, v}}, true)
}

// Close closes a channel.
//
//go:norace
func Close[T any](ch chan<- T) {
	r := active
	if r == nil {
		close(ch)
		return
	}
	if r.current.killed {
		return
	}
	p := *(*unsafe.Pointer)(unsafe.Pointer(&ch))
	if p == nil {
		close(ch)
	}
	c := r.channelAt(p)
	c.use(r)
	r.point(OpClose, &c.Object)
	close(ch)
	r.wakeWaiters(c.recv)
	r.wakeWaiters(c.send)
}

// Push sends a timer's value to a buffered channel if there is room.
//
//go:norace
func Push[T any](ch chan T, v T) {
	r := active
	if r == nil {
		return
	}
	raceHide()
	select {
	case ch <- v:
	default:
	}
	raceShow()
	r.wakeWaiters(r.channelAt(pointerOf[T](ch)).recv)
}

// Elements iterates over received values until the channel is closed.
func Elements[T any](c <-chan T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			v, ok := Recv2(c)
			if !ok || !yield(v) {
				return
			}
		}
	}
}

// Go starts a goroutine.
//
//go:norace
func Go(fn func()) {
	r := active
	if r == nil {
		go fn()
		return
	}
	if r.current.killed {
		runtime.Goexit()
	}
	g := r.spawn(r.current, fn)
	r.enter(g)
	r.point(OpGo, nil)
}

// Go1 to Go4 return functions that start a goroutine with arguments. The caller evaluates the
// arguments.
func Go1[A any](f func(A)) func(A) { return func(a A) { Go(func() { f(a) }) } }

func Go2[A, B any](f func(A, B)) func(A, B) { return func(a A, b B) { Go(func() { f(a, b) }) } }

func Go3[A, B, C any](f func(A, B, C)) func(A, B, C) {
	return func(a A, b B, c C) { Go(func() { f(a, b, c) }) }
}

func Go4[A, B, C, D any](f func(A, B, C, D)) func(A, B, C, D) {
	return func(a A, b B, c C, d D) { Go(func() { f(a, b, c, d) }) }
}

// Go0R to Go3R do the same for functions with a result.
func Go0R[R any](f func() R) func() { return func() { Go(func() { f() }) } }

func Go1R[A, R any](f func(A) R) func(A) { return func(a A) { Go(func() { f(a) }) } }

func Go2R[A, B, R any](f func(A, B) R) func(A, B) { return func(a A, b B) { Go(func() { f(a, b) }) } }

func Go3R[A, B, C, R any](f func(A, B, C) R) func(A, B, C) {
	return func(a A, b B, c C) { Go(func() { f(a, b, c) }) }
}
