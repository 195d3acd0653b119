//go:build !race

package simdriver_test

const raceEnabled = false
