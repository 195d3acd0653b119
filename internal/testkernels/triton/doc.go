// Package triton has kernels that Triton 3.6 has compiled for compute capability 9.0, as Go functions, for tests. They are those of
// runtime/driver/cudadriver/testdata/kernels.py: its cache has the code and the metadata, of which what tells of debugging and of the machine is left out.
package triton

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -pkg triton -name triton triton_add.json triton_softmax.json triton_matmul.json
