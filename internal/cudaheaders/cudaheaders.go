// Package cudaheaders finds headers of NVIDIA's CUDA toolkit that are not built into NVRTC, such as
// cuda_fp16.h.
//
// Debian puts CUDA's headers into /usr/include, among those of the C library. A kernel that
// includes stdio.h by mistake must not get the host's. So a folder that also has the C library's
// headers is used for headers that are CUDA's by their name, and for no others; see [Shared].
package cudaheaders

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/folders"
	"github.com/puregpu/puregpu/internal/regular"
)

// patterns are folders that are searched last.
var patterns = []string{
	"$CUDA_HOME/include", "$CUDA_PATH/include", "/usr/local/cuda/include", "/usr/local/cuda-*/include",
	"$CONDA_PREFIX/include", "$CONDA_PREFIX/targets/*/include", "$CONDA_PREFIX/lib/python*/site-packages/nvidia/*/include",
	"$VIRTUAL_ENV/lib/python*/site-packages/nvidia/*/include", "$GUIX_ENVIRONMENT/include", "/run/current-system/profile/include", "/usr/include",
}

// beside lists folders relative to the folder of NVRTC's library: in a toolkit or Conda, in a
// Python wheel, and in Debian.
var beside = []string{"../include", "../targets/*/include", "../../../nvidia/cuda_runtime/include", "../../../nvidia/*/include", "../../include"}

// Folders returns the folders to search, in order. nvrtc is the path of NVRTC's library. Folders
// beside the library come first, so that the headers match the compiler's release.
func Folders(nvrtc string) []string {
	var all []string
	add := func(dir string) {
		// Since 13.0 CCCL's headers, such as nv/target, have their own folder.
		for _, d := range []string{dir, filepath.Join(dir, "cccl")} {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	if filepath.IsAbs(nvrtc) {
		at := []string{filepath.Dir(nvrtc)}
		if real, err := filepath.EvalSymlinks(nvrtc); err == nil {
			at = append(at, filepath.Dir(real))
		}
		for _, dir := range at {
			for _, b := range beside {
				for _, d := range folders.Match(filepath.Join(folders.Quote(dir), b)) {
					if fi, err := os.Stat(d); err == nil && fi.IsDir() { // a missing folder adds nothing
						add(d)
					}
				}
			}
		}
	}
	for _, named := range folders.Expand(folders.Variable) {
		for _, b := range []string{"../include", "nvidia/*/include"} {
			for _, d := range folders.Match(filepath.Join(named, b)) {
				add(d)
			}
		}
	}
	for _, p := range patterns {
		for _, e := range folders.Expand(p) {
			for _, d := range folders.Match(e) {
				add(d)
			}
		}
	}
	return all
}

// own lists [path.Match] patterns for CUDA's headers. A pattern matches a header's name up to its
// first slash.
var own = []string{
	"cuda*", "cooperative_groups*", "cub", "thrust", "nv", "cuComplex.h", "curand*", "crt", "mma.h", "math_constants.h", "math_functions.h*",
	"builtin_types.h", "channel_descriptor.h", "common_functions.h", "device_*", "driver_types.h", "fatbinary_section.h", "host_config.h",
	"host_defines.h", "library_types.h", "nvfunctional", "sm_*", "surface_*", "texture_*", "vector_*",
}

// isOwn reports whether a header is CUDA's, by its name.
func isOwn(header string) bool {
	first, _, _ := strings.Cut(header, "/")
	return slices.ContainsFunc(own, func(pattern string) bool {
		ok, _ := path.Match(pattern, first)
		return ok
	})
}

// Shared reports whether a folder also has the C library's headers. The option -I makes all headers
// of a folder visible, so a compiler gets -I for a shared folder only if a kernel needs a header of
// CUDA in the folder.
func Shared(dir string) bool {
	_, err := regular.Stat(filepath.Join(dir, "stdio.h"))
	return err == nil
}

// Find returns the first folder that has a header, or "" and the folders that were looked into. For
// a header that is not CUDA's, Find passes over each folder for which [Shared] returns true.
func Find(header, nvrtc string) (dir string, tried []string) {
	for _, d := range Folders(nvrtc) {
		if _, err := regular.Stat(filepath.Join(d, filepath.FromSlash(header))); err == nil {
			if isOwn(header) || !Shared(d) {
				return d, nil
			}
			d += " (which is searched for CUDA's headers only)"
		}
		if filepath.Base(d) != "cccl" {
			tried = append(tried, d)
		}
	}
	return "", tried
}

// Compile calls a function that compiles a source with NVRTC, headers and options, and returns the
// log. If the source does not compile because a header is in no folder of the options, Compile
// searches the toolkit's folders, and calls the function again with -I for the folder found, after
// all other options. nvrtc is the path of NVRTC's library. Compile returns the error of the last
// call. If a header is in no folder, note says so and names the folders.
//
// CUDA may share a folder with the C library, such as /usr/include. The program must not get
// stdio.h from there. So for each of CUDA's headers that is missing and that is in such a folder,
// Compile first adds an empty text. If nothing else is missing, Compile compiles once more, with -I
// for the folder instead of the empty texts.
func Compile(nvrtc string, headers map[string]string, options []string, compile func(headers map[string]string, options []string) (log string, err error)) (note string, err error) {
	options = slices.Clone(options)
	with := headers // the headers plus the empty texts
	shared := ""
	for {
		log, err := compile(with, options)
		m := missingHeader.FindStringSubmatch(log)
		if err == nil || m == nil {
			if shared == "" {
				return "", err
			}
			options, with, shared = append(options, "-I"+shared), headers, ""
			continue
		}
		dir, tried := Find(m[1], nvrtc)
		_, again := with[m[1]]
		switch {
		case dir == "":
			return fmt.Sprintf("%s is in none of %s", m[1], strings.Join(tried, ", ")), err
		case again, slices.Contains(options, "-I"+dir):
			return "", err // the folder was used already, and did not help
		case Shared(dir):
			shared, with = dir, maps.Clone(with)
			if with == nil {
				with = map[string]string{}
			}
			with[m[1]] = ""
		default:
			options = append(options, "-I"+dir)
		}
	}
}

// missingHeader matches NVRTC's message for a header that it does not find.
var missingHeader = regexp.MustCompile(`(?:cannot|could not) open source file "([^"]+)"`)
