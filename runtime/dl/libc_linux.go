//go:build linux && (amd64 || arm64) && !nogpu && (!puregpu_static || cgo)

package dl

import (
	"errors"
	"fmt"

	"github.com/ebitengine/purego"
)

// findLoader finds the functions of the dynamic linker that started the process. Calling them
// directly, without purego, saves allocations and gives access to dlinfo.
func findLoader() (*loader, error) {
	ld := new(loader)
	for _, f := range []struct {
		addr *uintptr
		name string
	}{{&ld.dlopen, "dlopen"}, {&ld.dlsym, "dlsym"}, {&ld.dlerror, "dlerror"}, {&ld.dlinfo, "dlinfo"}} {
		a, err := purego.Dlsym(purego.RTLD_DEFAULT, f.name)
		if err != nil {
			if f.addr == &ld.dlinfo {
				continue // only needed for the path
			}
			return nil, fmt.Errorf("the C library of this process has no %s: %w", f.name, err)
		}
		*f.addr = a
	}
	return ld, nil
}

func newCallback(fn any) (uintptr, error) {
	if fn == nil {
		return 0, errors.New("cannot make a C callback of nil")
	}
	return purego.NewCallback(fn), nil
}
