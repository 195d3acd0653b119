package simdriver

import "syscall"

// threadID returns a function that returns the calling thread's id.
func threadID() func() int { return syscall.Gettid }
