package hip

import (
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/puregpu/puregpu/runtime/dl"
)

// askVersion asks the library for its version. On a machine without a GPU the library does not
// answer. Then askVersion reads the version from the file's name.
func askVersion(l *dl.Library) (dl.Version, error) {
	v, err := libraryVersion(l)
	if v == 0 {
		if named := versionInName(l.Path()); named != 0 {
			return named, nil
		}
	}
	return v, err
}

var versioned = regexp.MustCompile(`\.so\.(\d+)\.(\d+)\.(\d+)$`)

// versionInName follows links from path to a file, and reads the version from the file's name, such
// as libamdhip64.so.5.2.21153.
func versionInName(path string) dl.Version {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	m := versioned.FindStringSubmatch(path)
	if m == nil {
		return 0
	}
	v := 0
	for i, unit := range []int{10_000_000, 100_000, 1} {
		n, err := strconv.Atoi(m[i+1])
		if err != nil || n >= 100_000 {
			return 0
		}
		v += n * unit
	}
	return dl.Version(v)
}
