//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package filelock

import (
	"errors"
	"os"
)

// Try fails: this system has no file locks.
func Try(*os.File) error { return errors.ErrUnsupported }
