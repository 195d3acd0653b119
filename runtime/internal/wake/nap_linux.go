package wake

import (
	"syscall"
	"time"
)

// canNap says that a thread can sleep for much less than a millisecond. A Go timer cannot wait that
// briefly while the process is idle: the Go runtime then waits in epoll_wait, whose timeout is in
// milliseconds.
const canNap = true

// nap blocks the OS thread for about d plus 50 microseconds. A Unix signal ends the nap earlier.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil)
}
