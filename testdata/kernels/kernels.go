// Package kernels holds the device code that examples and tests run.
package kernels

import _ "embed"

// Saxpy is the PTX of a kernel that computes y = a*x + y:
//
//	saxpy(n uint64, a float32, x, y device pointers to n floats)
//
// It runs one element a thread, along the x axis of grid and block. The text ends in NUL, as the driver wants it.
var Saxpy = append(saxpy, 0)

//go:embed saxpy.ptx
var saxpy []byte
