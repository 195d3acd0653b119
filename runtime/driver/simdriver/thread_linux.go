package simdriver

import "syscall"

// threadID returns the way to ask for the calling thread's id.
func threadID() func() int { return syscall.Gettid }
