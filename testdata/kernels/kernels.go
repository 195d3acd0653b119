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

// Meet is the PTX of a kernel whose blocks wait for each other, and which ends only if all of them run at once:
//
//	meet(rounds uint32, counter device pointer to a uint32 that is 0, out device pointer to a uint32 a block)
//
// It has one dimension. The blocks wait for each other so many times; then each writes the counter, to which each block has added 1
// each time. The text ends in NUL.
var Meet = append(meet, 0)

//go:embed meet.ptx
var meet []byte

// Ring is the PTX of a kernel that reads the shared memory of other blocks of its cluster, for compute capability 9.0:
//
//	ring(out device pointer to two uint32s a block)
//
// It has one dimension. Each block writes the index of the next block of its cluster plus 1000, the first being next to the last, and
// how many blocks the cluster has, which is as many as the launch says. The text ends in NUL.
var Ring = append(ring, 0)

//go:embed ring.ptx
var ring []byte

// Dependent is the PTX of two kernels for one launch behind the other, of which the second may begin before the first has ended, for
// compute capability 9.0:
//
//	lead(flags device pointer to two uint32s, out device pointer to a uint32 a thread, value uint32)
//	follow(flags device pointer to two uint32s, out, in device pointers to a uint32 a thread)
//
// Each is for one block. lead waits for some milliseconds at the most until follow has set flags[0] to 1, writes value plus the index of
// the thread to out, and what it found in flags[0] to flags[1]. follow sets flags[0] to 1, waits for the end of what is in front of it, and adds 1 to what is
// in in. The text ends in NUL.
var Dependent = append(dependent, 0)

//go:embed dependent.ptx
var dependent []byte
