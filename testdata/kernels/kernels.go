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

// Basic is the PTX of kernels that show what reaches a kernel:
//
//	index(n uint64, first, step uint32, out device pointer to n uint32s) writes i*step+first
//	words(n uint64, dst, src device pointers to n uint32s) copies
//	ids(out device pointer to four uint32s a block) writes each block's x, y, z and number of threads
//
// index and words run one element a thread, along the x axis of grid and block. The text ends in NUL.
var Basic = append(basic, 0)

//go:embed basic.ptx
var basic []byte

// Dense is the PTX of a kernel that computes y = relu(W*x + b) for each sample of a batch:
//
//	dense(in, out, batch uint64, w, b, x, y device pointers to out*in, out, batch*in and batch*out floats)
//
// It runs one element of y a thread: outputs along the x axis of grid and block, samples along the y axis. w has a row for
// each output; x and y have a row for each sample. The text ends in NUL.
var Dense = append(dense, 0)

//go:embed dense.ptx
var dense []byte

// Empty is the PTX of a kernel that does nothing:
//
//	empty(p device pointer)
//
// The text ends in NUL.
var Empty = append(empty, 0)

//go:embed empty.ptx
var empty []byte
