package hiprtc

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// askVersion finds the HIP release in the file's name. Otherwise it returns the library's answer,
// except 9.0: libraries of HIP 5 return 9.0, the version of an interface.
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

// versionInName reads the release from a name such as libhiprtc.so.6.4.43484, to which links lead.
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
