// Package hiprand binds the host API of hipRAND, ROCm's library of random numbers, without cgo. Its
// API is like that of package curand.
//
// The package has never run on an AMD GPU, because the project has none. Its calls are tested with
// C libraries made from the headers. Tests also open Debian's builds of hipRAND and call the
// functions that need no GPU.
//
// [Open] finds libhiprand and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a [Status], a constant:
// compare it with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that
// names the release that introduced it.
//
// A [Handle] is a generator, as in C. [Library.NewGenerator] makes a [Generator], which has a
// handle and a Close. A generator belongs to the device that is current when it is made, and the
// same device must be current in all calls of the generator. Calls of one generator must come from
// one goroutine at a time; all other methods may be called concurrently. The device writes the
// numbers to its memory, in order on the generator's stream ([Library.SetStream]), and the call
// does not wait for the numbers. A generator of [Library.CreateGeneratorHost] writes to host memory
// before the call returns; convert the address to a [hip.DevicePtr].
//
// hipRAND reports the release of rocRAND, the library that it calls. Versions in this package are
// rocRAND's:
//
//	ROCm     5.3     5.7      6.4  7.2
//	rocRAND  2.10.9  2.10.17  3.3  4.2
package hiprand

//go:generate go run github.com/puregpu/puregpu/tools/gen hiprand
