package collective_test

import "syscall"

// thread returns the calling thread's id.
func thread() int { return syscall.Gettid() }
