package explore

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// The functions of this file that use the state of a run are go:norace: the race detector does not
// see that only one goroutine at a time uses the state. They use no maps, since the Go runtime
// reports uses of maps to the detector.

// A goroutine is one of the program's goroutines. It runs while it is run.current.
type goroutine struct {
	// path names the goroutine by the same text in every schedule. The first goroutine is "1". The
	// second goroutine that goroutine "1" starts is "1.2".
	path   string
	id     int // number of the goroutine in the run, in the order of start
	wake   chan struct{}
	state  state
	killed bool

	kids  int
	took  int    // number of decisions made while it was the current goroutine
	hash  uint64 // hash of its operations and of the earlier operations that they depend on
	op    Op     // its next operation, or the one in which it waits
	obj   *Object
	place []uintptr // call stack of op, if the run is traced
	alone int       // number of its steps that called run.usual since it last waited

	locks  int // number of calls of LockOSThread that UnlockOSThread has not undone
	thread int // number of the OS thread that the goroutine is locked to, if locks > 0

	// State of the strategies.
	priority int
	held     int // a delay prefers other goroutines until the run has made this many steps
}

type state uint8

const (
	runnable state = iota
	blocked
	dead
)

// A run is one schedule.
type run struct {
	epoch    uint32
	strategy strategy
	noise    random // random numbers other than decisions
	limit    int    // limit of steps

	current  *goroutine
	all      []*goroutine // goroutines that have not ended
	ready    []*goroutine // runnable goroutines, by id
	started  int
	threads  int
	objects  uint32
	steps    int
	switches int

	now    int64 // virtual nanoseconds
	timers []*timer
	timed  int
	firing bool
	vain   int // number of times that all goroutines slept since a goroutine, not a timer, last woke one

	table table // objects by address

	mainOver bool
	deadline int64      // time at which the remaining goroutines must have ended
	settler  *goroutine // the goroutine in Settle, which waits until all others wait
	settled  byte
	choosing bool // a decision of T.Choose is being made
	window   bool // the strategy decides; if false, the default applies
	failure  *Failure
	over     chan struct{}
	died     chan struct{}
	dying    bool // the current goroutine has ended and chooses the next one
	races    int  // number of races that the detector had found before the run

	traced bool
	trace  []step
	deeds  []Deed   // decisions other than the default
	hashes []uint64 // hashes of ended goroutines
}

// active is the current run, or nil.
var active *run

// epochs counts runs, to recognize objects of an earlier run.
var epochs uint32

const (
	tick      = 20              // nanoseconds that a step takes
	look      = 200             // nanoseconds that reading the clock takes in addition
	afterMain = 120_000_000_000 // nanoseconds that goroutines may run after the end of the scenario
	patience  = 40              // times that all goroutines sleep before sleeps get longer
	tooLong   = 2000            // steps without a wait after which a goroutine lets others run by default
)

// An Op is the operation of a goroutine's step.
type Op uint8

// The operations.
const (
	opNone Op = iota
	OpStart
	OpGo
	OpEnd
	OpLock
	OpTryLock
	OpUnlock
	OpRLock
	OpRUnlock
	OpLoad
	OpStore
	OpSwap
	OpCAS
	OpAdd
	OpSend
	OpRecv
	OpClose
	OpSelect
	OpWait
	OpDone
	OpSignal
	OpSleep
	OpYield
	OpTime
	OpTimer
	OpPool
	OpMap
	OpFutex
	OpThread
)

var opNames = [...]string{
	opNone: "", OpStart: "begins", OpGo: "go", OpEnd: "ends", OpLock: "lock", OpTryLock: "try lock", OpUnlock: "unlock", OpRLock: "read lock",
	OpRUnlock: "read unlock", OpLoad: "load", OpStore: "store", OpSwap: "swap", OpCAS: "compare and swap", OpAdd: "add", OpSend: "send",
	OpRecv: "receive", OpClose: "close", OpSelect: "select", OpWait: "wait", OpDone: "done", OpSignal: "signal", OpSleep: "sleep",
	OpYield: "yield", OpTime: "time", OpTimer: "timer", OpPool: "pool", OpMap: "map", OpFutex: "futex", OpThread: "thread",
}

func (o Op) String() string { return opNames[o] }

// reads reports whether the operation only reads its object, so that the order of two such
// operations does not matter.
func (o Op) reads() bool { return o == OpLoad || o == OpTime }

// An Object represents a mutex, a channel, an atomic value and so on in a run.
type Object struct {
	epoch uint32
	id    uint32 // from 1, in the order of first use in the run
	hash  uint64
	owner *goroutine // the goroutine that has locked the object for writing
	since []uintptr  // where owner locked it, if the run is traced
}

// use makes the object part of the run, and reports whether the object is new to the run.
//
//go:norace
func (o *Object) use(r *run) (fresh bool) {
	if o.epoch == r.epoch {
		return false
	}
	r.objects++
	*o = Object{epoch: r.epoch, id: r.objects}
	return true
}

// A step is one line of a trace.
type step struct {
	g     *goroutine
	op    Op
	obj   uint32
	place []uintptr
	now   int64
}

// mix returns a hash of two hashes.
//
//go:norace
func mix(a, b uint64) uint64 {
	a ^= b + 0x9e3779b97f4a7c15 + a<<6 + a>>2
	a *= 0xff51afd7ed558ccd
	a ^= a >> 33
	a *= 0xc4ceb9fe1a85ec53
	return a ^ a>>29
}

// point lets the strategy switch to another goroutine before the current one executes an operation.
//
//go:norace
func (r *run) point(op Op, o *Object) {
	g := r.current
	if g.killed {
		runtime.Goexit()
	}
	g.op, g.obj = op, o
	if o != nil {
		o.use(r)
	}
	r.steps++
	r.now += tick
	if r.steps > r.limit {
		r.fail(Livelock, fmt.Sprintf("it is still running after %d steps", r.limit))
	}
	if r.traced {
		g.place = callers()
	}
	if len(r.timers) > 0 && r.timers[0].when <= r.now {
		r.fire()
	}
	if len(r.ready) > 1 || len(r.timers) > 0 {
		if next := r.choose(g); next != g {
			r.switchTo(next)
		}
	}
	r.did(g, op, o)
	if r.failure != nil {
		r.halt()
	}
}

// did records an operation of g in the hashes, and in the trace if the run is traced.
//
//go:norace
func (r *run) did(g *goroutine, op Op, o *Object) {
	h := mix(g.hash, uint64(op))
	if o != nil {
		h = mix(h, o.hash+uint64(o.id))
		if !op.reads() {
			o.hash = h
		}
	}
	g.hash = h
	if r.traced {
		s := step{g: g, op: op, place: g.place, now: r.now}
		if o != nil {
			s.obj = o.id
		}
		r.trace = append(r.trace, s)
		if raceEnabled && raceErrors() > r.races {
			r.failed(Race, raceText)
		}
	}
}

const raceText = "the race detector has found accesses that nothing orders"

// block makes the current goroutine wait. It returns when wakeUp has made the goroutine runnable
// and choose has returned it.
//
//go:norace
func (r *run) block() {
	g := r.current
	if g.killed {
		runtime.Goexit()
	}
	r.unready(g)
	g.state = blocked
	g.alone = 0
	raceRelease(unsafe.Pointer(&r.settled))
	next := r.choose(nil)
	if next != g {
		r.switchTo(next)
	}
}

// wakeUp makes a blocked goroutine runnable.
//
//go:norace
func (r *run) wakeUp(g *goroutine) {
	if g.state != blocked {
		return
	}
	if !r.firing {
		r.vain = 0
	}
	g.state = runnable
	i := len(r.ready)
	r.ready = append(r.ready, nil)
	for i > 0 && r.ready[i-1].id > g.id {
		r.ready[i] = r.ready[i-1]
		i--
	}
	r.ready[i] = g
}

//go:norace
func (r *run) unready(g *goroutine) {
	n := 0
	for _, x := range r.ready {
		if x != g {
			r.ready[n] = x
			n++
		}
	}
	r.ready[n] = nil
	r.ready = r.ready[:n]
}

// choose returns the runnable goroutine that runs next. If no goroutine is runnable, choose first
// wakes the goroutine in Settle. If no goroutine is in Settle, timers fire until a goroutine is
// runnable. If no timer may fire, the run fails. self is the current goroutine, or nil if it cannot
// continue.
//
//go:norace
func (r *run) choose(self *goroutine) *goroutine {
	for len(r.ready) == 0 {
		if r.settler != nil {
			g := r.settler
			r.settler = nil
			r.wakeUp(g)
			break
		}
		if len(r.timers) == 0 || r.mainOver && r.timers[0].when > r.deadline {
			r.stuck()
		}
		r.idle()
		r.fire()
	}
	usual := r.usual(self)
	if len(r.ready) == 1 || !r.window {
		return usual
	}
	actor := self
	if actor == nil {
		actor = r.current
	}
	actor.took++
	next := r.strategy.next(r, actor, self, usual)
	if next != usual {
		r.deeds = append(r.deeds, Deed{Actor: actor.path, At: actor.took, Next: next.path})
	}
	return next
}

// idle advances time to the next timer. After several sleeps without progress, sleeps last longer
// than requested, which Sleep permits. Polling goroutines would otherwise use up all steps.
//
//go:norace
func (r *run) idle() {
	next := r.timers[0].when
	if r.vain++; r.vain > patience {
		next += 100_000 << min((r.vain-patience)/4, 10)
		for _, t := range r.timers[1:] {
			if !t.short && t.when > r.timers[0].when {
				next = min(next, t.when-1) // a longer sleep ends before the next timer that is not short, such as a deadline
			}
		}
	}
	r.now = max(r.now, r.timers[0].when, next)
}

// usual returns the default choice: the running goroutine continues until it waits, sleeps, yields,
// or has run for very long.
//
//go:norace
func (r *run) usual(self *goroutine) *goroutine {
	if self != nil {
		self.alone++
		if self.op != OpYield && self.op != OpSleep && self.alone%tooLong != 0 {
			return self
		}
	}
	// Otherwise the choice is the next ready goroutine by id, and after the last one the first.
	for _, g := range r.ready {
		if g.id > r.current.id {
			return g
		}
	}
	return r.ready[0]
}

// pick picks one of n equally good alternatives.
//
//go:norace
func (r *run) pick(n int) int {
	if n < 2 || !r.window && !r.choosing {
		return 0
	}
	g := r.current
	g.took++
	i := r.strategy.pick(r, g, n)
	if i != 0 {
		r.deeds = append(r.deeds, Deed{Actor: g.path, At: g.took, Pick: i})
	}
	return i
}

//go:norace
func (r *run) switchTo(next *goroutine) {
	g := r.current
	r.switches++
	r.current = next
	raceHide()
	next.wake <- struct{}{}
	<-g.wake
	raceShow()
	if g.killed {
		runtime.Goexit()
	}
}

// spawn makes a goroutine that does not run yet. The parameter by is the goroutine that starts the
// new one, or nil for the first.
//
//go:norace
func (r *run) spawn(by *goroutine, fn func()) *goroutine {
	g := &goroutine{wake: make(chan struct{}, 1), op: OpStart, state: blocked}
	if by != nil {
		by.kids++
		g.path = by.path + "." + itoa(by.kids)
		g.hash = mix(by.hash, uint64(by.kids))
	} else {
		g.path, g.hash = "1", 1
	}
	if r.traced {
		g.place = callers()
	}
	go g.live(r, fn)
	return g
}

// enter makes a spawned goroutine runnable.
//
//go:norace
func (r *run) enter(g *goroutine) {
	r.started++
	g.id = r.started
	r.all = append(r.all, g)
	r.strategy.started(r, g)
	r.wakeUp(g)
}

// itoa formats n, which is not negative. It does not use fmt: the race detector would report fmt's
// buffers, because it sees no order between their uses.
//
//go:norace
func itoa(n int) string {
	if n < 10 {
		return "0123456789"[n : n+1]
	}
	return itoa(n/10) + itoa(n%10)
}

//go:norace
func (g *goroutine) live(r *run, fn func()) {
	raceHide()
	<-g.wake
	raceShow()
	defer g.die(r)
	if g.killed {
		return
	}
	r.did(g, OpStart, nil)
	fn()
}

// die ends a goroutine.
//
//go:norace
func (g *goroutine) die(r *run) {
	if v := recover(); v != nil && !g.killed {
		r.failed(Panic, fmt.Sprintf("panic: %v\n%s", v, debug.Stack()))
	}
	g.state = dead
	if g.killed {
		raceHide()
		r.died <- struct{}{}
		raceShow()
		return
	}
	raceRelease(unsafe.Pointer(&r.settled))
	r.did(g, OpEnd, nil)
	r.hashes = append(r.hashes, mix(g.hash, 7))
	r.unready(g)
	n := 0
	for _, x := range r.all {
		if x != g {
			r.all[n] = x
			n++
		}
	}
	r.all = r.all[:n]
	if g.id == 1 {
		r.mainOver = true
		r.deadline = r.now + afterMain
	}
	if r.failure != nil || len(r.all) == 0 {
		r.end()
		return
	}
	if next := r.nextOf(); next != nil {
		r.switches++
		r.current = next
		raceHide()
		next.wake <- struct{}{}
		raceShow()
	}
}

// nextOf calls choose when a goroutine has ended, and returns nil if the run is over.
//
//go:norace
func (r *run) nextOf() (next *goroutine) {
	r.dying = true
	defer r.endDying(&next)
	return r.choose(nil)
}

//go:norace
func (r *run) endDying(next **goroutine) {
	r.dying = false
	if v := recover(); v != nil {
		if v != any(errOver) {
			panic(v)
		}
		*next = nil
	}
}

var errOver = fmt.Errorf("the run is over")

// end lets the function play continue.
//
//go:norace
func (r *run) end() {
	raceHide()
	r.over <- struct{}{}
	raceShow()
}

// fail ends the run. It does not return.
//
//go:norace
func (r *run) fail(kind Kind, text string) {
	r.failed(kind, text)
	r.halt()
}

// halt ends a failed run. It does not return.
//
//go:norace
func (r *run) halt() {
	g := r.current
	r.end()
	if r.dying {
		panic(errOver)
	}
	raceHide()
	<-g.wake
	raceShow()
	runtime.Goexit()
}

// failed records a failure; the first one counts.
//
//go:norace
func (r *run) failed(kind Kind, text string) {
	if r.failure == nil {
		r.failure = &Failure{Kind: kind, Text: text}
		r.failure.Waiting = r.describe()
	}
}

// stuck fails the run: no goroutine can run, and no timer may wake one. It does not return.
//
//go:norace
func (r *run) stuck() {
	if r.mainOver {
		r.fail(Leak, fmt.Sprintf("%d goroutines leaked: they still run after the end of the scenario", len(r.all)))
	}
	r.fail(Deadlock, "all goroutines wait")
}

// kill ends the goroutines of a failed run. Deferred functions run until their first step.
//
//go:norace
func (r *run) kill() {
	for _, g := range r.all {
		if g.state == dead {
			continue
		}
		g.killed = true
		r.current = g
		g.wake <- struct{}{}
		<-r.died
	}
}

// callers returns the call stack, up to 24 frames, without the frames of callers and of the
// function that calls it.
//
//go:norace
func callers() []uintptr {
	var pcs [24]uintptr
	n := runtime.Callers(3, pcs[:])
	out := make([]uintptr, n)
	for i := range out {
		out[i] = pcs[i]
	}
	return out
}

// A random is a source of random numbers: SplitMix64.
type random struct{ state uint64 }

//go:norace
func (x *random) next() uint64 {
	x.state += 0x9e3779b97f4a7c15
	z := x.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

//go:norace
func (x *random) below(n int) int { return int(x.next() >> 33 % uint64(n)) }

// A table finds objects by address.
type table struct {
	keys []unsafe.Pointer
	vals []unsafe.Pointer
	n    int
}

//go:norace
func (t *table) at(p unsafe.Pointer) *unsafe.Pointer {
	if 4*(t.n+1) > 3*len(t.keys) {
		old := *t
		size := max(64, 2*len(t.keys))
		*t = table{keys: make([]unsafe.Pointer, size), vals: make([]unsafe.Pointer, size)}
		for i, k := range old.keys {
			if k != nil {
				*t.at(k) = old.vals[i]
			}
		}
	}
	mask := len(t.keys) - 1
	for i := int(mix(uint64(uintptr(p)), 0)) & mask; ; i = (i + 1) & mask {
		switch t.keys[i] {
		case p:
			return &t.vals[i]
		case nil:
			t.keys[i] = p
			t.n++
			return &t.vals[i]
		}
	}
}
