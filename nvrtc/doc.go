// Package nvrtc binds NVRTC, NVIDIA's compiler of CUDA C++ at run time, without cgo.
//
// [Open] finds libnvrtc and resolves its functions. NVRTC needs neither a GPU nor a driver; load
// its output with package cuda or package gpu. Every function is a method of [Library] that returns
// its outputs and an error, nil on success. An error code is a constant of type [Result]: compare
// it with errors.Is. If the library lacks a function, the method returns a [*dl.SymbolError] that
// names the release that introduced the function. A release may also have dropped a function, as
// 13.0 dropped [Library.GetNVVM].
//
// Free a [Program] with [Library.DestroyProgram]. If [Library.CompileProgram] fails with
// [ErrorCompilation], the program's log, from [Library.GetProgramLog], has the messages with file
// and line. Fetch an output in two calls: the first returns its size in bytes, the second fills a
// slice of at least that size. C does not get the slice's length. [Texts] makes options and headers
// for C.
//
// From CUDA 12.8 on, a compilation can make a precompiled header (options --pch and --create-pch)
// in a heap that all programs share; [Library.GetPCHCreateStatus] reports afterwards whether the
// header was made. [Library.SetFlowCallback] lets a function made by [dl.Callback] cancel a
// compilation.
//
// All methods may be called concurrently, but only one goroutine at a time may use a program.
// [Library.CompileProgram] blocks for as long as the compiler works.
package nvrtc

//go:generate go run github.com/puregpu/puregpu/tools/gen nvrtc
