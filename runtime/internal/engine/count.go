package engine

import "sync/atomic"

// HoldLive adds a reference to a count, unless the count is below least: then the last reference is
// gone. It reports whether it has added one.
func HoldLive(refs *atomic.Int32, least int32) bool {
	for {
		n := refs.Load()
		if n < least {
			return false
		}
		if refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
