// Package lockcheck replaces the mutexes of package sync in a test build. It records which mutexes
// a goroutine holds at the same time, and the order in which it locked them. Command tools/locks
// makes that build and checks the record.
package lockcheck

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Output is the environment variable that names the file to write to.
const Output = "PUREGPU_LOCKS"

// A Name is the type argument of a mutex. Its method returns package, struct and field, as in
// "engine.Timeline.mu".
type Name interface{ Name() string }

// A Mutex is a recorded [sync.Mutex].
type Mutex[N Name] struct{ mu sync.Mutex }

// Lock locks the mutex, and records that the goroutine may have waited for this mutex while holding
// others.
func (m *Mutex[N]) Lock() {
	m.mu.Lock()
	taken[N](m, true)
}

// TryLock tries to lock the mutex, and records a success in brackets: a call that does not wait
// implies no order of mutexes.
func (m *Mutex[N]) TryLock() bool {
	ok := m.mu.TryLock()
	if ok {
		taken[N](m, false)
	}
	return ok
}

// Unlock may be called by a different goroutine than Lock, as in package sync.
func (m *Mutex[N]) Unlock() {
	left(m)
	m.mu.Unlock()
}

// An RWMutex is a recorded [sync.RWMutex]. Readers count as owners.
type RWMutex[N Name] struct{ mu sync.RWMutex }

// Lock is like Mutex.Lock.
func (m *RWMutex[N]) Lock() {
	m.mu.Lock()
	taken[N](m, true)
}

// RLock is like Lock.
func (m *RWMutex[N]) RLock() {
	m.mu.RLock()
	taken[N](m, true)
}

// Unlock is like Mutex.Unlock.
func (m *RWMutex[N]) Unlock() {
	left(m)
	m.mu.Unlock()
}

// RUnlock is like Unlock.
func (m *RWMutex[N]) RUnlock() {
	left(m)
	m.mu.RUnlock()
}

// A lock is a mutex that a goroutine holds.
type lock struct {
	mutex  any // pointer to the mutex
	name   string
	waited bool // locked by Lock or RLock, not by TryLock
}

var (
	mu   sync.Mutex            // protects the following
	held = map[uint64][]lock{} // by goroutine
	seen = map[string]bool{}
	out  *os.File
)

// taken records that this goroutine has locked a mutex. If the goroutine now holds two or more
// mutexes, in an order that was not seen before, taken writes a line: the mutexes' names in the
// order of locking, a tab, and the call stack. A mutex in brackets was locked by TryLock.
func taken[N Name](mutex any, waited bool) {
	var n N
	id := goroutine()
	mu.Lock()
	defer mu.Unlock()
	held[id] = append(held[id], lock{mutex, n.Name(), waited})
	if len(held[id]) == 1 {
		return
	}
	var names []string
	for _, l := range held[id] {
		if l.waited {
			names = append(names, l.name)
		} else {
			names = append(names, "["+l.name+"]")
		}
	}
	line := strings.Join(names, " ")
	if seen[line] {
		return
	}
	seen[line] = true
	if out == nil {
		var err error
		if out, err = os.OpenFile(os.Getenv(Output), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666); err != nil {
			panic(fmt.Sprintf("lockcheck: the file named by %s: %v", Output, err))
		}
	}
	fmt.Fprintf(out, "%s\t%s\n", line, callers())
}

// left records that a mutex is about to be unlocked.
func left(mutex any) {
	id := goroutine()
	mu.Lock()
	defer mu.Unlock()
	if drop(id, mutex) {
		return
	}
	for other := range held {
		if drop(other, mutex) {
			return
		}
	}
}

// drop removes a mutex from a goroutine's list, and reports whether it was in the list.
func drop(id uint64, mutex any) bool {
	all := held[id]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].mutex == mutex {
			if all = slices.Delete(all, i, i+1); len(all) == 0 {
				delete(held, id)
			} else {
				held[id] = all
			}
			return true
		}
	}
	return false
}

// callers returns the call stack of the lock, innermost first.
func callers() string {
	pc := make([]uintptr, 12)
	frames := runtime.CallersFrames(pc[:runtime.Callers(4, pc)])
	var names []string
	for {
		f, more := frames.Next()
		names = append(names, f.Function[strings.LastIndexByte(f.Function, '/')+1:])
		if !more {
			return strings.Join(names, " < ")
		}
	}
}
