//go:build !linux

package collective_test

// thread returns nothing: there is no way to ask for the calling thread's id here.
func thread() int { return 0 }
