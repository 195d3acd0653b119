// Package filelock locks files, so that processes tell which files others are writing.
//
// A lock belongs to the open file. It ends when the file is closed, or the process ends in any way. It keeps nobody from reading or
// writing, only from taking the same lock.
package filelock

import "errors"

// ErrLocked is the error of [Try] for a file that somebody else has locked. After any other error nothing is known: the file system may
// have no locks.
var ErrLocked = errors.New("another one is writing it")
