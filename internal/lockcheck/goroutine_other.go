//go:build !amd64 && !arm64

package lockcheck

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutine returns the number of this goroutine, which elsewhere only its stack tells. That takes long.
func goroutine() uintptr {
	var buf [64]byte
	_, number, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte(" "))
	number, _, _ = bytes.Cut(number, []byte(" "))
	n, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		panic("lockcheck: a stack does not begin with the goroutine's number")
	}
	return uintptr(n)
}
