//go:build !race

package testkit

// RaceEnabled says whether the race detector is enabled. Tests that count allocations or run long
// depend on it.
const RaceEnabled = false
