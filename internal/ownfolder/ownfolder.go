// Package ownfolder tells whether a folder may be trusted whose name others can guess. In a shared
// folder such as /tmp anybody may have made it.
package ownfolder

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrForeign is the error for a folder that does not belong to the user, or that others can write to.
var ErrForeign = errors.New("not a folder of this user alone")

// Check returns nil if a file is a folder, belongs to the user of the process, and no other user may
// write to it. Its error wraps [ErrForeign] and says what is wrong. The description must come from
// Lstat, because a link is refused.
//
// On Windows, where the mode says nothing about owners, Check looks at the kind of the file only.
func Check(fi fs.FileInfo) error {
	switch mode := fi.Mode(); {
	case mode.Type() == fs.ModeSymlink:
		return fmt.Errorf("it is a symbolic link, %w", ErrForeign)
	case !mode.IsDir():
		return fmt.Errorf("it is a file, %w", ErrForeign)
	}
	return checkOwner(fi, false)
}

// Trusted returns nil if a file or a folder belongs to the user of the process or to root, and no other user may write to it. Its error
// wraps [ErrForeign] and says what is wrong. On Windows it returns nil.
func Trusted(fi fs.FileInfo) error { return checkOwner(fi, true) }
