package hiprtc

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// askVersion returns the HIP release in the file's name. If the name has none, askVersion returns
// the library's answer, or 0 if the answer is 9.0. Libraries of HIP 5 return 9.0, which is the
// version of an interface.
func askVersion(l *dl.Library) (dl.Version, error) {
	p := new([2]int32)
	if err := check(l.Slow(fnGetVersion, uintptr(unsafe.Pointer(&p[0])), uintptr(unsafe.Pointer(&p[1])))); err != nil {
		return 0, fmt.Errorf("hiprtcVersion: %w", err)
	}
	if v := versionInName(l.Path()); v != 0 || p[0] == 9 && p[1] == 0 {
		return v, nil
	}
	return dl.Version(p[0]*10_000_000 + p[1]*100_000), nil
}

var versioned = regexp.MustCompile(`\.so\.(\d{1,2})\.(\d{1,2})\.(\d{1,5})$`)

// versionInName follows links from path to a file, and reads the release from the file's name, such
// as libhiprtc.so.6.4.43484. It returns 0 if the name has no release.
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
		if err != nil {
			return 0
		}
		v += n * unit
	}
	return dl.Version(v)
}
