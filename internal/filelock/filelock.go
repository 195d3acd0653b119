// Package filelock locks files, so that other processes can tell that a file is being written.
//
// A lock belongs to the open file. The lock ends when the file is closed or the process ends in any
// way. It does not prevent reading or writing, only taking the same lock.
package filelock

import (
	"errors"
	"io/fs"
	"os"
)

// ErrLocked is the error of [Try] for a file that another process or handle has locked. Any other
// error says nothing about the lock: the file system may not support locks.
var ErrLocked = errors.New("it is being written")

// Named returns nil if name in the folder is the open file. If name is another file, or no file,
// the error is [fs.ErrNotExist]. Call Named after taking a lock: an earlier owner of the lock may
// have removed the file.
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
