//go:build unix

package regular

import "syscall"

// nonblock has the opening of a named pipe return at once. It does nothing to a regular file.
const nonblock = syscall.O_NONBLOCK
