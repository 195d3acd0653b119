// Package solver factorizes matrices, solves systems of linear equations and computes eigenvalues on
// a device by NVIDIA's cuSOLVER. Its operations are Ops of package gpu: streams, queues and
// recordings take them.
//
//	lib, err := solver.Open(dev, solver.Options{})
//	err = stream.Do(solver.Cholesky(lib, a, info), solver.CholeskySolve(lib, a, b, info))
//
// A matrix is a blas.Matrix, which lies row by row. One whose rows are right-hand sides has one
// system a row.
//
// An operation writes its outcome to info, an int32 in device memory: 0 if it succeeded, and a
// positive number if the matrix has not the property that the function needs. Download it to know.
//
// A Library may be used by several goroutines, streams and recordings at once. One call at a time
// uses its handle. Each queue and each recording has memory to compute in of its own.
//
// On a simulated GPU no library is loaded. The operations run in Go there, in float64, so results
// differ from a GPU's in the last bits. Library.Call is an error there. Devices of HIP have no
// cuSOLVER: Open returns gpu.ErrUnsupported.
package solver
