package wake

import (
	"cmp"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A sleeper lets the thread of a locked goroutine sleep in the kernel, on a futex. If the goroutine
// blocked on a channel instead, waking it would take two steps: Go wakes another thread, which then
// wakes the goroutine's thread and hands over a P.
type sleeper struct {
	word  atomic.Uint32 // the futex: 1 while the thread sleeps, or is about to
	limit time.Duration // the longest sleep; sleepLimit if 0
}

// sleepLimit is the longest time that a thread sleeps. At the latest after about that time, Go's
// monitor (sysmon) takes the P away from a thread that is in a system call.
const sleepLimit = 10 * time.Millisecond

const (
	futexWait = 128 // FUTEX_WAIT_PRIVATE
	futexWake = 129 // FUTEX_WAKE_PRIVATE
)

// sleep blocks the thread until a receive from wake succeeds, and then returns true. The sender
// must call rouse after the send. sleep returns false if the goroutine should park instead: at once
// if too many processors are kept, or after the limit.
func (s *sleeper) sleep(wake <-chan struct{}, p *Processors) bool {
	if !p.keep(longKeep) { // the sleeping thread keeps its P
		return false
	}
	defer p.give()
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

// sleeps reports whether the thread sleeps or is about to.
func (s *sleeper) sleeps() bool { return s.word.Load() != 0 }

// rouse wakes the thread if it sleeps.
func (s *sleeper) rouse() {
	if s.word.Load() != 0 && s.word.Swap(0) != 0 {
		syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&s.word)), futexWake, 1, 0, 0, 0)
	}
}
