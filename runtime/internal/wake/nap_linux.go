package wake

import (
	"syscall"
	"time"
)

// canNap says that a thread can sleep for much less than a millisecond. A Go timer cannot wait that
// briefly if the process has nothing else to do, because the Go runtime then waits in epoll_wait,
// which counts milliseconds.
const canNap = true

// nap blocks the thread for some 50 microseconds more than d, or for less if the thread gets a
// signal.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil)
}
