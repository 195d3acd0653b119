//go:build !unix

package rendezvous

import (
	"errors"
	"io/fs"
)

// nonblock is 0: named pipes are not files on this system.
const nonblock = 0

// gone reports whether a file or its folder is missing.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
