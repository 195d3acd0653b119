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
	SYS_FUTEX  = std.SYS_FUTEX
	SYS_MMAP   = std.SYS_MMAP
	SYS_MUNMAP = std.SYS_MUNMAP

	PROT_READ     = std.PROT_READ
	PROT_WRITE    = std.PROT_WRITE
	MAP_SHARED    = std.MAP_SHARED
	MAP_PRIVATE   = std.MAP_PRIVATE
	MAP_FIXED     = std.MAP_FIXED
	MAP_ANON      = std.MAP_ANON
	MAP_NORESERVE = std.MAP_NORESERVE

	EAGAIN = std.EAGAIN
	EINVAL = std.EINVAL
)

// Operations of the futex system call, and a flag that they may have.
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

// Gettid returns the number of the thread. The number changes at each call unless the goroutine is
// locked to a thread.
func Gettid() int { return explore.Thread() }

// Fallocate does not wait for other threads, so it is not replaced.
func Fallocate(fd int, mode uint32, off, len int64) error {
	return std.Fallocate(fd, mode, off, len)
}

func Syscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err Errno) {
	return Syscall6(trap, a1, a2, a3, 0, 0, 0)
}

// Syscall6 replaces the futex system call. It passes on calls that map or unmap memory, which do
// not wait for other threads. All other system calls panic.
func Syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	if trap == SYS_MMAP || trap == SYS_MUNMAP {
		return std.Syscall6(trap, a1, a2, a3, a4, a5, a6)
	}
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
