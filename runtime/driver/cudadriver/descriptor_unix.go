//go:build unix

package cudadriver

import (
	"os"
	"syscall"
)

// descriptor makes a file of a descriptor that the driver has made, which programs that are started do not get by chance: what it stands for
// would stay until they end.
func descriptor(fd int32, name string) *os.File {
	syscall.CloseOnExec(int(fd))
	return os.NewFile(uintptr(fd), name)
}
