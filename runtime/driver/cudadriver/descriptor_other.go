//go:build !unix

package cudadriver

import "os"

// descriptor is never called on this platform: nothing is shared by descriptors here.
func descriptor(fd int32, name string) *os.File { return os.NewFile(uintptr(fd), name) }
