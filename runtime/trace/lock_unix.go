//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package trace

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps others from writing a trace to the file until it is closed, or the process ends.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
