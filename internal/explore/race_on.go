//go:build race

package explore

import (
	"runtime"
	"unsafe"
)

const raceEnabled = true

// The race detector is to see the order that the program's own synchronization makes, and none that comes of running one goroutine
// at a time: hand-overs are hidden from it, and what stands for a mutex, say, tells it what a mutex would.

func raceAcquire(p unsafe.Pointer) { runtime.RaceAcquire(p) }
func raceRelease(p unsafe.Pointer) { runtime.RaceReleaseMerge(p) }
func raceHide()                    { runtime.RaceDisable() }
func raceShow()                    { runtime.RaceEnable() }
func raceErrors() int              { return runtime.RaceErrors() }
