// Package cudaheaders finds the headers of NVIDIA's CUDA toolkit, such as cuda_fp16.h, which NVRTC does not have in itself.
package cudaheaders

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/puregpu/puregpu/internal/folders"
	"github.com/puregpu/puregpu/internal/regular"
)

// patterns are the folders in which headers are, behind those of the compiler itself.
var patterns = []string{
	"$CUDA_HOME/include", "$CUDA_PATH/include", "/usr/local/cuda/include", "/usr/local/cuda-*/include",
	"$CONDA_PREFIX/include", "$CONDA_PREFIX/targets/*/include", "$CONDA_PREFIX/lib/python*/site-packages/nvidia/*/include",
	"$VIRTUAL_ENV/lib/python*/site-packages/nvidia/*/include", "$GUIX_ENVIRONMENT/include", "/run/current-system/profile/include", "/usr/include",
}

// beside are the same as seen from the folder of NVRTC's library: a toolkit's or Conda's, a Python wheel's, and Debian's.
var beside = []string{"../include", "../targets/*/include", "../../../nvidia/cuda_runtime/include", "../../../nvidia/*/include", "../../include"}

// Folders returns the folders to look in, in order: those that belong to a file of NVRTC's library first, as headers are to be of the
// compiler's release.
func Folders(nvrtc string) []string {
	var all []string
	add := func(dir string) {
		// From 13.0 on what is of CCCL, such as nv/target, is in a folder of its own.
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
					if fi, err := os.Stat(d); err == nil && fi.IsDir() { // the others would only say how the patterns are
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

// Find returns the first folder that has a header, or "" and the folders that were looked into.
func Find(header, nvrtc string) (dir string, tried []string) {
	for _, d := range Folders(nvrtc) {
		if _, err := regular.Stat(filepath.Join(d, filepath.FromSlash(header))); err == nil {
			return d, nil
		}
		if filepath.Base(d) != "cccl" {
			tried = append(tried, d)
		}
	}
	return "", tried
}
