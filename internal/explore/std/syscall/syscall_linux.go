package syscall

import (
	"fmt"
	std "syscall"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/internal/explore"
)

type (
	Errno    = std.Errno
	Timespec = std.Timespec
)

const (
	SYS_FUTEX = std.SYS_FUTEX

	EAGAIN = std.EAGAIN
	EINVAL = std.EINVAL
)

// The futex operations that are replaced.
const (
	futexWait    = 0
	futexWake    = 1
	futexPrivate = 128
)

func NsecToTimespec(ns int64) Timespec { return std.NsecToTimespec(ns) }

func Nanosleep(t, left *Timespec) error {
	explore.Sleep(time.Duration(t.Nano()))
	return nil
}

// Gettid returns the number of the thread. It changes at each call unless the goroutine is locked
// to a thread.
func Gettid() int { return explore.Thread() }

func Syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	if trap != SYS_FUTEX {
		panic(fmt.Sprintf("explore: system call %d is not supported", trap))
	}
	word := *(**uint32)(unsafe.Pointer(&a1))
	switch a2 &^ futexPrivate {
	case futexWait:
		limit := int64(-1)
		if t := *(**Timespec)(unsafe.Pointer(&a4)); t != nil {
			limit = t.Nano()
		}
		explore.FutexWait(word, uint32(a3), limit)
		return 0, 0, 0
	case futexWake:
		return uintptr(explore.FutexWake(word, int(a3))), 0, 0
	}
	panic(fmt.Sprintf("explore: futex operation %d is not supported", a2))
}

func RawSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	return Syscall6(trap, a1, a2, a3, a4, a5, a6)
}
