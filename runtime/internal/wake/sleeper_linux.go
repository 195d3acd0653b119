package wake

import (
	"cmp"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A sleeper is a thread that sleeps in the kernel. If a locked goroutine waits for a channel
// instead, another thread has to be woken first, which wakes it and gives it a processor. That
// takes twice as long, and tens of microseconds more in a virtual machine.
type sleeper struct {
	word  atomic.Uint32 // 1 while the thread sleeps, or is about to
	limit time.Duration // 0 means sleepLimit
}

// sleepLimit is how long a thread sleeps at most. Go's monitor leaves a processor to a thread that
// does not use it no longer than that.
const sleepLimit = 10 * time.Millisecond

const (
	futexWait = 128 // FUTEX_WAIT_PRIVATE
	futexWake = 129 // FUTEX_WAKE_PRIVATE
)

// sleep waits for an element of the channel wake. The sender must call rouse afterwards. sleep
// returns false, after a short wait or none, if parking the goroutine is better.
func (s *sleeper) sleep(wake <-chan struct{}, of *Processors) bool {
	if !of.keep(longKeep) { // Go takes it away if others need it, and after some time anyway
		return false
	}
	defer of.give()
	for until := time.Now().Add(cmp.Or(s.limit, sleepLimit)); ; {
		s.word.Store(1)
		select {
		case <-wake:
			s.word.Store(0)
			return true
		default:
		}
		left := time.Until(until)
		if left <= 0 {
			s.word.Store(0)
			return false
		}
		limit := syscall.NsecToTimespec(int64(left))
		syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&s.word)), futexWait, 1, uintptr(unsafe.Pointer(&limit)), 0, 0)
	}
}

// sleeps reports whether the thread sleeps.
func (s *sleeper) sleeps() bool { return s.word.Load() != 0 }

// rouse wakes the thread if it sleeps.
func (s *sleeper) rouse() {
	if s.word.Load() != 0 && s.word.Swap(0) != 0 {
		syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&s.word)), futexWake, 1, 0, 0, 0)
	}
}
