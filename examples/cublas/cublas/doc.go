// Package cublas binds NVIDIA's cuBLAS and cuBLASLt, all functions that their headers of CUDA 12.4 declare but for copies between host and
// device, with the types of package cuda. It was made by tools/bindgen.
package cublas

//go:generate go tool bindgen cublas.json
