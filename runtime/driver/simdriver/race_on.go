//go:build race

package simdriver

import "runtime"

// hush hides the order between goroutines from the race detector, until unhush. Reads in between
// must be in functions marked go:norace.
func hush() { runtime.RaceDisable() }

func unhush() { runtime.RaceEnable() }

// copyUnseen copies bytes without the race detector.
//
//go:norace
func copyUnseen(dst, src []byte) {
	for i := range src {
		dst[i] = src[i]
	}
}

// equalUnseen compares bytes without the race detector.
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
