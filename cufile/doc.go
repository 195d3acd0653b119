// Package cufile binds cuFile, NVIDIA's library for GPUDirect Storage, without cgo: files are read into device memory, and
// written from it.
//
// [Open] finds libcufile and resolves its functions. Every function is a method of [Library] that returns its outputs and an
// error, nil on success. The error of a function is an [Error], a struct of two codes: an [OpError] of cuFile, and a
// [cuda.Result], which is 0 unless CUDA failed. errors.Is compares it with either. A function that the library lacks returns
// a [*dl.SymbolError] that names the release that brought it.
//
// A program opens the driver once with [Library.NewDriver] and closes it at the end. [Library.NewFile] registers an open file,
// and [File.ReadAt] and [File.WriteAt] move its bytes. [Library.NewBuffer] pins device memory that is used for many
// transfers. A CUDA context must be current on the calling thread. All methods may be called concurrently.
//
// Direct transfers need the kernel module nvidia-fs, or a new enough kernel and driver, and a file that was opened with
// O_DIRECT on a file system that supports them. Elsewhere cuFile copies through host memory: this is its compatibility mode,
// which is on by default. The file /etc/cufile.json and variables of the environment that begin with CUFILE_ configure cuFile.
// It reads the environment that the process was started with: os.Setenv does not reach it.
//
// cuFile is for Linux only. It counts releases of its own, which all versions here mean; it tells no third part:
//
//	CUDA    11.8  12.4  12.5  13.0
//	cuFile  1.4   1.9   1.10  1.15
//
// cuFile 1.4 does not tell its version. The name of its file does.
package cufile

//go:generate go run github.com/puregpu/puregpu/tools/gen cufile
