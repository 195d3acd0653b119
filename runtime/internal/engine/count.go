package engine

import "sync/atomic"

// HoldLive adds one to a reference count and returns true. If the count is below the parameter
// least, the object is no longer alive: HoldLive adds nothing and returns false.
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
