package wake

import (
	"syscall"
	"time"
)

// canNap says that a thread can sleep for much less than a millisecond. A timer cannot, when the process has nothing else to do:
// the Go runtime then waits for it in epoll_wait, which counts milliseconds.
const canNap = true

// nap has the thread sleep, some 50 microseconds longer than is asked for, and less if a signal comes.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil)
}
