package cuda

import (
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// resolver returns a Resolver that asks the driver's cuGetProcAddress for a function at the release
// that introduced the function's ABI. Other look-ups may find another ABI: dlsym finds the oldest
// ABI under the plain name, and a request at the driver's own release may find an ABI that these
// bindings do not know. Drivers before 12.0 have the older cuGetProcAddress, which does not say why
// a function is missing. Drivers before 11.3 have neither version, and resolver returns nil.
func resolver(l *dl.Library) dl.Resolver {
	// The functions use the legacy default stream, even if other code in the process uses the
	// per-thread one.
	const legacyStreams = uintptr(GetProcAddressLegacyStream)
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
			return 0, "newer than the driver" // if asked, the driver would only report an invalid version
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
