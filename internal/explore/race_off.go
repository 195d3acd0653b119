//go:build !race

package explore

import "unsafe"

const raceEnabled = false

func raceAcquire(unsafe.Pointer) {}
func raceRelease(unsafe.Pointer) {}
func raceHide()                  {}
func raceShow()                  {}
func raceErrors() int            { return 0 }
