// Package sparse multiplies sparse matrices by vectors on a device with NVIDIA's cuSPARSE. Its
// operations are Ops of package gpu: streams, queues and recordings take them.
//
//	lib, err := sparse.Open(dev, sparse.Options{})
//	err = stream.Do(sparse.MatVec(lib, y, a, x))
//
// A Library may be used by several goroutines, streams and recordings at once. Calls use its handle
// one at a time. Each queue and each recording has its own workspace, and so have commands of a
// recording that may run at the same time.
//
// On a simulated GPU no library is loaded. MatVec runs in Go there, sums in float64 and rounds
// once, so results differ from a GPU's in the last bits. Library.Call is an error there. HIP
// devices have no cuSPARSE: Open returns gpu.ErrUnsupported for them.
package sparse
