//go:build !race

package testkit

// RaceEnabled says whether the race detector watches. Tests that count allocations or take long look
// at it.
const RaceEnabled = false
