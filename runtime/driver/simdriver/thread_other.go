//go:build !linux && !windows

package simdriver

// threadID returns nil: the calling thread's id is unknown on this platform.
func threadID() func() int { return nil }
