// Package hiprtc binds hipRTC, ROCm's compiler of HIP C++ at run time, without cgo.
//
// [Open] finds libhiprtc and resolves its functions. hipRTC needs neither a GPU nor a driver; load
// its output with package hip or package gpu. Every function is a method of [Library] that returns
// its outputs and an error, nil on success. An error code is a constant of type [Result]: compare
// it with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that names the
// release that introduced it.
//
// Free a [Program] with [Library.DestroyProgram]; HIP 5.2 crashes if it gets a zero Program. If
// [Library.CompileProgram] fails with [ErrorCompilation], the program's log, from
// [Library.GetProgramLog], has the messages with file and line. Fetch an output in two calls: the
// first returns its size in bytes, the second fills a slice of at least that size. C does not get
// the slice's length. [Texts] makes options and headers for C.
//
// [dl.Library.Version] is the HIP release in the name of the library's file. If the name has no
// release, Version is the result of [Library.GetVersion], or 0 if GetVersion returns 9.0, as in
// libraries of HIP 5.
//
// All methods may be called concurrently, but only one goroutine at a time may use a program or
// link. [Library.CompileProgram] blocks for as long as the compiler works. Package hip has the
// linker of HIP 6.4 too, under the same names as CUDA's.
package hiprtc

//go:generate go run github.com/puregpu/puregpu/tools/gen hiprtc
