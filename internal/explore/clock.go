package explore

import (
	"time"
	"unsafe"
)

// Time is virtual. Each step takes some nanoseconds, and reading the clock takes more. When all
// goroutines wait, time advances to the next timer.

// A timer calls f once, on the goroutine that runs when the timer is due.
type timer struct {
	when int64
	seq  int
	f    func()
	set  bool

	short bool // the timer was set to at most 2 ms, like the sleep of a polling goroutine
}

// start sets a timer that is due when the given number of nanoseconds has passed.
//
//go:norace
func (r *run) start(t *timer, after int64) {
	r.timed++
	t.when, t.seq, t.set = r.now+max(after, 0), r.timed, true
	t.short = after <= 2_000_000
	i := len(r.timers)
	r.timers = append(r.timers, nil)
	for i > 0 && r.timers[i-1].when > t.when {
		r.timers[i] = r.timers[i-1]
		i--
	}
	r.timers[i] = t
}

// stop stops a timer and reports whether it was set.
//
//go:norace
func (r *run) stop(t *timer) bool {
	if !t.set {
		return false
	}
	t.set = false
	n := 0
	for _, x := range r.timers {
		if x != t {
			r.timers[n] = x
			n++
		}
	}
	r.timers[n] = nil
	r.timers = r.timers[:n]
	return true
}

// fire calls the functions of all timers that are due.
//
//go:norace
func (r *run) fire() {
	for len(r.timers) > 0 && r.timers[0].when <= r.now {
		t := r.timers[0]
		r.stop(t)
		r.firing = true
		t.f()
		r.firing = false
	}
}

// timeParts is the layout of a time.Time that has a reading of the monotonic clock.
type timeParts struct {
	wall uint64
	ext  int64
	loc  *time.Location
}

// epochSeconds is the time at which runs begin, in seconds since 1885.
const epochSeconds = 4_449_600_000

//go:norace
func at(ns int64) (t time.Time) {
	p := (*timeParts)(unsafe.Pointer(&t))
	p.wall = 1<<63 | uint64(epochSeconds+ns/1e9)<<30 | uint64(ns%1e9)
	p.ext = ns + 1
	return t
}

// Now returns the virtual time in a run, and the real time otherwise.
//
//go:norace
func Now() time.Time {
	r := active
	if r == nil {
		return time.Now()
	}
	r.point(OpTime, nil)
	r.now += look
	return at(r.now)
}

// Sleep makes the current goroutine wait.
//
//go:norace
func Sleep(d time.Duration) {
	r := active
	if r == nil {
		time.Sleep(d)
		return
	}
	r.point(OpSleep, nil)
	if d <= 0 {
		return
	}
	g := r.current
	r.start(&timer{f: func() { r.wakeUp(g) }}, int64(d))
	r.block()
}

// A Timer calls a function when the timer is due, or starts a goroutine with the function.
type Timer struct {
	timer timer
	own   Object
	run   *run
	real  *time.Timer
}

// Call returns a timer that calls f after the time d, on the goroutine that runs at that time; f
// must not wait. Outside a run f gets a goroutine of its own.
//
//go:norace
func Call(d time.Duration, f func()) *Timer {
	r := active
	if r == nil {
		return &Timer{real: time.AfterFunc(d, f)}
	}
	t := &Timer{run: r}
	t.timer.f = f
	r.point(OpTimer, &t.own)
	r.start(&t.timer, int64(d))
	return t
}

// After returns a timer that starts a goroutine with f after d.
//
//go:norace
func After(d time.Duration, f func()) *Timer {
	r := active
	if r == nil {
		return &Timer{real: time.AfterFunc(d, f)}
	}
	t := &Timer{run: r}
	r.point(OpTimer, &t.own)
	by := r.current
	raceRelease(unsafe.Pointer(t))
	t.timer.f = func() {
		raceHide()
		g := r.spawn(by, func() {
			raceAcquire(unsafe.Pointer(t))
			f()
		})
		raceShow()
		r.enter(g)
	}
	r.start(&t.timer, int64(d))
	return t
}

// Stop stops the timer and reports whether it was set. Stop does nothing after the end of the run
// in which the timer was made.
//
//go:norace
func (t *Timer) Stop() bool {
	if t.real != nil {
		return t.real.Stop()
	}
	r := active
	if r != t.run {
		return false
	}
	r.point(OpTimer, &t.own)
	return r.stop(&t.timer)
}

// Reset restarts the timer and reports whether it was set. Reset does nothing after the end of the
// run in which the timer was made.
//
//go:norace
func (t *Timer) Reset(d time.Duration) bool {
	if t.real != nil {
		return t.real.Reset(d)
	}
	r := active
	if r != t.run {
		return false
	}
	r.point(OpTimer, &t.own)
	raceRelease(unsafe.Pointer(t))
	was := r.stop(&t.timer)
	r.start(&t.timer, int64(d))
	return was
}

// Yield lets other goroutines run. It reports whether a run is active.
//
//go:norace
func Yield() bool {
	r := active
	if r == nil {
		return false
	}
	r.point(OpYield, nil)
	return true
}

// Fired returns the current time. Functions given to Call use Fired: unlike Now, Fired lets no
// other goroutine run.
//
//go:norace
func Fired() time.Time {
	if r := active; r != nil {
		return at(r.now)
	}
	return time.Now()
}

// Again restarts a timer. Only the timer's own function calls Again.
//
//go:norace
func (t *Timer) Again(d time.Duration) {
	if t.real != nil {
		t.real.Reset(d)
	} else if r := active; r == t.run {
		r.start(&t.timer, int64(d))
	}
}
