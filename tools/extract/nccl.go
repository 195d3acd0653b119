package main

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// Stand-ins for the CUDA runtime's headers, of which nccl.h needs only the stream type.
var ncclStubs = map[string]string{
	"cuda_runtime.h": "#include <stddef.h>\ntypedef struct CUstream_st *cudaStream_t;\n",
	"cuda_fp16.h":    "", "cuda_bf16.h": "", "cuda_fp8.h": "",
	"hip/hip_runtime.h":     "#include <stddef.h>\ntypedef struct ihipStream_t *hipStream_t;\ntypedef struct ihipStream_t *cudaStream_t;\n",
	"hip/hip_runtime_api.h": "#include <stddef.h>\ntypedef struct ihipStream_t *hipStream_t;\ntypedef struct ihipStream_t *cudaStream_t;\n",
	"hip/hip_fp16.h":        "",
}

// ncclTable reads nccl.h and, where rccl is not nil, adds what RCCL's header of the same name declares beyond it.
// The pnccl twins, the same functions for profilers, are left out.
func ncclTable(nccl, rccl fs.FS) (*symbols.Table, error) {
	h, version, err := parseNCCL(nccl)
	if err != nil {
		return nil, err
	}
	t := &h.table
	t.Library, t.Version = "nccl", version
	if t.Headers, err = hashes(nccl, version, "nccl.h"); err != nil {
		return nil, err
	}
	t.Functions = ncclFunctions(h)
	t.Handles = append(t.Handles, symbols.Handle{Name: "cudaStream_t", Tag: "CUstream_st"}) // from the CUDA runtime's headers
	if rccl == nil {
		return t, nil
	}
	r, rv, err := parseNCCL(rccl)
	if err != nil {
		return nil, fmt.Errorf("RCCL: %w", err)
	}
	rh, err := hashes(rccl, rv, "nccl.h")
	if err != nil {
		return nil, err
	}
	rh[0].Name = "rccl/nccl.h"
	t.Headers = append(t.Headers, rh...)
	have := map[string]bool{}
	for _, f := range t.Functions {
		have[f.Symbol] = true
	}
	for _, f := range ncclFunctions(r) {
		if have[f.Symbol] {
			continue
		}
		f.Lib = "rccl"
		for i := range f.Params { // the stream type is the one thing that the two spell differently
			f.Params[i].Type = strings.ReplaceAll(f.Params[i].Type, "hipStream_t", "cudaStream_t")
		}
		t.Functions = append(t.Functions, f)
	}
	r.table.Library = "rccl"
	mergeEnums(t, &r.table, symbols.Version{}, nil)
	mergeTypes(t, &r.table, symbols.Version{})
	return t, nil
}

func parseNCCL(files fs.FS) (*header, symbols.Version, error) {
	h, err := parse(source{main: "nccl.h", files: files, stubs: ncclStubs, keep: func(f string) bool { return f == "nccl.h" }})
	if err != nil {
		return nil, symbols.Version{}, err
	}
	v := symbols.Version{}
	for _, c := range h.table.Constants {
		for name, p := range map[string]*int{"NCCL_MAJOR": &v.Major, "NCCL_MINOR": &v.Minor, "NCCL_PATCH": &v.Patch} {
			if c.Name == name {
				if *p, err = strconv.Atoi(c.Value); err != nil {
					return nil, v, fmt.Errorf("nccl.h: %s: %w", name, err)
				}
			}
		}
	}
	if v.IsZero() {
		return nil, v, fmt.Errorf("nccl.h: NCCL_MAJOR is not defined")
	}
	return h, v, nil
}

func ncclFunctions(h *header) []symbols.Function {
	var out []symbols.Function
	for _, f := range h.funcs {
		if strings.HasPrefix(f.Symbol, "pnccl") || strings.HasPrefix(f.Symbol, "pmscc") {
			continue
		}
		g := f.Function
		g.Current = true
		applyFacts(g.Params, f.doc)
		out = append(out, g)
	}
	return out
}
