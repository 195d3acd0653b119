//go:build race

package cudadriver

const raceEnabled = true
