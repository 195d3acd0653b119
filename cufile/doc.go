// Package cufile binds cuFile, NVIDIA's library for GPUDirect Storage, without cgo. cuFile reads
// files into device memory, and writes device memory to files.
//
// [Open] finds libcufile and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. A function's error is an [Error], a struct of
// two codes: an [OpError] of cuFile, and a [cuda.Result], which is 0 unless CUDA failed. errors.Is
// matches either code. A function that the library lacks returns a [*dl.SymbolError] that names the
// release that introduced it.
//
// A program opens the driver once with [Library.NewDriver] and closes it at the end.
// [Library.NewFile] registers an open file, and [File.ReadAt] and [File.WriteAt] move its bytes.
// [Library.NewBuffer] pins device memory for many transfers. A CUDA context must be current on the
// calling thread. All methods may be called concurrently.
//
// Direct transfers need the kernel module nvidia-fs, or a new enough kernel and driver. The file
// must be opened with O_DIRECT on a file system that supports direct transfers. Otherwise cuFile
// copies through host memory: this is its compatibility mode, which is on by default. The file
// /etc/cufile.json and environment variables that begin with CUFILE_ configure cuFile. cuFile reads
// the environment that the process started with, so os.Setenv has no effect on it.
//
// cuFile is for Linux only. It has its own release numbers, and versions in this package are these
// numbers. They have two parts:
//
//	CUDA    11.8  12.4  12.5  13.0
//	cuFile  1.4   1.9   1.10  1.15
//
// cuFile 1.4 does not report its version, but the name of the library's file contains it.
package cufile

//go:generate go run github.com/puregpu/puregpu/tools/gen cufile
