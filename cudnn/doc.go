// Package cudnn binds cuDNN 9, NVIDIA's library of neural network operations, without cgo.
//
// [Open] finds libcudnn and resolves its functions. Every function is a method of [Library] that
// returns its outputs and an error, nil on success. An error code is a [Status], a constant:
// compare it with errors.Is. [Library.WithReason] adds the library's own reason to an error. A
// function that the library lacks returns a [*dl.SymbolError] that names the release that
// introduced it.
//
// cuDNN has two APIs. In the backend API, descriptors with attributes describe a graph of
// operations; a program finds an engine for the whole graph and executes a plan. NVIDIA adds
// features only to the backend API. [Library.NewDescriptor] makes a [Descriptor], and [Set] and
// [Get] write and read its attributes. The legacy API has a function for each operation, such as
// [Library.ConvolutionForward] and [Library.SoftmaxForward]. In the legacy API cuDNN 9 deprecates
// convolutions, pooling and activations, but still has them. It does not deprecate recurrent
// networks.
//
// Tensors and workspaces are in device memory: an address there is a [cuda.DevicePtr]. Factors such
// as alpha are in host memory: a float64 for tensors of float64, else a float32. The data pointers
// of a variant pack are device addresses, except the pointer of a tensor with
// [AttrTensorIsByValue], which is a host address: allocate that memory with
// cuda.Library.MemHostAlloc, or pin it with a runtime.Pinner.
//
// A [Handle] is the state of the library for one device, as in C. [Library.NewContext] makes a
// [Context], which has a handle and a Close. A handle belongs to the CUDA context that is current
// when the handle is made, and the same context must be current in all calls with the handle. Calls
// with one handle must come from one goroutine at a time; all other methods may be called
// concurrently. Work runs in order on the handle's stream ([Library.SetStream]), and calls do not
// wait for the work.
//
// Most of cuDNN is in further libraries, such as libcudnn_graph and libcudnn_ops. libcudnn loads
// these lazily, and they need cuBLASLt and NVRTC. All libraries of cuDNN must have the same release
// and be in the same folder. [StatusSublibraryLoadingFailed] means that one of them is missing.
//
// The package is made from the headers of cuDNN 9.1, 9.6, 9.19 and 9.24. "Since cuDNN 9.19" on a
// constant therefore means that 9.19 has it and 9.6 does not; functions have their exact release.
// Names marked "since 9.1" may be older. cuDNN 8 has other numbers for its error codes, and Open
// refuses it.
package cudnn

//go:generate go run github.com/puregpu/puregpu/tools/gen cudnn
