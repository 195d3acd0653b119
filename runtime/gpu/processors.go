package gpu

import (
	"runtime"
	"sync/atomic"
)

// kept is how many of Go's processors are kept by threads that wait for something.
var kept atomic.Int32

// keepProcessor reports whether one more thread may keep its processor while it waits, until giveProcessor: of four processors one.
func keepProcessor() bool {
	if 4*int(kept.Add(1)) <= runtime.GOMAXPROCS(0) {
		return true
	}
	giveProcessor()
	return false
}

func giveProcessor() { kept.Add(-1) }
