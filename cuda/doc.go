// Package cuda binds the CUDA driver API without cgo: every public function of cuda.h, in every ABI version.
//
// [Open] finds the driver's library, libcuda.so.1 or nvcuda.dll, and resolves its functions. Every function is a method of
// [Library]: inputs are arguments, outputs are results, and the last result is an error, nil on success. An error code is
// a [Result], a constant: compare it with errors.Is(err, cuda.ErrorNotReady). A function that the driver lacks returns a
// [*dl.SymbolError] that names the release that brought it; [dl.Library.Has] asks for a whole set of functions at once.
//
// The plain name of a method is the ABI that cuda.h's plain name means; older and newer ones carry a number, as
// CtxCreateV2 does. Handles are numbers: zero is none, and nothing frees them but the library's own functions.
//
// # Memory
//
// What a pointer argument points to must stay where it is while the library uses it, which for asynchronous functions is
// longer than the call. Go memory stays put only when it is on the heap and pinned ([runtime.Pinner]) or the call alone
// uses it; host memory for asynchronous copies should come from [Library.MemHostAlloc] or [Library.MemHostRegister].
//
// # Threads
//
// CUDA keeps the current context per OS thread, and a goroutine moves between threads. Lock the goroutine with
// [runtime.LockOSThread] from CtxSetCurrent on until the last call that needs it. All methods may be called concurrently.
package cuda

//go:generate go run github.com/puregpu/puregpu/tools/gen cuda
