// Package hipblas binds hipBLAS, ROCm's library of linear algebra, without cgo. Its API is like
// that of package cublas.
//
// The package has never run on an AMD GPU, because the project has none. Its calls are tested with
// C libraries made from the headers. Tests also open Debian's build of hipBLAS of ROCm 6.4 and call
// the functions that need no GPU.
//
// [Open] finds libhipblas and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a [Status], a constant:
// compare it with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that
// names the release that introduced it. A method whose name ends with 64 takes 64-bit counts and
// strides.
//
// hipBLAS 3 changed functions with an argument for the data type, such as [Library.GemmEx]. These
// functions now take a [hip.DataType]. Before, they took a hipblasDatatype_t, which has other
// numbers. With an older library these methods return a [*dl.SymbolError]. In hipBLAS 2 the
// functions that take a [hip.DataType] have separate names, and so do their methods:
// [Library.GemmExV2].
//
// Matrices and vectors are in device memory: an address there is a [hip.DevicePtr]. Matrices are
// column-major, as in Fortran. A new handle is in [PointerModeHost]: scalars such as alpha, and
// results, are in host memory, and a method that returns a result blocks until the device is done.
// In [PointerModeDevice] a scalar's address is a device address, and methods that return a result
// must not be called.
//
// A [Handle] is the state of the library for one device, as in C. [Library.NewContext] makes a
// [Context], which has a handle and a Close. A handle belongs to the device that is current when it
// is made, and the same device must be current in all calls with the handle. Calls with one handle
// must come from one goroutine at a time; all other methods may be called concurrently. Work runs
// in order on the handle's stream ([Library.SetStream]), and calls that return no result do not
// wait for the work.
//
// hipBLAS has its own release numbers, and versions in this package are these numbers. The library
// does not report its release, but the file's name contains it, such as libhipblas.so.2.4. Files of
// all releases before 1.0 are named libhipblas.so.0.1, and count as 0.54:
//
//	ROCm     5.5   6.4  7.2
//	hipBLAS  0.54  2.4  3.2
package hipblas

//go:generate go run github.com/puregpu/puregpu/tools/gen hipblas
