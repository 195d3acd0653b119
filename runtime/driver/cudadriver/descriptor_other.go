//go:build !unix

package cudadriver

import "os"

// descriptor makes a file of a descriptor; where nothing is shared by them there is none.
func descriptor(fd int32, name string) *os.File { return os.NewFile(uintptr(fd), name) }
