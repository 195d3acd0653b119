// Package blas multiplies matrices on a device with NVIDIA's cuBLAS and cuBLASLt. Its operations
// are Ops of package gpu: streams, queues and recordings take them.
//
//	lib, err := blas.Open(dev, blas.Options{})
//	err = stream.Do(blas.Gemm(lib, c, a, b))
//
// [Gemm] multiplies matrices of floats with 64, 32, 16 or 8 bits, one pair or many pairs at once.
// [GemmWith] can add a bias and apply an activation. [Library.Call] puts any other function of
// cuBLAS into the order of a queue.
//
// A [Matrix] is stored row by row, like a [][]T and like PyTorch's tensors. The functions of
// package cublas read memory column by column, as Fortran does, so they see the transpose.
//
// A Library may be used by several goroutines, streams and recordings at once. Calls use the
// Library's handle one at a time. Each queue and each recording has its own workspace, and so have
// commands of a recording that may run at the same time.
//
// On a simulated GPU no library is loaded. Gemm runs in Go there, sums in float64 and rounds once,
// so results differ from a GPU's in the last bits. Library.Call is an error there. HIP devices have
// no cuBLAS: Open returns gpu.ErrUnsupported for them.
package blas
