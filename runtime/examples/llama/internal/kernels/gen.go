package kernels

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -runtime -type Dims=Dims -type Sampling=Sampling -instance qkvMany<8> -instance qkvMany<16> -instance qkvMany<32> -instance qkvMany<64> -instance gateUpMany<8> -instance gateUpMany<16> -instance gateUpMany<32> -instance gateUpMany<64> -instance addMany<8> -instance addMany<16> -instance addMany<32> -instance addMany<64> -instance logitsMany<8> -instance logitsMany<16> -instance logitsMany<32> -instance logitsMany<64> llama.cu
