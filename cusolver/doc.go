// Package cusolver binds cuSOLVER, NVIDIA's library of factorizations, solvers and eigenvalues, without cgo: its parts for dense
// matrices (Dn), sparse ones (Sp) and refactorization (Rf). The part for several GPUs (Mg) is a library of its own.
//
// [Open] finds libcusolver and resolves its functions. It loads cuBLAS, cuSPARSE and nvJitLink of the same CUDA release, which
// the loader must find beside it. Every function is a method of [Library] that returns its outputs and an error, nil on success.
// An error code is a [Status], a constant: compare it with errors.Is. A function that the library lacks, because it is older
// or because a release dropped it, returns a [*dl.SymbolError] that names the release.
//
// Matrices, which lie in columns as in Fortran, and memory to work in are in device memory: an address there is a
// [cuda.DevicePtr]. A function whose name ends with BufferSize tells how much memory another one works in. What a factorization
// found, such as a singular matrix, is not in the error: the library writes it to device memory, to the last address of the
// call. Functions whose names end with Host take arrays of the host. Types of cuBLAS and cuSPARSE are those of their packages.
//
// A [DnHandle] is the state of the library for one device, as in C. [Library.NewDnContext] makes a [DnContext], which has a
// handle and a Close; handles of the other parts are freed by [Library.SpDestroy] and [Library.RfDestroy]. A handle belongs to
// the CUDA context that is current when it is made, and the same context must be current in all its calls. Calls with one
// handle come from one goroutine at a time; all other methods may be called concurrently. Work is in the order of the handle's
// stream ([Library.DnSetStream]), and most calls do not wait for it.
//
// cuSOLVER counts releases of its own, which all versions here mean:
//
//	CUDA      11.2  11.8    12.4    12.5    13.0
//	cuSOLVER  11.1  11.4.1  11.6.1  11.6.2  12.0.4
package cusolver

//go:generate go run github.com/puregpu/puregpu/tools/gen cusolver
