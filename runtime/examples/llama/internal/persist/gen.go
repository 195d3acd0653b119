package persist

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -runtime -type Dims=Dims -type u64=uint64 persist.cu
