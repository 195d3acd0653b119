// Package dnn computes convolutions, attention, normalizations and softmax of neural networks on a
// device with NVIDIA's cuDNN. Its operations are Ops of package gpu: streams, queues and recordings
// take them.
//
//	lib, err := dnn.Open(dev, dnn.Options{})
//	attention, err := dnn.NewAttention[smallfloat.BFloat16](lib, dnn.AttentionShape{Batch: 1, Heads: 32, KVHeads: 8, Queries: 512, HeadDim: 128, Causal: true})
//	err = stream.Do(attention.Forward(out, q, k, v))
//
// cuDNN makes a plan for one shape: it chooses kernels, and compiles some of them. NewConv,
// NewAttention and NewNorm make plans, which takes milliseconds to seconds. So make plans in
// advance, and keep them.
//
// A Library and its plans may be used by several goroutines, streams and recordings at once. Calls
// use the Library's handle one at a time. While a plan is made, other calls wait. Each queue and
// each recording has its own workspace, and so have commands of a recording that may run at the same
// time.
//
// Tensors have no gaps. Tensors of plans must begin at addresses that are multiples of 16. Sums and
// intermediate results are float32.
//
// On a simulated GPU no library is loaded. The operations run in Go there, compute in float64 and
// round once, so results differ from a GPU's in the last bits. Library.Call and Library.With fail
// there. HIP devices have no cuDNN: Open returns gpu.ErrUnsupported for them.
package dnn
