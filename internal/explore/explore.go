// Package explore runs a part of a program under many schedules. A seed determines each schedule.
//
// The program consists of rewritten source. tools/explore replaces go statements, channels, select,
// and uses of sync, sync/atomic, time, context, runtime and syscall by calls of this package. One
// goroutine runs at a time, and before each of these calls a strategy decides which goroutine
// continues. So a failed run can be repeated with its seed.
//
// A test calls [Run] with a scenario. In a program that is not rewritten the scenario runs once,
// without changes. For rewritten programs tools/explore sets [Config].
//
// A run fails by a failed assertion, a panic, a deadlock, too many steps, or leaked goroutines. A
// program built with the race detector also fails by a data race: the detector sees only the order
// that the program's own synchronization makes.
package explore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// ConfigEnv is the environment variable that holds a [Config], as JSON.
const ConfigEnv = "PUREGPU_EXPLORE"

// A Config configures [Run] in a rewritten program.
type Config struct {
	Strategy   string        // walk, pct, pct:DEPTH, delay, usual, or mix (the default), which picks walk, pct or delay by seed
	Seed       uint64        // the first seed
	Stride     uint64        // difference of consecutive seeds; 0 means 1
	Schedules  int           // number of schedules after the default one; 0 means 1, or no limit if Exhaustive is set
	Time       time.Duration // time limit, if not 0
	Shrink     bool          // shrink failing schedules
	Replays    int           // how often to repeat a failing schedule, to see whether it fails the same way
	Trace      bool          // print all steps, even without a failure
	Steps      int           // limit of steps in a schedule; 0 means 200,000
	Deeds      []Deed        // if not nil: run only this schedule after the default one
	Exhaustive int           // if not 0: run all schedules that have fewer than this number of decisions other than the default
	Report     string        // file to append reports to, one Report a line as JSON
	Hashes     string        // file to append the hash of each distinct schedule to, 8 bytes each
}

// A Kind is a kind of failure.
type Kind string

const (
	Assertion Kind = "assertion"
	Panic     Kind = "panic"
	Deadlock  Kind = "deadlock"
	Livelock  Kind = "livelock"
	Leak      Kind = "leak"
	Race      Kind = "data race"
)

// A Failure describes the failure of a run.
type Failure struct {
	Scenario string
	Kind     Kind
	Text     string
	Strategy string
	Seed     uint64
	Waiting  []string // the operation of each goroutine that has not ended
	Steps    int
	Switches int      // number of decisions other than the default
	Trace    []string // the last steps, if the failure was repeated with a trace

	Deeds         []Deed   // the schedule, as differences from the default one
	Shrunk        []Deed   // the schedule with the fewest differences that shrinking found
	ShrunkTrace   []string // steps of the shrunk schedule
	ShrunkText    string
	ShrunkWaiting []string
	Replayed      int // number of repetitions that failed in the same way
	Replays       int // number of repetitions
}

// A Report tells the progress of the exploration of a scenario.
type Report struct {
	Scenario  string
	Schedules int
	Steps     int64
	Distinct  int // schedules that differ in more than the order of independent steps
	Seconds   float64
	Done      bool // this is the last report of the scenario
	All       bool // with Exhaustive: all schedules have run
	Failure   *Failure
}

// A T is a scenario's handle on its run. Any goroutine of the scenario may call its methods, except
// Fatalf.
type T struct {
	run *run
	t   testing.TB
}

// Errorf reports a failure. In a rewritten program the failure ends the run.
func (t *T) Errorf(format string, args ...any) {
	if t.t != nil {
		t.t.Errorf(format, args...)
		return
	}
	t.run.assert(fmt.Sprintf(format, args...))
}

// Fatalf is like Errorf, and ends the scenario. Only the scenario's first goroutine may call it.
func (t *T) Fatalf(format string, args ...any) {
	if t.t != nil {
		t.t.Helper()
		t.t.Fatalf(format, args...)
	}
	t.run.assert(fmt.Sprintf(format, args...))
}

//go:norace
func (r *run) assert(text string) {
	if r.current.killed {
		runtime.Goexit()
	}
	r.fail(Assertion, text+"\n"+string(debug.Stack()))
}

// Window sets whether decisions are explored from now on. Scenarios use it to exclude their set-up.
//
//go:norace
func (t *T) Window(open bool) {
	if t.run != nil {
		t.run.window = open
	}
}

// Explored reports whether the program is rewritten. Time is virtual in a rewritten program.
func Explored() bool { return rewritten }

// Run runs a scenario: once in an ordinary program, and as often as [Config] says in a rewritten
// one.
func Run(t *testing.T, scenario func(*T)) {
	t.Helper()
	if !rewritten {
		scenario(&T{t: t})
		return
	}
	text := os.Getenv(ConfigEnv)
	if text == "" {
		text = "{}"
	}
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%s: %v", ConfigEnv, err)
	}
	e := &explorer{t: t, c: c, scenario: scenario}
	if err := e.explore(); err != nil {
		t.Fatal(err)
	}
}

// An explorer explores one scenario.
type explorer struct {
	t        *testing.T
	c        Config
	scenario func(*T)

	began  time.Time
	told   time.Time
	report Report
	seen   map[uint64]struct{}
	fresh  []byte
	length int
}

func (e *explorer) explore() error {
	c := &e.c
	e.report.Scenario = e.t.Name()
	e.began = time.Now()
	e.seen = map[uint64]struct{}{}
	if c.Steps == 0 {
		c.Steps = 200_000
	}
	defer e.tell(true)
	first := e.once(usualStrategy{}, false)
	e.length = first.steps
	if first.failure != nil {
		return e.failed(first, "usual", 0, func() strategy { return usualStrategy{} })
	}
	if c.Deeds != nil {
		return e.try("replay", 0, func() strategy { return &replay{deeds: c.Deeds} })
	}
	if c.Exhaustive > 0 {
		return e.exhaust()
	}
	for i := range max(c.Schedules, 1) {
		if c.Time > 0 && time.Since(e.began) > c.Time {
			return nil
		}
		seed := c.Seed + uint64(i)*max(c.Stride, 1)
		err := e.try(c.Strategy, seed, func() strategy {
			s, err := strategyOf(c.Strategy, seed, e.length)
			if err != nil {
				e.t.Fatal(err)
			}
			return s
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// try runs one schedule, and reports it if it fails.
func (e *explorer) try(name string, seed uint64, of func() strategy) error {
	r := e.once(of(), e.c.Trace)
	if e.c.Trace {
		e.t.Log("\n" + strings.Join(r.lines(r.trace, false), "\n"))
	}
	if r.failure != nil {
		return e.failed(r, name, seed, of)
	}
	return nil
}

// once runs one schedule.
func (e *explorer) once(s strategy, traced bool) *run {
	r := play(s, e.c.Steps, traced, e.scenario)
	e.report.Schedules++
	e.report.Steps += int64(r.steps)
	h := uint64(0)
	for _, x := range r.hashes {
		h += x
	}
	if _, ok := e.seen[h]; !ok {
		if len(e.seen) < 4<<20 {
			e.seen[h] = struct{}{}
		}
		e.report.Distinct++
		if e.c.Hashes != "" {
			for i := range 8 {
				e.fresh = append(e.fresh, byte(h>>(8*i)))
			}
		}
	}
	if now := time.Now(); now.Sub(e.told) > time.Second {
		e.told = now
		e.tell(false)
	}
	return r
}

// play runs one schedule of a scenario.
//
//go:norace
func play(s strategy, steps int, traced bool, scenario func(*T)) *run {
	epochs++
	r := &run{epoch: epochs, strategy: s, limit: steps, traced: traced, window: true, over: make(chan struct{}, 1), died: make(chan struct{}), races: raceErrors()}
	active = r
	begin(r, scenario)
	<-r.over
	if raceEnabled && r.failure == nil && raceErrors() > r.races {
		r.failed(Race, raceText)
	}
	if len(r.all) > 0 {
		r.kill()
	}
	active = nil
	return r
}

//go:norace
func begin(r *run, scenario func(*T)) {
	t := &T{run: r}
	g := r.spawn(nil, func() { scenario(t) })
	r.enter(g)
	r.current = g
	g.wake <- struct{}{}
}

var errFailed = errors.New("a schedule has failed")

// failed shrinks, repeats and reports a failing schedule.
func (e *explorer) failed(r *run, name string, seed uint64, of func() strategy) error {
	f := r.failure
	f.Scenario, f.Strategy, f.Seed, f.Steps, f.Deeds = e.t.Name(), name, seed, r.steps, r.deeds
	f.Switches = len(r.deeds)
	same := func(x *run) bool { return x.failure != nil && x.failure.Kind == f.Kind }
	if t := e.again(of(), true); same(t) {
		f.Trace, f.Waiting = t.lines(t.trace, true), t.failure.Waiting
	}
	for range e.c.Replays {
		f.Replays++
		if x := e.again(of(), false); same(x) && x.steps == r.steps && x.hash() == r.hash() && x.failure.head() == f.head() {
			f.Replayed++
		}
	}
	if e.c.Shrink {
		f.Shrunk = shrink(r.deeds, func(d []Deed) bool { return same(e.again(&replay{deeds: d}, false)) })
		if t := e.again(&replay{deeds: f.Shrunk}, true); same(t) {
			f.ShrunkTrace, f.ShrunkText, f.ShrunkWaiting = t.lines(t.trace, true), t.failure.Text, t.failure.Waiting
		}
	}
	e.report.Failure = f
	return fmt.Errorf("%w: %s: %s\nseed %d, strategy %s", errFailed, f.Kind, f.Text, seed, name)
}

// head returns the first line of a failure. Later lines may contain addresses, which differ.
func (f *Failure) head() string {
	s, _, _ := strings.Cut(f.Text, "\n")
	return s
}

func (e *explorer) again(s strategy, traced bool) *run {
	return play(s, e.c.Steps, traced, e.scenario)
}

//go:norace
func (r *run) hash() uint64 {
	h := uint64(0)
	for _, x := range r.hashes {
		h += x
	}
	return h
}

// shrink removes decisions without which the schedule still fails.
func shrink(deeds []Deed, fails func([]Deed) bool) []Deed {
	if !fails(deeds) {
		return deeds
	}
	tries := 0
	for size := (len(deeds) + 1) / 2; size > 0; {
		removed := false
		for i := 0; i < len(deeds) && tries < 3000; {
			tries++
			less := append(append([]Deed(nil), deeds[:i]...), deeds[min(i+size, len(deeds)):]...)
			if fails(less) {
				deeds, removed = less, true
			} else {
				i += size
			}
		}
		if size == 1 && !removed || tries >= 3000 {
			break
		}
		if !removed || size > len(deeds) {
			size = min((size+1)/2, max(len(deeds)/2, 1))
			if size < 1 {
				size = 1
			}
			if size == 1 && len(deeds) == 0 {
				break
			}
		}
	}
	return deeds
}

func (e *explorer) tell(done bool) {
	e.report.Seconds = time.Since(e.began).Seconds()
	e.report.Done = done
	add(e.c.Report, func() []byte {
		line, err := json.Marshal(e.report)
		if err != nil {
			e.t.Error(err)
		}
		return append(line, '\n')
	})
	add(e.c.Hashes, func() []byte { return e.fresh })
	e.fresh = nil
}

// add appends to a file.
func add(name string, text func() []byte) {
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.Write(text())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(err)
	}
}

// Settle waits until all other goroutines wait, for each other or for time to pass. Everything that
// they did happens before Settle returns. In a program that is not rewritten, Settle sleeps for 10
// ms.
func (t *T) Settle() {
	if t.run == nil {
		time.Sleep(10 * time.Millisecond)
		return
	}
	t.run.settle()
}

//go:norace
func (r *run) settle() {
	r.point(OpWait, nil)
	r.settler = r.current
	r.block()
	raceAcquire(unsafe.Pointer(&r.settled))
}

// Choose returns a number below n, so that one scenario can cover several cases. In a program that
// is not rewritten, Choose returns 0.
func (t *T) Choose(n int) int {
	if t.run == nil {
		return 0
	}
	return t.run.choice(n)
}

//go:norace
func (r *run) choice(n int) int {
	r.choosing = true
	i := r.pick(n)
	r.choosing = false
	return i
}
