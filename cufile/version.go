package cufile

import (
	"errors"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/puregpu/puregpu/runtime/dl"
)

// askVersion asks the library for its version. If the library lacks the function for this,
// askVersion reads the version from the file's name.
func askVersion(l *dl.Library) (dl.Version, error) {
	v, err := libraryVersion(l)
	if errors.Is(err, dl.ErrSymbol) {
		if named := versionInName(l.Path()); named != 0 {
			return named, nil
		}
	}
	return v, err
}

var versioned = regexp.MustCompile(`\.so\.(\d{1,3})\.(\d{1,2})\.\d+$`)

// versionInName follows links from path to a file, and reads the version from the file's name, such
// as libcufile.so.1.4.0.
func versionInName(path string) dl.Version {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	m := versioned.FindStringSubmatch(path)
	if m == nil {
		return 0
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	if err1 != nil || err2 != nil {
		return 0
	}
	return dl.Version(major*1000 + minor*10)
}
