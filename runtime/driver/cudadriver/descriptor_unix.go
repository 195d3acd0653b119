//go:build unix

package cudadriver

import (
	"os"
	"syscall"
)

// descriptor makes a file of a descriptor from the driver. It sets close-on-exec, because a child
// process with the descriptor would keep the shared object alive.
func descriptor(fd int32, name string) *os.File {
	syscall.CloseOnExec(int(fd))
	return os.NewFile(uintptr(fd), name)
}
