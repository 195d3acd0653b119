// Package cublas binds cuBLAS, NVIDIA's library of linear algebra, without cgo. Package cublaslt
// binds its companion cuBLASLt.
//
// [Open] finds libcublas and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a [Status], a constant:
// compare it with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that
// names the release that introduced it. A method has the C name without cublas and _v2. A method
// whose name ends with 64 takes 64-bit counts and strides.
//
// Matrices and vectors are in device memory: an address there is a [cuda.DevicePtr]. Matrices are
// column-major, as in Fortran. A new handle is in [PointerModeHost]: scalars such as alpha, and
// results, are in host memory, and a method that returns a result blocks until the device is done.
// In [PointerModeDevice] a scalar's address is a device address, and methods that return a result
// must not be called.
//
// A [Handle] is the state of the library for one device, as in C. [Library.NewContext] makes a
// [Context], which has a handle and a Close. A handle belongs to the CUDA context that is current
// when it is made, and the same context must be current in all calls with the handle. Calls with
// one handle must come from one goroutine at a time; all other methods may be called concurrently.
// Work runs in order on the handle's stream ([Library.SetStream]), and calls that return no result
// do not wait for the work.
//
// cuBLAS has its own release numbers, and versions in this package are these numbers:
//
//	CUDA    11.2    11.8     12.4    12.5    13.0
//	cuBLAS  11.4.1  11.11.3  12.4.5  12.5.2  13.1
package cublas

//go:generate go run github.com/puregpu/puregpu/tools/gen cublas
