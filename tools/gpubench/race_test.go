//go:build race

package main

// race says that the race detector is on.
const race = true
