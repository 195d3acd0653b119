//go:build !linux

package gpu

// A sleeper does not sleep.
type sleeper struct{}

func (*sleeper) sleep(<-chan struct{}) bool { return false }
func (*sleeper) rouse()                     {}
