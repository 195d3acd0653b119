//go:build unix

package rendezvous

import (
	"errors"
	"io/fs"
	"syscall"
)

// nonblock makes opening a named pipe return at once. For regular files it does nothing.
const nonblock = syscall.O_NONBLOCK

// gone reports whether err says that a file or its folder is missing. For an open folder that
// another machine has removed, a network file system returns ESTALE.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESTALE)
}
