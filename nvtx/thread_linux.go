package nvtx

import "syscall"

// threadID returns the number of the calling thread.
func threadID() uint32 { return uint32(syscall.Gettid()) }
