package hipblas

import (
	"errors"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/puregpu/puregpu/runtime/dl"
)

// askVersion reads the version from the file's name, because no function returns it.
func askVersion(l *dl.Library) (dl.Version, error) {
	path := l.Path()
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if v := versionInName(path); v != 0 {
		return v, nil
	}
	return 0, errors.New("the file's name has no version, as libhipblas.so.2.4 has")
}

var versioned = regexp.MustCompile(`\.so\.(\d{1,2})\.(\d{1,2})(\.\d+)?$`)

// versionInName reads the version from names such as libhipblas.so.2.4 and libhipblas.so.2.4.60403,
// where the last number is ROCm's release.
func versionInName(path string) dl.Version {
	m := versioned.FindStringSubmatch(path)
	if m == nil {
		return 0
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	switch {
	case err1 != nil || err2 != nil:
		return 0
	case major == 0:
		return floor // all releases before 1.0 have the same name
	}
	return dl.Version(major*10000 + minor*100)
}
