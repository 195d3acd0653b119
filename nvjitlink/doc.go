// Package nvjitlink binds nvJitLink, NVIDIA's linker of device code at run time, without cgo. It
// links machine code, PTX and the LTO-IR that package nvrtc makes, and optimizes LTO-IR across its
// inputs.
//
// [Open] finds libnvJitLink and resolves its functions. nvJitLink needs neither a GPU nor a driver;
// load its output with package cuda or package gpu. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a constant of type [Result]:
// compare it with errors.Is. 13.0 has codes of its own, such as [ErrorNullInput], for errors that
// releases up to 12.6 call [ErrorInvalidInput] or [ErrorInternal]; the comment of each code says
// which.
//
// Free a linker ([Handle]) with [Library.Destroy]. If [Library.AddData] or [Library.Complete]
// fails, [Library.GetErrorLog] returns the messages. Fetch an output in two calls: the first
// returns its size in bytes, the second fills a slice of at least that size. C does not get the
// slice's length. [Texts] makes options for C.
//
// # Names
//
// NVIDIA's header defines the functions inline. Each calls a function with the header's release in
// its name, such as __nvJitLinkCreate_12_4. From 12.3 on the library also exports the plain names,
// which this package binds. So a program works with any library from 12.3 on. Open refuses
// libraries of 12.0 to 12.2 as too old.
//
// # Threads
//
// All methods may be called concurrently, but all calls for one linker, from [Library.Create] to
// [Library.Destroy], must come from one OS thread: lock the goroutine with runtime.LockOSThread.
// nvJitLink 12.4 keeps memory per thread, and crashes or hangs later if the calls came from several
// threads. [Library.Complete] blocks for as long as linking takes.
package nvjitlink

//go:generate go run github.com/puregpu/puregpu/tools/gen nvjitlink
