//go:build linux && (amd64 || arm64) && !nogpu

// Package goruntime provides functions of Go's runtime outside its API: to call C, and to read the
// auxiliary vector.
//
// A future Go release may close these functions to other modules. The linker then fails and prints
// only the path of the importing package and the function's name. So the path of this package is
// itself the message: it names the problem and the solution. No other package of this module may
// refer to these functions. Every build that calls C imports this package before purego, which also
// refers to runtime.cgocall.
package goruntime

import "unsafe"

// Call runs the C function fn on the system stack with arg, and returns its result. arg does not
// escape, so it may point to the goroutine's stack. fn must not call back into Go, because that
// could move this stack.
//
//go:noescape
//go:linkname Call runtime.cgocall
func Call(fn, arg unsafe.Pointer) int32

// CallEscape is Call for functions that may call back into Go; arg escapes to the heap.
//
//go:linkname CallEscape runtime.cgocall
func CallEscape(fn, arg unsafe.Pointer) int32

// The linker checks only packages whose code refers to the function. A declaration alone is not
// code.
var _ = named

var named = CallEscape
