//go:build !unix

package cudadriver

import "os"

// descriptor is never called with a descriptor here, because this platform shares nothing by
// descriptors.
func descriptor(fd int32, name string) *os.File { return os.NewFile(uintptr(fd), name) }
