// Package triton has kernels compiled by Triton 3.6 for compute capability 9.0, as Go functions,
// for tests. Their source is runtime/driver/cudadriver/testdata/kernels.py. The other files in the
// package's folder are from Triton's cache, without debugging information and facts about the build
// machine.
package triton

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -pkg triton -name triton triton_add.json triton_softmax.json triton_matmul.json
