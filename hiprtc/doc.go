// Package hiprtc binds hipRTC, ROCm's compiler of HIP C++ at run time, without cgo.
//
// [Open] finds libhiprtc and resolves its functions. hipRTC needs neither a GPU nor a driver; what it compiles is loaded with package
// hip, or with package gpu. Every function is a method of [Library] that returns its outputs and an error, nil on success. An error
// code is a [Result], a constant: compare it with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that says
// which release brought it.
//
// A [Program] is freed with [Library.DestroyProgram]; HIP 5.2 crashes where a function is given none. When [Library.CompileProgram] fails with [ErrorCompilation], the program's log,
// from [Library.GetProgramLog], has the messages with file and line. An output is fetched in two calls: one tells its size in bytes,
// the other fills a slice of at least that size, which the caller owns. C gets no length with the slice. [Texts] makes options and
// headers as C reads them.
//
// [dl.Library.Version] is the HIP release of the library's file, since older libraries do not tell it: [Library.GetVersion] returns
// 9 and 0 there. 0 stands for a file whose name does not tell it either.
//
// All methods may be called concurrently, but those of one program or link by one goroutine at a time. [Library.CompileProgram]
// blocks for as long as the compiler works. Package hip has the linker of HIP 6.4 too, under the same names as CUDA's.
package hiprtc

//go:generate go run github.com/puregpu/puregpu/tools/gen hiprtc
