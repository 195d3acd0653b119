package hip

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// A Library is an open HIP runtime. The zero Library is not open: its methods return [dl.ErrNotOpen]. It must not be
// copied. All methods may be called concurrently.
type Library struct {
	dl.Library
	fns [numFuncs]uintptr
}

// Options say where to look; the zero value is the usual way.
type Options = dl.Options

// Open loads the HIP runtime's library and resolves its functions. It tries opt.Path, else the file that
// PUREGPU_HIP_LIBRARY names, else libamdhip64 by its versioned names, newest first, by the system's own rules and in the
// folders of ROCm. An absent device is no error of Open's: [Library.GetDeviceCount] returns [ErrorNoDevice], and so does
// [Library.Init], but for older releases, which call the device invalid ([ErrorInvalidDevice]).
func Open(opt Options) (*Library, error) {
	l := new(Library)
	if err := l.Library.Open(&spec, l.fns[:], opt); err != nil {
		return nil, err
	}
	return l, nil
}

var spec = dl.Spec{
	Name: "HIP runtime", Package: "hip", Env: "PUREGPU_HIP_LIBRARY",
	Names: names, Dirs: dirs, Symbols: symbols[:], Sets: sets[:],
	Format: FormatVersion, Floor: floor, Version: askVersion, Refuse: refuse,
	Hint: "install ROCm's HIP runtime, 5.2 or newer (package hip-runtime-amd, on Debian libamdhip64), or name its library in PUREGPU_HIP_LIBRARY",
}

// floor is the oldest release that has the required functions: 5.2.
const floor = 50200000

// FormatVersion prints a version as hipRuntimeGetVersion gives it: 60443484 is 6.4, build 43484.
func FormatVersion(v dl.Version) string {
	s := fmt.Sprintf("%d.%d", v/10_000_000, v%10_000_000/100_000)
	if build := v % 100_000; build != 0 {
		s += fmt.Sprintf(".%d", build)
	}
	return s
}

// askVersion asks the library; one that finds no device answers nothing but that, and then its file name tells.
func askVersion(l *dl.Library) (dl.Version, error) {
	p := new(int32)
	err := check(l.Slow(fnRuntimeGetVersion, uintptr(unsafe.Pointer(p))))
	if err == nil && *p != 0 {
		return dl.Version(*p), nil
	}
	if v := versionInName(l.Path()); v != 0 {
		return v, nil
	}
	if err == nil {
		return 0, nil
	}
	return 0, fmt.Errorf("hipRuntimeGetVersion: %w", err)
}

var versioned = regexp.MustCompile(`\.so\.(\d+)\.(\d+)\.(\d+)$`)

// versionInName reads the version off libamdhip64.so.5.2.21153, which links lead to.
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
