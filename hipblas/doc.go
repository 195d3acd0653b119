// Package hipblas binds hipBLAS, ROCm's library of linear algebra, without cgo. It has the shape of package cublas.
//
// It has never run on an AMD GPU: the project has none. Its calls are proven against C libraries made from the headers, and
// Debian's build of hipBLAS of ROCm 6.4 is opened and asked what works without a GPU.
//
// [Open] finds libhipblas and resolves its functions. Every function is a method of [Library] that returns its outputs and an
// error, nil on success. An error code is a [Status], a constant: compare it with errors.Is. A function that the library
// lacks returns a [*dl.SymbolError] that names the release that brought it. A method whose name ends with 64 takes
// 64-bit counts and strides.
//
// hipBLAS 3 has changed functions that are told the types of their data, such as [Library.GemmEx]: they take a [hip.DataType],
// and took a hipblasDatatype_t with other numbers before. A method returns a [*dl.SymbolError] where the library is older. In
// hipBLAS 2 a function that takes a [hip.DataType] has a name of its own, and so has its method: [Library.GemmExV2].
//
// Matrices and vectors are in device memory: an address there is a [hip.DevicePtr]. Matrices lie in columns, as in Fortran.
// Scalars such as alpha are in host memory, and so are results, for which a method blocks until the device is done: the
// pointer mode of a new handle, [PointerModeHost]. In [PointerModeDevice] methods that return a result must not be called,
// and a scalar's address is one of the device.
//
// A [Handle] is the state of the library for one device, as in C. [Library.NewContext] makes a [Context], which has a handle
// and a Close. A handle belongs to the device that is current when it is made, and the same device must be current in all its
// calls. Calls with one handle come from one goroutine at a time; all other methods may be called concurrently. Work is in
// the order of the handle's stream ([Library.SetStream]), and calls do not wait for it.
//
// hipBLAS counts releases of its own, which all versions here mean. The library does not tell its release. The name of its
// file does: libhipblas.so.2.4. Files of all releases before 1.0 are named libhipblas.so.0.1, and count as 0.54.
//
//	ROCm     5.5   6.4  7.2
//	hipBLAS  0.54  2.4  3.2
package hipblas

//go:generate go run github.com/puregpu/puregpu/tools/gen hipblas
