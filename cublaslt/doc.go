// Package cublaslt binds cuBLASLt without cgo. cuBLASLt is NVIDIA's library of matrix products for
// which the program chooses the algorithm.
//
// [Open] finds libcublasLt and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a [Status], a constant:
// compare it with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that
// names the release that introduced it.
//
// A [MatmulDesc] and a [MatrixLayout] for each matrix describe a product, and
// [Library.MatmulAlgoGetHeuristic] finds algorithms for it. Matrices and workspaces are in device
// memory: an address there is a [cuda.DevicePtr]. Scalars such as alpha are in host memory, unless
// the description says otherwise. Attributes are read and written through an unsafe.Pointer;
// NVIDIA's documentation of the attribute gives the type.
//
// A [Handle] is the state of the library, as in C. [Library.NewContext] makes a [Context], which
// has a handle and a Close. A CUDA context must be current in all calls. All methods may be called
// concurrently, also with one handle, but a description must not be changed while another call uses
// it. [Library.Matmul] does not wait for its work. The package declares its own copies of the
// cuBLAS types that its functions take, such as [ComputeType], so it does not import package
// cublas.
//
// Versions in this package are releases of cuBLAS, which cuBLASLt shares:
//
//	CUDA      11.2    11.8     12.4    12.5    13.0
//	cuBLASLt  11.4.1  11.11.3  12.4.5  12.5.2  13.1
package cublaslt

//go:generate go run github.com/puregpu/puregpu/tools/gen cublaslt
