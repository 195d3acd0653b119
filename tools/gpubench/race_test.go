//go:build race

package main

// race reports that the race detector is on.
const race = true
