package cufile

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// libc is the C library. libcufile has already loaded it into the process.
var libc = sync.OnceValues(func() (*dl.Library, error) {
	l := new(dl.Library)
	err := l.Open(&dl.Spec{
		Name: "C library", Package: "cufile", Names: []string{"libc.so.6"},
		Symbols: []dl.Symbol{{Name: "__errno_location"}}, Sets: []dl.Set{{Name: "errno"}},
	}, nil, dl.Options{})
	return l, err
})

// errno returns the error that the last C function set on this thread. Before that function, the
// caller must have locked the goroutine to the thread, and must have called libc, because opening a
// library changes errno.
func errno() error {
	l, err := libc()
	if err != nil {
		return fmt.Errorf("cufile: the transfer failed, and C's errno cannot be read: %w", err)
	}
	p, err := l.Slow(0)
	if err != nil {
		return fmt.Errorf("cufile: the transfer failed, and C's errno cannot be read: %w", err)
	}
	e := **(**int32)(unsafe.Pointer(&p))
	if e == 0 {
		return errors.New("cufile: the transfer failed, and C's errno is 0")
	}
	return syscall.Errno(e)
}
