// Package solver factorizes matrices, solves systems of linear equations and computes eigenvalues
// on a device with NVIDIA's cuSOLVER. Its operations are Ops of package gpu: streams, queues and
// recordings take them.
//
//	lib, err := solver.Open(dev, solver.Options{})
//	err = stream.Do(solver.Cholesky(lib, a, info), solver.CholeskySolve(lib, a, b, info))
//
// A matrix is a blas.Matrix, which is stored row by row. In a matrix of right-hand sides, each row
// is the right-hand side of one system.
//
// An operation writes its outcome to info, an int32 in device memory: 0 if it succeeded, and a
// positive number if it could not succeed with this matrix. Each operation overwrites info, also
// with 0. So download info before the next operation, or give each operation an element of its own.
// The results of an operation must not overlap its other arguments.
//
// Each execution of a recording calls the functions of cuSOLVER. The functions never become nodes
// of a graph. So each such operation divides a recording into separate graphs.
//
// A Library may be used by several goroutines, streams and recordings at once. Calls use its handle
// one at a time. Each queue and each recording has its own workspace, and so have commands of a
// recording that may run at the same time.
//
// On a simulated GPU no library is loaded. The operations run in Go there, in float64, so results
// differ from a GPU's in the last bits. Library.Call is an error there. HIP devices have no
// cuSOLVER: Open returns gpu.ErrUnsupported for them.
package solver
