// Package curand binds the host API of cuRAND, NVIDIA's library of random numbers, without cgo.
//
// [Open] finds libcurand and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a [Status], a constant:
// compare it with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that
// names the release that introduced it.
//
// A [Handle] is a generator, as in C. [Library.NewGenerator] makes a [Generator], which has a
// handle and a Close. A generator belongs to the CUDA context that is current when it is made, and
// the same context must be current in all calls of the generator. Calls of one generator must come
// from one goroutine at a time; all other methods may be called concurrently. The device writes the
// numbers to its memory, in order on the generator's stream ([Library.SetStream]), and the call
// does not wait for the numbers. A generator of [Library.CreateGeneratorHost] writes to host memory
// before the call returns; convert the address to a [cuda.DevicePtr].
//
// cuRAND has its own release numbers, and versions in this package are these numbers:
//
//	CUDA    11.2    11.8  12.4    12.5    13.0
//	cuRAND  10.2.3  10.3  10.3.5  10.3.6  10.4
package curand

//go:generate go run github.com/puregpu/puregpu/tools/gen curand
