// Package filelock locks files, so that processes tell which files others are writing.
//
// A lock belongs to the open file. It ends when the file is closed, or the process ends in any way. It keeps nobody from reading or
// writing, only from taking the same lock.
package filelock

import (
	"errors"
	"io/fs"
	"os"
)

// ErrLocked is the error of [Try] for a file that somebody else has locked. After any other error nothing is known: the file system may
// have no locks.
var ErrLocked = errors.New("another one is writing it")

// Named returns nil if an open file has the name in the folder, and else [fs.ErrNotExist]. Whoever takes a lock asks this afterwards:
// somebody who had the lock before may have removed the file.
func Named(root *os.Root, f *os.File, name string) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := root.Lstat(name)
	if err == nil && !os.SameFile(mine, named) {
		err = fs.ErrNotExist
	}
	return err
}
