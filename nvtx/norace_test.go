//go:build !race

package nvtx_test

const raceEnabled = false
