package wake

import (
	"syscall"
	"time"
)

// canNap says that a thread can sleep for much less than a millisecond. A timer cannot if the
// process has nothing else to do: the Go runtime then waits in epoll_wait, which counts
// milliseconds.
const canNap = true

// nap has the thread sleep some 50 microseconds longer than d, or less if a signal comes.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil)
}
