package nvtx

import "syscall"

var getCurrentThreadID = syscall.NewLazyDLL("kernel32.dll").NewProc("GetCurrentThreadId")

// threadID returns the number of the calling thread.
func threadID() uint32 {
	id, _, _ := getCurrentThreadID.Call()
	return uint32(id)
}
