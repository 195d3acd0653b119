//go:build race

package simdriver

import "runtime"

// hush hides the calling goroutine's locks and atomic operations from the race detector, until
// unhush. Functions that read shared memory in between must be marked go:norace.
func hush() { runtime.RaceDisable() }

func unhush() { runtime.RaceEnable() }

// copyUnseen copies bytes. The race detector does not see the accesses.
//
//go:norace
func copyUnseen(dst, src []byte) {
	for i := range src {
		dst[i] = src[i]
	}
}

// equalUnseen compares bytes. The race detector does not see the accesses.
//
//go:norace
func equalUnseen(a, b []byte) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
