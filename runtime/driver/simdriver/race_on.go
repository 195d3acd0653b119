//go:build race

package simdriver

import "runtime"

// hush keeps what the goroutine does from looking like an order to the race detector, until unhush. What it reads in between
// must not be looked at by the detector either: see go:norace.
func hush() { runtime.RaceDisable() }

func unhush() { runtime.RaceEnable() }
