// Package nvjitlink binds nvJitLink, NVIDIA's linker of device code at run time, without cgo. It links machine code, PTX and the
// LTO-IR that package nvrtc makes, the latter with optimization across what is linked.
//
// [Open] finds libnvJitLink and resolves its functions. nvJitLink needs neither a GPU nor a driver; what it links is loaded with
// package cuda, or with package gpu. Every function is a method of [Library] that returns its outputs and an error, nil on
// success. An error code is a [Result], a constant: compare it with errors.Is. 13.0 has codes of its own for what releases up to
// 12.6 call [ErrorInvalidInput] or [ErrorInternal], such as [ErrorNullInput]: each tells which of the two it was.
//
// A linker ([Handle]) is freed with [Library.Destroy]. When [Library.AddData] or [Library.Complete] fails, the messages, from
// [Library.GetErrorLog], say why. An output is fetched in two calls: one tells its size in bytes, the other fills a slice of at
// least that size, which the caller owns. C gets no length with the slice. [Texts] makes options as C reads them.
//
// # Names
//
// NVIDIA's header defines the functions inline, each as a call of one with the header's release in its name, such as
// __nvJitLinkCreate_12_4. From 12.3 on the library exports the plain names too, for its own release, and these are bound: a
// program goes with any library from 12.3 on. A library of 12.0 to 12.2 has no plain names, and Open refuses it as too old.
//
// # Threads
//
// All methods may be called concurrently, but all calls for one linker, from [Library.Create] to [Library.Destroy], must come from one
// thread of the system: lock the goroutine with runtime.LockOSThread. nvJitLink 12.4 keeps memory by thread, and crashes or hangs
// later where a linker was added to on one thread and completed on another. [Library.Complete] blocks for as long as linking takes.
package nvjitlink

//go:generate go run github.com/puregpu/puregpu/tools/gen nvjitlink
