// Package hip binds the HIP runtime API of ROCm without cgo: the functions of its headers from 5.2 to 6.4.
//
// [Open] finds libamdhip64 and resolves its functions. Every function is a method of [Library]: inputs are arguments,
// outputs are results, and the last result is an error, nil on success. An error code is a [Result], a constant: compare
// it with errors.Is(err, hip.ErrorNotReady). A function that the library lacks returns a [*dl.SymbolError] that names the
// release that brought it.
//
// The bindings are proven against an echo library and against the real libraries' symbols; they have not been run on an
// AMD GPU.
//
// HIP keeps the current device per OS thread, and a goroutine moves between threads: lock it with [runtime.LockOSThread]
// from SetDevice on until the last call that needs it. Device 0 is current where nothing was set.
package hip

//go:generate go run github.com/puregpu/puregpu/tools/gen hip
