//go:build amd64 || arm64

package lockcheck

import "unsafe"

// descriptor returns the address of the runtime's descriptor of this goroutine.
func descriptor() unsafe.Pointer
