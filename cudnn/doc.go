// Package cudnn binds cuDNN 9, NVIDIA's library of the operations of neural networks, without cgo.
//
// [Open] finds libcudnn and resolves its functions. Every function is a method of [Library] that returns its outputs and an
// error, nil on success. An error code is a [Status], a constant: compare it with errors.Is. [Library.WithReason] adds the
// library's own reason to it. A function that the library lacks returns a [*dl.SymbolError] that names the release that
// brought it.
//
// cuDNN has two APIs. The backend API describes a graph of operations by descriptors with attributes, finds an engine for
// the whole graph, and executes a plan. NVIDIA adds features only there. [Library.NewDescriptor] makes a [Descriptor], and
// [Set] and [Get] write and read its attributes. The other API has a function for each operation, such as
// [Library.ConvolutionForward] and [Library.SoftmaxForward]. Its functions of convolutions, pooling and activations are
// deprecated in cuDNN 9, and still there; those of recurrent networks are not deprecated.
//
// Tensors and workspaces are in device memory: an address there is a [cuda.DevicePtr]. Factors such as alpha are in host
// memory: a float64 for tensors of float64, else a float32. A data pointer of a variant pack is an address in device memory,
// but that of a tensor with [AttrTensorIsByValue] is one in host memory: allocate such memory with cuda.Library.MemHostAlloc,
// or keep it in place with a runtime.Pinner.
//
// A [Handle] is the state of the library for one device, as in C. [Library.NewContext] makes a [Context], which has a handle
// and a Close. A handle belongs to the CUDA context that is current when it is made, and the same context must be current in
// all its calls. Calls with one handle come from one goroutine at a time; all other methods may be called concurrently. Work
// is in the order of the handle's stream ([Library.SetStream]), and calls do not wait for it.
//
// Most of cuDNN is in further libraries, such as libcudnn_graph and libcudnn_ops, which libcudnn loads when they are first
// needed, and which need cuBLASLt and NVRTC. They must be of the same release and in the same folder.
// [StatusSublibraryLoadingFailed] says that one of them is missing.
//
// The package is made of the headers of cuDNN 9.1, 9.6, 9.19 and 9.24. "Since cuDNN 9.19" therefore means that 9.6 does not
// have a constant and 9.19 has it; functions have their exact release. What is since 9.1 may be older. cuDNN 8 numbers its
// error codes otherwise, and Open refuses it.
package cudnn

//go:generate go run github.com/puregpu/puregpu/tools/gen cudnn
