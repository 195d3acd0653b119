//go:build !linux

package wake

// A sleeper does nothing on systems without futexes: sleep returns false at once.
type sleeper struct{}

func (*sleeper) sleep(<-chan struct{}, *Processors) bool { return false }
func (*sleeper) sleeps() bool                            { return false }
func (*sleeper) rouse()                                  {}
