// Package cusparse binds cuSPARSE, NVIDIA's library of sparse matrices, without cgo.
//
// [Open] finds libcusparse and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a [Status], a constant:
// compare it with errors.Is. If the library is too old for a function or has dropped it, the method
// returns a [*dl.SymbolError] that names the release.
//
// Vectors and matrices have descriptors, such as [SpMatDescr] and [DnVecDescr]. Functions make
// descriptors from device addresses ([cuda.DevicePtr]); functions such as [Library.DestroySpMat]
// free descriptors. Functions of the set legacy take sizes and addresses of arrays; their
// [MatDescr] has only properties such as the index base. A new handle is in [PointerModeHost]:
// scalars such as alpha, and results, are in host memory, and a method that returns a result blocks
// until the device is done. Buffers are in device memory; a function whose name ends with
// BufferSize returns the needed size.
//
// A [Handle] is the state of the library for one device, as in C. [Library.NewContext] makes a
// [Context], which has a handle and a Close. A handle belongs to the CUDA context that is current
// when the handle is made, and the same context must be current in all calls with the handle. Calls
// with one handle must come from one goroutine at a time; all other methods may be called
// concurrently. Work runs in order on the handle's stream ([Library.SetStream]), and only calls
// that return a result wait for the work.
//
// cuSPARSE has its own release numbers, and versions in this package are these numbers:
//
//	CUDA      11.2    11.8    12.4    12.5    13.0
//	cuSPARSE  11.4.1  11.7.5  12.3.1  12.4.1  12.6.3
package cusparse

//go:generate go run github.com/puregpu/puregpu/tools/gen cusparse
