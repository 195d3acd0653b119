// Package ownfolder tells whether a folder may be trusted whose name others can guess. In a shared
// folder such as /tmp anybody may have made it.
package ownfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// Trusted returns nil if a file or a folder belongs to the user of the process or to root, and no
// other user may write to it. Its error wraps [ErrForeign] and says what is wrong. On Windows it
// returns nil.
func Trusted(fi fs.FileInfo) error { return checkOwner(fi, true) }

// TrustedFolder returns nil if a path is a folder, no symbolic link, and [Trusted].
func TrustedFolder(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case fi.Mode().Type() == fs.ModeSymlink:
		return fmt.Errorf("it is a symbolic link, %w", ErrForeign)
	case !fi.IsDir():
		return fmt.Errorf("it is a file, %w", ErrForeign)
	}
	return Trusted(fi)
}

// TrustedFile returns nil if the file that a path leads to, through links, is [Trusted], and the
// folder that has it.
func TrustedFile(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	fi, err := os.Lstat(real)
	if err == nil {
		err = Trusted(fi)
	}
	if err != nil {
		return err
	}
	if err := TrustedFolder(filepath.Dir(real)); err != nil {
		return fmt.Errorf("%s: %w", filepath.Dir(real), err)
	}
	return nil
}
