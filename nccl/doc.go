// Package nccl binds NCCL, NVIDIA's collective communication library, and RCCL, AMD's library with
// the same API, without cgo.
//
// [Open] finds libnccl and resolves its functions; [OpenRCCL] does the same for librccl. Every
// function is a method of [Library] that returns its outputs and an error, nil on success. An error
// code is a constant of type [Result]: compare it with errors.Is. A function that the library lacks
// returns a [*dl.SymbolError] that names the release that introduced it.
//
// NCCL uses the calling thread's current CUDA device when a communicator is made, and keeps the
// state of a group between [Library.GroupStart] and [Library.GroupEnd] in the calling thread. So
// lock the goroutine with [runtime.LockOSThread] while a communicator is made, and from GroupStart
// to GroupEnd.
//
// All methods may be called concurrently, but only one thread at a time may use a communicator.
//
// A communicator made with Config.Blocking = 0 returns [ErrorInProgress] for an unfinished
// operation. That is no failure: poll [Library.CommGetAsyncError] until it returns another result.
package nccl

//go:generate go run github.com/puregpu/puregpu/tools/gen nccl
