//go:build linux && (amd64 || arm64) && !nogpu

// Package goruntime lends functions of Go's runtime that are not part of its API: to call C, and to read
// the auxiliary vector.
//
// Go may close these to other modules in some release. The linker then stops, and all that it says is
// the path of the package that asks for a function, and the function's name. So the path of this
// package is written to be read: it says what is wrong and what to do. Nothing else in this module may
// ask for these functions, and every build that calls C imports this package before purego, which asks
// for runtime.cgocall too.
package goruntime

import "unsafe"

// Call runs the C function fn on the system stack with arg, and returns its result. Neither fn nor arg
// escapes, so fn must not call back into Go.
//
//go:noescape
//go:linkname Call runtime.cgocall
func Call(fn, arg unsafe.Pointer) int32

// CallEscape is Call for functions that may call back into Go: arg lies on the heap.
//
//go:linkname CallEscape runtime.cgocall
func CallEscape(fn, arg unsafe.Pointer) int32

// The linker asks only the packages whose code names the function, and a declaration is no code.
var _ = named

var named = CallEscape
