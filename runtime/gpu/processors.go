package gpu

import (
	"runtime"
	"sync/atomic"
)

// kept is how many of Go's processors are kept by threads that wait for something.
var kept atomic.Int32

// A thread may keep its processor for a moment if that is one of so many, and for longer if it is one of more.
const (
	briefKeep = 2
	longKeep  = 4
)

// keepProcessor reports whether one more thread may keep its processor while it waits, until giveProcessor: of so many processors one.
func keepProcessor(of int) bool {
	if of*int(kept.Add(1)) <= runtime.GOMAXPROCS(0) {
		return true
	}
	giveProcessor()
	return false
}

// mayKeep is keepProcessor for a thread that keeps its processor already.
func mayKeep(of int) bool { return of*int(kept.Load()) <= runtime.GOMAXPROCS(0) }

func giveProcessor() { kept.Add(-1) }
