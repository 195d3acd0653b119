//go:build amd64 || arm64

package lockcheck

// goroutine returns the address of this goroutine's descriptor. No other goroutine has it at the same
// time.
func goroutine() uintptr
