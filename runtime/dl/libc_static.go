//go:build linux && amd64 && !nogpu && puregpu_static && !cgo

package dl

import (
	"errors"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/dl/internal/hostlibc"
)

// enter is the address of the code that a trampoline calls on a thread unknown to the C library.
// enter is set before the first address of a C function is known.
var enter uintptr

// findLoader starts the machine's C library in the process, unless it has started already, and
// finds the functions of its dynamic linker.
func findLoader() (*loader, error) {
	libc, err := hostlibc.Start()
	if err != nil {
		kind := ErrNotLoadable
		if errors.Is(err, hostlibc.ErrAbsent) {
			kind = ErrNotFound
		}
		return nil, &loadError{kind: kind, plain: err.Error()}
	}
	atomic.StoreUintptr(&enter, hostlibc.Enter())
	return &loader{dlopen: libc.Dlopen, dlsym: libc.Dlsym, dlerror: libc.Dlerror, dlinfo: libc.Dlinfo}, nil
}

func newCallback(fn any) (uintptr, error) {
	if fn == nil {
		return 0, errors.New("cannot make a C callback of nil")
	}
	return hostlibc.NewCallback(fn), nil
}
