//go:build !amd64 && !arm64

package lockcheck

import "unsafe"

// descriptor returns nil: here only its stack tells which goroutine this is.
func descriptor() unsafe.Pointer { return nil }
