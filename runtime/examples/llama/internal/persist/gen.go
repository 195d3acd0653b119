package persist

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -runtime -type Dims=Dims -type Peers=github.com/puregpu/puregpu/runtime/examples/llama/internal/peer.Peers -type u64=uint64 persist.cu
