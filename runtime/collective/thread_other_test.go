//go:build !linux

package collective_test

// thread returns 0: this platform has no way to get the calling thread's id.
func thread() int { return 0 }
