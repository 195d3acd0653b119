//go:build linux && amd64 && puregpu_static && !nogpu && !cgo

package cgocall

import _ "unsafe" // for linkname

// Auxv returns the auxiliary vector that the kernel gave the program.
func Auxv() []uintptr { return getAuxv() }

//go:linkname getAuxv runtime.getAuxv
func getAuxv() []uintptr
