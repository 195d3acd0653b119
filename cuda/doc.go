// Package cuda binds the CUDA driver API without cgo: every public function of cuda.h, in every ABI
// version.
//
// [Open] finds the driver's library, libcuda.so.1 or nvcuda.dll, and resolves its functions. Every
// function is a method of [Library]: inputs are arguments, outputs are results, and the last result
// is an error, nil on success. An error code is a constant of type [Result]: compare it with
// errors.Is(err, cuda.ErrorNotReady). A function that the driver lacks returns a [*dl.SymbolError]
// that names the release that introduced it; [dl.Library.Has] reports on a whole set of functions.
//
// A method's plain name means the same ABI as the plain name in cuda.h. Older and newer ABIs have a
// number, as in CtxCreateV2. Handles are numbers: zero is no handle, and only the library's own
// functions free them.
//
// # Memory
//
// Memory behind a pointer argument must stay in place while the library uses it; for asynchronous
// functions that is longer than the call. Go memory stays in place only during the call, or if it
// is on the heap and pinned ([runtime.Pinner]). For asynchronous copies use memory of
// [Library.MemHostAlloc], or register it with [Library.MemHostRegister].
//
// # Threads
//
// CUDA keeps the current context per OS thread, and a goroutine moves between threads. Call
// [runtime.LockOSThread] before CtxSetCurrent, until the last call that needs the context. All
// methods may be called concurrently.
package cuda

//go:generate go run github.com/puregpu/puregpu/tools/gen cuda
