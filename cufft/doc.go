// Package cufft binds cuFFT, NVIDIA's library of fast Fourier transforms, without cgo.
//
// [Open] finds libcufft and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a [Result], a constant:
// compare it with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that
// names the release that introduced it. Data is in device memory: its address is a
// [cuda.DevicePtr].
//
// A [Handle] is a number, as in C. [Library.NewPlan] makes a [Plan], which has a handle and a
// Close. A plan belongs to the CUDA context that is current when the plan is made, and the same
// context must be current in all calls of the plan. Calls of one plan must come from one goroutine
// at a time; all other methods may be called concurrently. A transform runs in order on the plan's
// stream ([Library.SetStream]), and the call does not wait for the transform. Inverse transforms
// are not scaled.
//
// cuFFT has its own release numbers, and versions in this package are these numbers:
//
//	CUDA   11.2    11.8   12.4    12.5    13.0
//	cuFFT  10.4.1  10.9   11.2.1  11.2.3  12.0
package cufft

//go:generate go run github.com/puregpu/puregpu/tools/gen cufft
