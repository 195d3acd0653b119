//go:build unix

package regular

import "syscall"

// Nonblock is a flag of [os.OpenFile]. With it the opening of a named pipe returns at once. It does nothing to a regular file.
const Nonblock = syscall.O_NONBLOCK
