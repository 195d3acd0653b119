//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package filelock

import (
	"errors"
	"os"
)

// Try fails: there are no locks here.
func Try(*os.File) error { return errors.ErrUnsupported }
