//go:build race

package explore

import (
	"runtime"
	"unsafe"
)

const raceEnabled = true

// The race detector must see only the order that the program's own synchronization makes, and not
// the order of running one goroutine at a time. So hand-overs are hidden from it, and the
// substitute of a mutex, for example, reports a mutex's operations.

func raceAcquire(p unsafe.Pointer) { runtime.RaceAcquire(p) }
func raceRelease(p unsafe.Pointer) { runtime.RaceReleaseMerge(p) }
func raceHide()                    { runtime.RaceDisable() }
func raceShow()                    { runtime.RaceEnable() }
func raceErrors() int              { return runtime.RaceErrors() }
