//go:build !race

package cudadriver

const raceEnabled = false
