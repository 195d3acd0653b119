package main

import (
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// hipHeaders are the files that declare the HIP runtime API. What they leave out of their own repository (the
// profiler's and compiler's parts) is stubbed.
var hipHeaders = []string{
	"hip/hip_runtime_api.h", "hip/driver_types.h", "hip/texture_types.h", "hip/surface_types.h", "hip/linker_types.h",
	"hip/channel_descriptor.h", "hip/amd_detail/amd_channel_descriptor.h", "hip/hip_deprecated.h",
	"hip/amd_detail/host_defines.h", "hip/amd_detail/amd_hip_runtime_pt_api.h", hipInterop,
}

var hipStubs = map[string]string{
	"hip/amd_detail/amd_hip_runtime_pt_api.h": "", // per-thread-stream twins, which are inline there
	"hip/amd_detail/hip_prof_str.h":           "",
	"hip/amd_detail/amd_hip_vector_types.h":   "",
	"hip/hip_common.h":                        "#define __HIP_PLATFORM_AMD__ 1\n",
}

// hipTable reads one or more releases of HIP's headers, newest first, and joins them: the newest declaration of each
// name stands, and the oldest release that has a name is its since-version. Where a library is given, the version nodes
// of its symbols tell more exactly when each function came.
func hipTable(releases []fs.FS, library io.ReaderAt, report func(string)) (*symbols.Table, error) {
	var t *symbols.Table
	since := map[string]symbols.Version{}
	var last symbols.Version
	for i, files := range releases {
		h, v, err := parseHIP(files)
		if err != nil {
			return nil, err
		}
		if i > 0 && v.Compare(last) >= 0 {
			return nil, fmt.Errorf("HIP %v comes after %v: give the newest release first", v, last)
		}
		last = v
		old := &h.table
		var present []string
		for _, name := range hipHeaders {
			if _, err := fs.Stat(files, name); err == nil && hipStubs[name] == "" {
				if _, stubbed := hipStubs[name]; !stubbed {
					present = append(present, name)
				}
			}
		}
		headers, err := hashes(files, v, append(present, "hip/hip_version.h")...)
		if err != nil {
			return nil, err
		}
		old.Functions = hipFunctions(h)
		if t == nil {
			t = old
			t.Library, t.Version = "hip", v
			typeConstants(t, h.alias)
		} else {
			mergeEnums(t, old, v, report)
			mergeTypes(t, old, v)
			mergeFunctions(t, old, v, report)
		}
		t.Headers = append(t.Headers, headers...)
		for _, f := range old.Functions {
			since[f.Symbol] = v
		}
	}
	fromTheStart(t, last)
	if library != nil {
		nodes, err := versionNodes(library)
		if err != nil {
			return nil, fmt.Errorf("the library's version nodes: %w", err)
		}
		if len(nodes) == 0 {
			return nil, fmt.Errorf("the library has no symbol with a version node hip_N.N")
		}
		for symbol, v := range nodes {
			if _, ok := since[symbol]; ok {
				since[symbol] = v
			}
		}
		// A name that the library does not export is an inline function or a macro's shadow: nothing to bind.
		for _, f := range t.Functions {
			if _, ok := nodes[f.Symbol]; !ok {
				report(f.Symbol + " is declared and not exported by the library")
			}
		}
	}
	for i := range t.Functions {
		t.Functions[i].Since = trimPatch(since[t.Functions[i].Symbol])
	}
	return t, nil
}

// trimPatch drops HIP's build number, which says nothing about the API.
func trimPatch(v symbols.Version) symbols.Version {
	return symbols.Version{Major: v.Major, Minor: v.Minor}
}

func parseHIP(files fs.FS) (*header, symbols.Version, error) {
	keep := map[string]bool{}
	for _, name := range hipHeaders {
		if _, stubbed := hipStubs[name]; !stubbed {
			keep[name] = true
		}
	}
	stubs := maps.Clone(hipStubs)
	stubs["hip.h"] = "#include <hip/hip_runtime_api.h>\n"
	if _, err := fs.Stat(files, hipInterop); err == nil {
		stubs["hip.h"] += "#include <" + hipInterop + ">\n"
	}
	h, err := parse(source{
		main: "hip.h", files: files, stubs: stubs,
		defines: "#define __HIP_PLATFORM_AMD__ 1\n#define __HIP_DISABLE_CPP_FUNCTIONS__ 1\n" + hipPrelude,
		keep:    func(f string) bool { return keep[path.Clean(f)] },
	})
	if err != nil {
		return nil, symbols.Version{}, err
	}
	v, err := hipVersion(files)
	return h, v, err
}

// hipInterop declares the functions for OpenGL, which the runtime's header itself left out after 5.x.
const hipInterop = "hip/amd_detail/amd_hip_gl_interop.h"

// hipPrelude includes the C headers that HIP's own rely on their including file to have read.
const hipPrelude = "#include <stddef.h>\n#include <stdint.h>\n#include <stdbool.h>\n"

func hipVersion(files fs.FS) (v symbols.Version, err error) {
	text, err := fs.ReadFile(files, "hip/hip_version.h")
	if err != nil {
		return v, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "#define" {
			continue
		}
		for name, p := range map[string]*int{"HIP_VERSION_MAJOR": &v.Major, "HIP_VERSION_MINOR": &v.Minor} {
			if f[1] == name {
				if *p, err = strconv.Atoi(f[2]); err != nil {
					return v, fmt.Errorf("hip_version.h: %s: %w", name, err)
				}
			}
		}
	}
	if v.IsZero() {
		return v, fmt.Errorf("hip_version.h: HIP_VERSION_MAJOR is not defined")
	}
	return v, nil
}

func hipFunctions(h *header) []symbols.Function {
	api := map[string]string{} // exported name to the name that a macro gives it
	for name, symbol := range h.alias {
		api[symbol] = name
	}
	var out []symbols.Function
	seen := map[string]bool{}
	for _, f := range h.funcs {
		if seen[f.Symbol] {
			continue
		}
		seen[f.Symbol] = true
		g := f.Function
		g.Current = true
		if name := api[g.Symbol]; name != "" {
			g.API = name
		}
		applyFacts(g.Params, f.doc)
		out = append(out, g)
	}
	return out
}

// mergeFunctions adds the functions that only an older release has; a signature that changed is reported, and the
// newest stands, unless the symbol itself differs.
func mergeFunctions(t, older *symbols.Table, v symbols.Version, report func(string)) {
	for _, o := range older.Functions {
		i := slices.IndexFunc(t.Functions, func(f symbols.Function) bool { return f.Symbol == o.Symbol })
		if i < 0 {
			o.Current = !slices.ContainsFunc(t.Functions, func(f symbols.Function) bool { return f.API == o.API })
			o.Until = v
			t.Functions = append(t.Functions, o)
			continue
		}
		if err := sameShape(t.Functions[i].Params, o.Params, aliasesOf(t)); err != nil {
			report(o.Symbol + " changed its parameters: " + err.Error())
		}
	}
}

// versionNodes reads the ELF version nodes (hip_5.3) of a library's exports.
func versionNodes(r io.ReaderAt) (map[string]symbols.Version, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	exports, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	out := map[string]symbols.Version{}
	for _, s := range exports {
		node, ok := strings.CutPrefix(s.Version, "hip_")
		if !ok || s.Section == elf.SHN_UNDEF {
			continue
		}
		v, err := symbols.ParseVersion(node)
		if err != nil {
			return nil, fmt.Errorf("%s: version node %s: %w", s.Name, s.Version, err)
		}
		out[s.Name] = v
	}
	return out, nil
}
