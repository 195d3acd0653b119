// Package cusparse binds cuSPARSE, NVIDIA's library of sparse matrices, without cgo.
//
// [Open] finds libcusparse and resolves its functions. Every function is a method of [Library] that returns its outputs and an
// error, nil on success. An error code is a [Status], a constant: compare it with errors.Is. A function that the library
// lacks, because it is older or because a release dropped it, returns a [*dl.SymbolError] that names the release.
//
// Vectors and matrices have descriptors, such as [SpMatDescr] and [DnVecDescr], which are made of addresses in device memory,
// [cuda.DevicePtr], and freed by [Library.DestroySpMat] and its like. Functions of set legacy take the addresses themselves.
// Scalars such as alpha are in host memory, and so are results, for which a method blocks until the device is done: the
// pointer mode of a new handle, [PointerModeHost]. Buffers are in device memory; a function whose name ends with BufferSize
// tells how large one must be.
//
// A [Handle] is the state of the library for one device, as in C. [Library.NewContext] makes a [Context], which has a handle
// and a Close. A handle belongs to the CUDA context that is current when it is made, and the same context must be current in
// all its calls. Calls with one handle come from one goroutine at a time; all other methods may be called concurrently. Work
// is in the order of the handle's stream ([Library.SetStream]), and calls do not wait for it.
//
// cuSPARSE counts releases of its own, which all versions here mean:
//
//	CUDA      11.2    11.8    12.4    12.5    13.0
//	cuSPARSE  11.4.1  11.7.5  12.3.1  12.4.1  12.6.3
package cusparse

//go:generate go run github.com/puregpu/puregpu/tools/gen cusparse
