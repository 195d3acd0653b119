// Package cusolver binds cuSOLVER, NVIDIA's library of factorizations, solvers and eigenvalues,
// without cgo: its parts for dense matrices (Dn), sparse matrices (Sp) and refactorization (Rf).
// The part for several GPUs (Mg) is a separate library.
//
// [Open] finds libcusolver and resolves its functions. libcusolver loads cuBLAS, cuSPARSE and
// nvJitLink of the same CUDA release, which the system's loader must find. Every function is a
// method of [Library] that returns its outputs and an error, nil on success. An error code is a
// [Status], a constant: compare it with errors.Is. If the library is too old for a function or has
// dropped it, the method returns a [*dl.SymbolError] that names the release.
//
// Matrices and workspaces are in device memory: an address there is a [cuda.DevicePtr]. Matrices
// are column-major, as in Fortran. A function whose name ends with BufferSize returns the size of
// another function's workspace. The error does not report findings of a factorization, such as a
// singular matrix: the library writes them to device memory, at the last address among the
// arguments. Functions whose names end with Host take arrays in host memory. Types of cuBLAS and
// cuSPARSE come from packages cublas and cusparse.
//
// A [DnHandle] is the state of the library for one device, as in C. [Library.NewDnContext] makes a
// [DnContext], which has a handle and a Close; [Library.SpDestroy] and [Library.RfDestroy] free
// handles of the other parts. A handle belongs to the CUDA context that is current when the handle
// is made, and the same context must be current in all calls with the handle. Calls with one handle
// must come from one goroutine at a time; all other methods may be called concurrently. Work runs
// in order on the handle's stream ([Library.DnSetStream]), and most calls do not wait for the work.
//
// cuSOLVER has its own release numbers, and versions in this package are these numbers:
//
//	CUDA      11.2  11.8    12.4    12.5    13.0
//	cuSOLVER  11.1  11.4.1  11.6.1  11.6.2  12.0.4
package cusolver

//go:generate go run github.com/puregpu/puregpu/tools/gen cusolver
