//go:build !linux && !windows

package simdriver

// threadID returns nil: there is no way to ask for the calling thread's id here.
func threadID() func() int { return nil }
