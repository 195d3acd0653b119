// Package ownfolder checks whether a folder with a predictable name can be trusted. Any user may
// have created such a folder in a shared folder such as /tmp.
package ownfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrForeign is the error for a file or folder that this package does not trust.
var ErrForeign = errors.New("not a folder of this user alone")

// Check returns nil if a file is a folder, belongs to the user of the process, and no other user
// may write to it. Its error wraps [ErrForeign] and describes the problem. fi must come from Lstat,
// because Check refuses links.
//
// On Windows fi does not tell the owner, so Check only checks that the file is a folder.
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
// other user may write to it. Its error wraps [ErrForeign] and describes the problem. On Windows it
// returns nil.
func Trusted(fi fs.FileInfo) error { return checkOwner(fi, true) }

// TrustedFolder returns nil if a path is a folder, not a symbolic link, and [Trusted].
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

// TrustedFile returns nil if a file and its folder are [Trusted]. It follows links.
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
