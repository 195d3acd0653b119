package nvml

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// branches are the branches of NVIDIA's driver with their CUDA releases, oldest first. The library
// reports the driver's release, but versions in this package are CUDA releases, as in NVML's
// header.
var branches = []struct{ driver, major, minor int }{
	{340, 6, 5}, {346, 7, 0}, {352, 7, 5}, {361, 8, 0}, {384, 9, 0}, {390, 9, 1}, {396, 9, 2}, {410, 10, 0}, {418, 10, 1}, {440, 10, 2}, {450, 11, 0},
	{455, 11, 1}, {460, 11, 2}, {465, 11, 3}, {470, 11, 4}, {495, 11, 5}, {510, 11, 6}, {515, 11, 7}, {520, 11, 8},
	{525, 12, 0}, {530, 12, 1}, {535, 12, 2}, {545, 12, 3}, {550, 12, 4}, {555, 12, 5}, {560, 12, 6}, {570, 12, 8}, {575, 12, 9},
	{580, 13, 0}, {590, 13, 1}, {595, 13, 2}, {610, 13, 3},
}

// askVersion asks the library for its version. Older libraries, such as 470, do not report their
// version before Init; askVersion then reads the version from the file's name.
func askVersion(l *dl.Library) (dl.Version, error) {
	text := make([]byte, SystemNVMLVersionBufferSize)
	err := check(l.Slow(fnSystemGetNVMLVersion, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text))))
	switch {
	case errors.Is(err, ErrorUninitialized):
		return versionInName(l.Path()), nil
	case err != nil:
		return 0, fmt.Errorf("nvmlSystemGetNVMLVersion: %w", err)
	}
	return parseVersion(dl.Text(text)), nil
}

// versionInName follows links from path to a file, and reads the driver's release from the file's
// name, such as libnvidia-ml.so.470.256.02.
func versionInName(path string) dl.Version {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	_, driver, _ := strings.Cut(filepath.Base(path), ".so.")
	return releaseOf(driver)
}

// parseVersion reads a version such as 12.550.163.01: the CUDA release's major number, and then the
// driver's release.
func parseVersion(text string) dl.Version {
	_, driver, _ := strings.Cut(text, ".")
	return releaseOf(driver)
}

// releaseOf returns the CUDA release of a driver such as 550.163.01. For an unknown branch it
// returns the release of the newest older branch. It returns 0 for a text of another form, and for
// branches before 340.
func releaseOf(driver string) dl.Version {
	branch, _, ok := strings.Cut(driver, ".")
	n, err := strconv.Atoi(branch)
	if err != nil || !ok {
		return 0
	}
	v := 0
	for _, b := range branches {
		if n >= b.driver {
			v = b.major*1000 + b.minor*10
		}
	}
	return dl.Version(v)
}
