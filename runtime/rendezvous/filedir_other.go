//go:build !unix

package rendezvous

import (
	"errors"
	"io/fs"
)

// nonblock is for named pipes, which are no files here.
const nonblock = 0

// gone reports whether a file or its folder is not there.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
