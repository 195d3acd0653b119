//go:build windows && amd64 && !nogpu

package dl

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"
)

var (
	kernel32           = syscall.NewLazyDLL("kernel32.dll")
	loadLibraryEx      = kernel32.NewProc("LoadLibraryExW")
	getModuleHandle    = kernel32.NewProc("GetModuleHandleW")
	getModuleFileNameW = kernel32.NewProc("GetModuleFileNameW")
)

const (
	searchSystem32 = 0x800 // LOAD_LIBRARY_SEARCH_SYSTEM32
	alteredPath    = 0x8   // LOAD_WITH_ALTERED_SEARCH_PATH: search for dependencies in the file's folder
)

// A loader is the module loader of the process.
type loader struct{}

func newLoader() (*loader, error) { return new(loader), nil }

// open opens a library. If loaded is set, it only finds a library that the process has already
// loaded. It searches only the system directory for a bare name, so that it never takes a file
// planted in the working directory.
func (ld *loader) open(path string, loaded bool) (handle uintptr, words string) {
	if !isBare(path) {
		// LOAD_WITH_ALTERED_SEARCH_PATH is only defined for full paths.
		if full, err := filepath.Abs(path); err == nil {
			path = full
		}
	}
	p, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return 0, ErrNUL.Error()
	}
	if loaded {
		handle, _, err = getModuleHandle.Call(uintptr(unsafe.Pointer(p)))
	} else {
		flags := uintptr(alteredPath)
		if isBare(path) {
			flags = searchSystem32
		}
		handle, _, err = loadLibraryEx.Call(uintptr(unsafe.Pointer(p)), 0, flags)
	}
	if handle == 0 {
		return 0, describe(err)
	}
	return handle, ""
}

const (
	errorModNotFound  syscall.Errno = 126
	errorBadExeFormat syscall.Errno = 193
)

// describe returns err's text and its number. explain uses the number, because the text is in the
// user's language.
func describe(err error) string {
	if no, ok := err.(syscall.Errno); ok {
		return fmt.Sprintf("error %d: %s", uint32(no), no.Error())
	}
	return err.Error()
}

// sym returns the address of a function.
func (ld *loader) sym(handle uintptr, name string) (addr uintptr, words string) {
	addr, err := syscall.GetProcAddress(syscall.Handle(handle), name)
	if err != nil {
		return 0, "undefined symbol"
	}
	return addr, ""
}

// file returns the file that a handle was loaded from, or "".
func (ld *loader) file(handle uintptr) string {
	for size := 260; size <= 1<<15; size *= 2 {
		buf := make([]uint16, size)
		n, _, _ := getModuleFileNameW.Call(handle, uintptr(unsafe.Pointer(&buf[0])), uintptr(size))
		if n == 0 {
			return ""
		}
		if int(n) < size {
			return syscall.UTF16ToString(buf[:n])
		}
	}
	return ""
}

// explain turns the loader's message about path into plain words.
func explain(path, words string) *loadError {
	e := &loadError{kind: ErrNotLoadable, loader: words}
	var no uint32
	fmt.Sscanf(words, "error %d:", &no)
	switch syscall.Errno(no) {
	case syscall.ERROR_FILE_NOT_FOUND, syscall.ERROR_PATH_NOT_FOUND:
		e.kind = ErrNotFound
	case errorModNotFound:
		// The number is the same for an absent file and for an absent dependency; load knows
		// whether the file exists.
		if isBare(path) {
			e.kind = ErrNotFound
		} else {
			e.plain = "needs a DLL that was not found"
		}
	case errorBadExeFormat:
		e.plain = "not a DLL for this processor"
	case syscall.ERROR_PROC_NOT_FOUND:
		e.plain = "needs a function that none of the DLLs it depends on has"
	case syscall.ERROR_ACCESS_DENIED:
		e.plain = "permission denied"
	}
	return e
}

// callSlow calls fn with args arranged for sig.
func callSlow(fn uintptr, sig string, args []uintptr) (uintptr, error) {
	var buf [maxParams]move
	moves, err := arrange(win64, sig, buf[:0])
	if err != nil {
		return 0, err
	}
	if len(moves) > maxSyscallN {
		return 0, fmt.Errorf("%d parameters, more than the %d that Windows calls take", len(moves), maxSyscallN)
	}
	words := make([]uintptr, len(moves))
	for _, m := range moves {
		words[m.index] = m.value(args)
	}
	// The runtime also copies the first four words to the vector registers, where C expects floats.
	r, float, _ := syscall.SyscallN(fn, words...)
	runtime.KeepAlive(args)
	if _, result := cutResult(sig); result != 0 {
		r = float
	}
	return r, nil
}

// maxSyscallN is the largest number of words that syscall.SyscallN takes.
const maxSyscallN = 42

func newCallback(fn any) (uintptr, error) {
	if fn == nil {
		return 0, errors.New("cannot make a C callback of nil")
	}
	return syscall.NewCallback(fn), nil
}
