package gen

import (
	"fmt"

	"github.com/puregpu/puregpu/symbols"
)

// module is the path that the generated packages live under.
const module = "github.com/puregpu/puregpu"

// A config is what differs between the libraries.
type config struct {
	pkg        string   // Go package, and name of the table
	brand      string   // what since-versions are counted in: "CUDA 12.5"
	functions  []string // prefixes cut off function names
	types      []string // prefixes cut off type names, longest first
	values     []string // prefixes cut off enumerators and constants, longest first
	encode     func(symbols.Version) int
	procByName bool // the library resolves an API name at a version itself
}

var configs = map[string]config{
	"cuda": {
		pkg: "cuda", brand: "CUDA", functions: []string{"cu"},
		types: []string{"CUDA_", "CU", "cu"}, values: []string{"CUDA_", "CU_"},
		encode:     func(v symbols.Version) int { return v.Major*1000 + v.Minor*10 },
		procByName: true,
	},
	"hip": {
		pkg: "hip", brand: "HIP", functions: []string{"__hip", "hip"},
		types: []string{"HIP_", "HIP", "hip_", "hip"}, values: []string{"__HIP_", "HIP_", "hip"},
		encode: func(v symbols.Version) int { return v.Major*10_000_000 + v.Minor*100_000 + v.Patch },
	},
	"nccl": {
		pkg: "nccl", brand: "NCCL", functions: []string{"nccl"},
		types: []string{"nccl"}, values: []string{"NCCL_", "nccl"},
		encode: encodeNCCL,
	},
}

// encodeNCCL numbers a release as ncclGetVersion does, which changed its way after 2.8.
func encodeNCCL(v symbols.Version) int {
	if v.Major < 2 || v.Major == 2 && v.Minor <= 8 {
		return v.Major*1000 + v.Minor*100 + v.Patch
	}
	return v.Major*10000 + v.Minor*100 + v.Patch
}

func configFor(name string) (config, error) {
	c, ok := configs[name]
	if !ok {
		return c, fmt.Errorf("gen: no library %q", name)
	}
	return c, nil
}
