// Package hipfft binds hipFFT, ROCm's library of fast Fourier transforms, without cgo. Its API is
// like that of package cufft.
//
// The package has never run on an AMD GPU, because the project has none. Its calls are tested with
// C libraries made from the headers. Tests also open Debian's builds of hipFFT and call the
// functions that need no GPU.
//
// [Open] finds libhipfft and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a [Result], a constant:
// compare it with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that
// names the release that introduced it. Data is in device memory: its address is a [hip.DevicePtr].
//
// A [Handle] is a plan, as in C. [Library.NewPlan] makes a [Plan], which has a handle and a Close.
// A plan belongs to the device that is current when the plan is made, and the same device must be
// current in all calls of the plan. Calls of one plan must come from one goroutine at a time; all
// other methods may be called concurrently. A transform runs in order on the plan's stream
// ([Library.SetStream]), and the call does not wait for the transform. Backward transforms are not
// scaled.
//
// hipFFT reports the release of rocFFT, the library that it calls. Versions in this package are
// rocFFT's:
//
//	ROCm    6.1     6.4     7.2
//	rocFFT  1.0.27  1.0.32  1.0.36
package hipfft

//go:generate go run github.com/puregpu/puregpu/tools/gen hipfft
