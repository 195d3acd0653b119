package cuda

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// A Library is an open CUDA driver. The zero Library is not open: its methods return [dl.ErrNotOpen]. It must not be
// copied. All methods may be called concurrently.
type Library struct {
	dl.Library
	fns [numFuncs]uintptr
}

// Options say where to look; the zero value is the usual way.
type Options = dl.Options

// Open loads the CUDA driver's library and resolves its functions. It tries opt.Path, else the file that
// PUREGPU_CUDA_LIBRARY names, else the driver by the system's own rules and in the folders of WSL. It does not call
// cuInit: do so with [Library.Init], whose error tells an absent device ([ErrorNoDevice]), a stub library
// ([ErrorStubLibrary]) and a driver that does not fit the kernel's ([ErrorSystemDriverMismatch]) apart.
func Open(opt Options) (*Library, error) {
	l := new(Library)
	if err := l.Library.Open(&spec, l.fns[:], opt); err != nil {
		return nil, err
	}
	return l, nil
}

var spec = dl.Spec{
	Name: "CUDA driver", Package: "cuda", Env: "PUREGPU_CUDA_LIBRARY",
	Names: names, Dirs: dirs, Symbols: symbols[:], Sets: sets[:],
	Format: FormatVersion, Floor: floor, Version: askVersion, Resolve: resolver,
	Hint: "install NVIDIA's driver, release 460 (CUDA 11.2) or newer, or name its library in PUREGPU_CUDA_LIBRARY",
}

// floor is the oldest driver that has the required functions: CUDA 11.2.
const floor = 11020

// FormatVersion prints a version as cuDriverGetVersion gives it: 12050 is 12.5.
func FormatVersion(v dl.Version) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

func askVersion(l *dl.Library) (dl.Version, error) {
	p := new(int32)
	if err := check(l.Slow(fnDriverGetVersion, uintptr(unsafe.Pointer(p)))); err != nil {
		if err == ErrorStubLibrary {
			err = fmt.Errorf("%w (%w)", dl.ErrStub, err)
		}
		return 0, fmt.Errorf("cuDriverGetVersion: %w", err)
	}
	return dl.Version(*p), nil
}

// resolver asks the driver itself for each function, at the release that brought the ABI: the name alone would give the
// oldest ABI to dlsym and, at the driver's own release, perhaps one that these bindings do not know. Drivers before 12.0
// have the older cuGetProcAddress, which does not say why a function is missing, and before 11.3 none.
func resolver(l *dl.Library) dl.Resolver {
	const legacyStreams = uintptr(GetProcAddressLegacyStream) // whatever default the program was compiled with elsewhere
	out := new(struct {
		fn     uintptr
		status DriverProcAddressQueryResult
	})
	ask := func(sym *dl.Symbol) error {
		name, err := dl.CString(sym.API)
		if err != nil {
			return err
		}
		out.fn, out.status = 0, 0
		if l.Addr(fnGetProcAddress) != 0 {
			return check(l.Slow(fnGetProcAddress, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&out.fn)), uintptr(sym.Since),
				legacyStreams, uintptr(unsafe.Pointer(&out.status))))
		}
		return check(l.Slow(fnGetProcAddressV1, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&out.fn)), uintptr(sym.Since), legacyStreams))
	}
	if l.Addr(fnGetProcAddress) == 0 && l.Addr(fnGetProcAddressV1) == 0 {
		return nil
	}
	return func(sym *dl.Symbol) (uintptr, string) {
		if v := l.Version(); v != 0 && sym.Since > v {
			return 0, "newer than the driver" // which would only call the version invalid
		}
		switch err := ask(sym); {
		case err != nil:
			return 0, "cuGetProcAddress: " + err.Error()
		case out.fn == 0 && out.status == GetProcAddressVersionNotSufficient:
			return 0, "the driver knows it, but not at version " + FormatVersion(sym.Since)
		case out.fn == 0:
			return 0, "the driver does not know it"
		}
		return out.fn, ""
	}
}
