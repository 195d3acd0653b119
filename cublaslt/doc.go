// Package cublaslt binds cuBLASLt, NVIDIA's library of matrix products with algorithms that the program chooses, without cgo.
//
// [Open] finds libcublasLt and resolves its functions. Every function is a method of [Library] that returns its outputs and an
// error, nil on success. An error code is a [Status], a constant: compare it with errors.Is. A function that the library
// lacks returns a [*dl.SymbolError] that names the release that brought it.
//
// A product is described by a [MatmulDesc] and a [MatrixLayout] for each matrix, and [Library.MatmulAlgoGetHeuristic] finds
// algorithms for it. Matrices and workspaces are in device memory: an address there is a [cuda.DevicePtr]. Scalars such as
// alpha are in host memory, as long as the description says nothing else. Attributes are read and written through an
// unsafe.Pointer, whose type the C name of the attribute tells.
//
// A [Handle] is the state of the library, as in C. [Library.NewContext] makes a [Context], which has a handle and a Close. A
// CUDA context must be current in all calls. All methods may be called concurrently, also with one handle, but a description
// must not be changed while another call uses it. [Library.Matmul] does not wait for its work. The package declares the
// types of cuBLAS that its functions take, such as [ComputeType], for itself: it needs no package cublas.
//
// cuBLASLt has the releases of cuBLAS, which all versions here mean:
//
//	CUDA      11.2    11.8     12.4    12.5    13.0
//	cuBLASLt  11.4.1  11.11.3  12.4.5  12.5.2  13.1
package cublaslt

//go:generate go run github.com/puregpu/puregpu/tools/gen cublaslt
