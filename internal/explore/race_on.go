//go:build race

package explore

import (
	"runtime"
	"unsafe"
)

const raceEnabled = true

// The race detector must see only the order that the program's own synchronization makes. It must
// not see that only one goroutine runs at a time. So switches of goroutines are hidden from the
// detector. The replacement of a mutex, for example, reports each lock and unlock to the detector.

func raceAcquire(p unsafe.Pointer) { runtime.RaceAcquire(p) }
func raceRelease(p unsafe.Pointer) { runtime.RaceReleaseMerge(p) }
func raceHide()                    { runtime.RaceDisable() }
func raceShow()                    { runtime.RaceEnable() }
func raceErrors() int              { return runtime.RaceErrors() }
