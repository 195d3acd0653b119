//go:build !linux

package wake

// A sleeper does not sleep on this system.
type sleeper struct{}

func (*sleeper) sleep(<-chan struct{}, *Processors) bool { return false }
func (*sleeper) sleeps() bool                            { return false }
func (*sleeper) rouse()                                  {}
