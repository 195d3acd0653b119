// Package sparse multiplies sparse matrices by vectors on a device with NVIDIA's cuSPARSE. Its
// operations are Ops of package gpu: streams, queues and recordings take them.
//
//	lib, err := sparse.Open(dev, sparse.Options{})
//	err = stream.Do(sparse.MatVec(lib, y, a, x))
//
// A Library may be used by several goroutines, streams and recordings at once. One call at a time
// uses its handle. Each queue and each recording has its own workspace.
//
// On a simulated GPU no library is loaded. MatVec runs in Go there, sums in float64 and rounds
// once, so results differ from a GPU's in the last bits. Library.Call is an error there. Devices of
// HIP have no cuSPARSE: Open returns gpu.ErrUnsupported.
package sparse
