// Package nvrtc binds NVRTC, NVIDIA's compiler of CUDA C++ at run time, without cgo.
//
// [Open] finds libnvrtc and resolves its functions. NVRTC needs neither a GPU nor a driver; what it compiles is loaded with
// package cuda, or with package gpu. Every function is a method of [Library] that returns its outputs and an error, nil on
// success. An error code is a [Result], a constant: compare it with errors.Is. A function that the library lacks returns a
// [*dl.SymbolError] that says which release brought it.
//
// A [Program] is freed with [Library.DestroyProgram]. When [Library.CompileProgram] fails with [ErrorCompilation], the
// program's log, from [Library.GetProgramLog], has the messages with file and line. An output is fetched in two calls: one
// tells its size in bytes, the other fills a slice of at least that size, which the caller owns. C gets no length with the
// slice. [Texts] makes options and headers as C reads them.
//
// From CUDA 12.8 on, a compilation can make a precompiled header (options --pch and --create-pch), in a heap that all programs share, of
// which [Library.GetPCHCreateStatus] tells after compiling, and [Library.SetFlowCallback] lets a function, made by [dl.Callback],
// cancel one. A function that a release dropped, as 13.0 did [Library.GetNVVM], is a [*dl.SymbolError] there too.
//
// All methods may be called concurrently, but those of one program by one goroutine at a time. [Library.CompileProgram]
// blocks for as long as the compiler works.
package nvrtc

//go:generate go run github.com/puregpu/puregpu/tools/gen nvrtc
