//go:build unix

package regular

import "syscall"

// Nonblock is a flag of [os.OpenFile] with which opening a named pipe returns at once. It has no
// effect on a regular file.
const Nonblock = syscall.O_NONBLOCK
