// Package nccl binds NCCL, NVIDIA's collective communication library, and RCCL, AMD's library of the same API, without
// cgo.
//
// [Open] finds libnccl and resolves its functions; [OpenRCCL] does the same for librccl. Every function is a method of
// [Library] that returns its outputs and an error, nil on success. An error code is a [Result], a constant: compare it
// with errors.Is. A function that the library lacks returns a [*dl.SymbolError] that says which release brought it.
//
// NCCL looks at the calling thread's current CUDA device when a communicator is made, and keeps the state of a group
// between [Library.GroupStart] and [Library.GroupEnd] in the calling thread: lock the goroutine to its thread with
// [runtime.LockOSThread] around both.
//
// All methods may be called concurrently, but the library allows a communicator one thread at a time.
//
// A communicator made with Config.Blocking = 0 returns [ErrorInProgress] for what it has not finished; it is no failure.
// Poll [Library.CommGetAsyncError] until it says otherwise.
package nccl

//go:generate go run github.com/puregpu/puregpu/tools/gen nccl
