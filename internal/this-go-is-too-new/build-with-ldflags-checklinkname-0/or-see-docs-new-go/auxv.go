//go:build linux

package goruntime

import _ "unsafe" // for linkname

// Auxv returns the auxiliary vector, which the kernel passes to the program at its start: pairs of
// a type and a value. Go keeps the function accessible for golang.org/x/sys.
func Auxv() []uintptr { return getAuxv() }

//go:linkname getAuxv runtime.getAuxv
func getAuxv() []uintptr
