//go:build linux

package goruntime

import _ "unsafe" // for linkname

// Auxv returns the auxiliary vector: what the kernel gave the program at its start, as pairs of a type
// and a value. Go keeps the function open for golang.org/x/sys.
func Auxv() []uintptr { return getAuxv() }

//go:linkname getAuxv runtime.getAuxv
func getAuxv() []uintptr
