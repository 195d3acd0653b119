package textbook

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
)

// run runs a scenario under exploration only: otherwise it may fail or hang.
func run(t *testing.T, f func(x *explore.T)) {
	if !explore.Explored() {
		t.Skip("run by the tests of tools/explore")
	}
	explore.Run(t, f)
}

// waiter waits for a flag with a condition variable. Without the lock, the flag may be set and
// signalled after the waiter's check and before the wait. The wait then never ends.
func waiter(locked bool) func(x *explore.T) {
	return func(x *explore.T) {
		var mu sync.Mutex
		var set atomic.Bool
		c := sync.NewCond(&mu)
		go func() {
			if locked {
				mu.Lock()
				defer mu.Unlock()
			}
			set.Store(true)
			c.Signal()
		}()
		mu.Lock()
		for !set.Load() {
			c.Wait()
		}
		mu.Unlock()
	}
}

func TestFaultLostWakeup(t *testing.T) { run(t, waiter(false)) }
func TestTwinLostWakeup(t *testing.T)  { run(t, waiter(true)) }

// A stack has nodes that are used again. Unless tags is set, a pop that pauses between its load and
// its swap can take a head whose next has changed meanwhile.
type stack struct {
	head atomic.Uint64 // index; if tags is set, also a count in the bits above it
	next [4]atomic.Uint32
	tags bool
}

func (s *stack) push(i uint32) {
	for {
		h := s.head.Load()
		s.next[i].Store(uint32(h))
		if s.head.CompareAndSwap(h, s.tag(h)|uint64(i)) {
			return
		}
	}
}

func (s *stack) tag(h uint64) uint64 {
	if s.tags {
		return h>>32<<32 + 1<<32
	}
	return 0
}

func (s *stack) pop() uint32 {
	for {
		h := s.head.Load()
		i := uint32(h)
		if i == 0 {
			return 0
		}
		n := s.next[i].Load()
		if s.head.CompareAndSwap(h, s.tag(h)|uint64(n)) {
			return i
		}
	}
}

func aba(tags bool) func(x *explore.T) {
	return func(x *explore.T) {
		s := &stack{tags: tags}
		for i := uint32(3); i > 0; i-- {
			s.push(i)
		}
		var held [4]atomic.Int32
		take := func() uint32 {
			i := s.pop()
			if i != 0 && held[i].Add(1) != 1 {
				x.Errorf("node %d is somebody else's", i)
			}
			return i
		}
		give := func(i uint32) {
			if i != 0 {
				held[i].Add(-1)
				s.push(i)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { take() })
		wg.Go(func() {
			a := take()
			take()
			give(a)
			take()
		})
		wg.Wait()
	}
}

func TestFaultABA(t *testing.T) { run(t, aba(false)) }
func TestTwinABA(t *testing.T)  { run(t, aba(true)) }

type thing struct{ a, b int }

// TestFaultDoubleChecked makes an object on first use. It reads a plain pointer without the lock.
func TestFaultDoubleChecked(t *testing.T) {
	run(t, func(x *explore.T) {
		var mu sync.Mutex
		var p *thing
		get := func() *thing {
			if p == nil {
				mu.Lock()
				if p == nil {
					p = &thing{1, 2}
				}
				mu.Unlock()
			}
			return p
		}
		two(func() {
			if get().b != 2 {
				x.Errorf("not made")
			}
		})
	})
}

func TestTwinDoubleChecked(t *testing.T) {
	run(t, func(x *explore.T) {
		var mu sync.Mutex
		var p atomic.Pointer[thing]
		get := func() *thing {
			if p.Load() == nil {
				mu.Lock()
				if p.Load() == nil {
					p.Store(&thing{1, 2})
				}
				mu.Unlock()
			}
			return p.Load()
		}
		two(func() {
			if get().b != 2 {
				x.Errorf("not made")
			}
		})
	})
}

func two(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Go(f)
	wg.Wait()
}

func philosophers(order bool) func(x *explore.T) {
	return func(x *explore.T) {
		var forks [3]sync.Mutex
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				a, b := i, (i+1)%3
				if order {
					a, b = min(a, b), max(a, b)
				}
				forks[a].Lock()
				forks[b].Lock()
				//lint:ignore SA2001 only the order counts
				forks[b].Unlock()
				forks[a].Unlock()
			})
		}
		wg.Wait()
	}
}

func TestFaultDeadlockOfThree(t *testing.T) { run(t, philosophers(false)) }
func TestTwinDeadlockOfThree(t *testing.T)  { run(t, philosophers(true)) }

// box is a queue for one element, with one condition variable for senders and receivers. The fault
// wakes only one waiter, which may be a waiter that cannot go on.
func box(broadcast bool) func(x *explore.T) {
	return func(x *explore.T) {
		var mu sync.Mutex
		c := sync.NewCond(&mu)
		full := false
		wake := c.Signal
		if broadcast {
			wake = c.Broadcast
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				mu.Lock()
				for full {
					c.Wait()
				}
				full = true
				wake()
				mu.Unlock()
			})
			wg.Go(func() {
				mu.Lock()
				for !full {
					c.Wait()
				}
				full = false
				wake()
				mu.Unlock()
			})
		}
		wg.Wait()
	}
}

func TestFaultForgottenSignal(t *testing.T) { run(t, box(false)) }
func TestTwinForgottenSignal(t *testing.T)  { run(t, box(true)) }

func counter(whole bool) func(x *explore.T) {
	return func(x *explore.T) {
		var n atomic.Int32
		two(func() {
			if whole {
				n.Add(1)
			} else {
				n.Store(n.Load() + 1)
			}
		})
		if n.Load() != 2 {
			x.Errorf("%d", n.Load())
		}
	}
}

func TestFaultLostUpdate(t *testing.T) { run(t, counter(false)) }
func TestTwinLostUpdate(t *testing.T)  { run(t, counter(true)) }

// TestFaultRace counts in two goroutines without a lock.
func TestFaultRace(t *testing.T) {
	run(t, func(x *explore.T) {
		n, done := 0, make(chan bool, 1)
		go func() {
			n++
			done <- true
		}()
		if x.Choose(4) == 3 {
			n++
		}
		<-done
		_ = n
	})
}

// TestTwinRace counts in goroutines. Locks, channels, timers and other means of Go order the
// counts.
func TestTwinRace(t *testing.T) {
	run(t, func(x *explore.T) {
		n := 0
		bump := func() { n++ }
		var mu sync.Mutex
		var rw sync.RWMutex
		plain, room, shut := make(chan int), make(chan int, 1), make(chan int)
		var wg sync.WaitGroup
		var once sync.Once
		var flag atomic.Bool
		wg.Go(func() { mu.Lock(); bump(); mu.Unlock() })
		wg.Go(func() { mu.Lock(); bump(); mu.Unlock() })
		wg.Wait()
		go func() { bump(); plain <- 1 }()
		<-plain
		bump()
		go func() { <-plain; bump(); room <- 1 }()
		bump()
		plain <- 1
		<-room
		bump()
		go func() { bump(); close(shut) }()
		select {
		case <-shut:
		case <-time.After(time.Hour):
			x.Errorf("an hour has passed")
		}
		bump()
		go func() { rw.Lock(); bump(); flag.Store(true); rw.Unlock() }()
		for !flag.Load() {
			time.Sleep(time.Millisecond)
		}
		rw.RLock()
		bump()
		rw.RUnlock()
		two(func() { once.Do(bump) })
		bump()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		context.AfterFunc(ctx, func() { bump(); close(ended) })
		bump()
		cancel()
		<-ended
		bump()
		fired := make(chan struct{})
		time.AfterFunc(time.Second, func() { bump(); close(fired) })
		<-fired
		for range 3 {
			room <- n
			n = <-room + 1
		}
	})
}

// TestFaultLeak leaves a goroutine behind.
func TestFaultLeak(t *testing.T) {
	run(t, func(x *explore.T) {
		c := make(chan int)
		go func() { c <- 1 }()
		select {
		case <-c:
		default:
		}
	})
}

func TestTwinLeak(t *testing.T) {
	run(t, func(x *explore.T) {
		c := make(chan int, 1)
		go func() { c <- 1 }()
		select {
		case <-c:
		default:
		}
	})
}

// TestFaultLivelock has a goroutine that polls for ever, because the other goroutine sleeps for
// ever.
func TestFaultLivelock(t *testing.T) {
	run(t, func(x *explore.T) {
		var a atomic.Bool
		go func() {
			for !a.CompareAndSwap(true, false) {
				time.Sleep(time.Millisecond)
			}
		}()
		for a.Load() == false {
			if x.Choose(2) == 0 {
				a.Store(true)
				return
			}
			for {
				time.Sleep(time.Millisecond)
			}
		}
	})
}

func TestFaultPanic(t *testing.T) {
	run(t, func(x *explore.T) {
		c := make(chan int, 1)
		go func() { c <- 1 }()
		if x.Choose(2) == 1 {
			close(c)
		}
	})
}

// TestTwinTime checks that a ticker and a context follow the virtual time, and that a range over a
// map yields pointers in the order in which they were added.
func TestTwinTime(t *testing.T) {
	run(t, func(x *explore.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		inner, stop := context.WithTimeout(ctx, 2*time.Hour)
		defer stop()
		tick := time.NewTicker(time.Minute)
		n := 0
		for inner.Err() == nil {
			select {
			case <-tick.C:
				n++
			case <-inner.Done():
			}
		}
		tick.Stop()
		if past := time.Since(start); past < time.Hour || past > time.Hour+time.Minute || n < 58 || n > 60 {
			x.Errorf("%v, %d ticks", past, n)
		}
		if err := context.Cause(inner); !errors.Is(err, context.DeadlineExceeded) {
			x.Errorf("%v", err)
		}
		m := map[*int]string{}
		for _, s := range []string{"a", "b", "c"} {
			m[new(int)] = s
		}
		all := ""
		for _, s := range m {
			all += s
		}
		if all != "abc" {
			x.Errorf("keys by the order in which they came: %s", all)
		}
	})
}
