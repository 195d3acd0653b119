//go:build linux && (amd64 || (arm64 && (!puregpu_static || cgo))) && !nogpu

package dl

import (
	"errors"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/internal/printable"
	"github.com/puregpu/puregpu/internal/regular"
	"github.com/puregpu/puregpu/internal/secureenv"
)

// Modes of dlopen.
const (
	rtldNow    = 2 // RTLD_NOW
	rtldNoload = 4 // RTLD_NOLOAD
)

const dlinfoLinkmap = 2 // RTLD_DI_LINKMAP

// A loader is the dynamic linker of the process. The goroutine must stay locked to its thread while
// it uses a loader, because dlerror is a separate call and keeps its message per thread.
type loader struct {
	dlopen, dlsym, dlerror, dlinfo uintptr

	frame *[frameHead]uintptr // reused by every call
	name  []byte              // reused by every symbol's name
}

// newLoader finds the dynamic linker's functions.
func newLoader() (*loader, error) {
	ld, err := findLoader()
	if err != nil {
		return nil, err
	}
	ld.frame = new([frameHead]uintptr)
	return ld, nil
}

// call calls fn with up to 6 words.
//
//go:uintptrescapes
func (ld *loader) call(fn uintptr, args ...uintptr) uintptr {
	f := ld.frame
	f[frameFn] = fn
	copy(f[frameInts:frameFloats], args)
	callAny(unsafe.Pointer(f))
	return f[frameRet]
}

// error returns the loader's message about the last failure.
func (ld *loader) error() string {
	p := ld.call(ld.dlerror)
	return GoString(*(*unsafe.Pointer)(unsafe.Pointer(&p)))
}

// open opens a library. If the parameter loaded is set, open only finds a library that the process
// has already loaded. After a failure handle is 0, and the result words says why.
func (ld *loader) open(path string, loaded bool) (handle uintptr, words string) {
	mode := rtldNow
	if loaded {
		mode |= rtldNoload
	}
	p, err := CString(path)
	if err != nil {
		return 0, err.Error()
	}
	if what := irregular(path); what != "" {
		return 0, what
	}
	h := ld.call(ld.dlopen, uintptr(unsafe.Pointer(p)), uintptr(mode))
	if h == 0 {
		words = ld.error()
	}
	return h, words
}

// irregular looks for a file that is not a regular file and that the loader would open when it
// searches LD_LIBRARY_PATH for a name. It returns a message about the file, or "" if there is none.
// Such a file may be a named pipe, and opening a pipe blocks until there is a writer. irregular
// does not check the library's own dependencies.
func irregular(name string) string {
	if !isBare(name) {
		return ""
	}
	for _, dir := range searched(secureenv.Get("LD_LIBRARY_PATH")) {
		path := dir + "/" + name
		switch _, err := regular.Stat(path); {
		case err == nil:
			if fault, err := inspectFile(path); err == nil && fault.plain == "" {
				return "" // the loader takes this file and searches no further
			}
		case errors.Is(err, regular.ErrIrregular):
			return path + ": " + plainIO(err)
		}
	}
	return ""
}

// searched returns the folders that glibc's loader searches for a value of LD_LIBRARY_PATH, in
// order. The result includes folders for all processors that the loader knows, although the loader
// searches only some of them on this processor.
func searched(value string) (dirs []string) {
	if value == "" {
		return nil
	}
	for _, dir := range strings.Split(strings.ReplaceAll(value, ";", ":"), ":") {
		if dir == "" {
			dir = "." // glibc's loader takes an empty element as the working directory
		}
		hwcaps := dir + "/glibc-hwcaps"
		levels, _ := os.ReadDir(hwcaps)
		slices.Reverse(levels) // x86-64-v4 first
		for _, l := range levels {
			dirs = append(dirs, hwcaps+"/"+l.Name())
		}
		dirs = append(below(dirs, dir, []string{"tls", "haswell", "xeon_phi", "avx512_1", "x86_64", "aarch64", "atomics"}), dir)
	}
	return dirs
}

// below appends to dirs the folders inside dir that glibc before 2.37 searches. The path of each
// folder is dir followed by some elements of names, in the order of names.
func below(dirs []string, dir string, names []string) []string {
	for i, n := range names {
		if d := dir + "/" + n; isFolder(d) {
			dirs = append(below(dirs, d, names[i+1:]), d)
		}
	}
	return dirs
}

func isFolder(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// sym returns the address of a function.
func (ld *loader) sym(handle uintptr, name string) (addr uintptr, words string) {
	ld.name = append(append(ld.name[:0], name...), 0)
	a := ld.call(ld.dlsym, handle, uintptr(unsafe.Pointer(&ld.name[0])))
	if a == 0 {
		words = ld.error()
		// "<path>: undefined symbol: <name>": the caller knows both.
		if strings.Contains(words, "undefined symbol") {
			words = "undefined symbol"
		}
		words = printable.Text(words)
	}
	return a, words
}

// file returns the file that a handle was loaded from, or "".
func (ld *loader) file(handle uintptr) string {
	if ld.dlinfo == 0 {
		return ""
	}
	m := new(*linkMap)
	if ld.call(ld.dlinfo, handle, dlinfoLinkmap, uintptr(unsafe.Pointer(m))) != 0 || *m == nil {
		return ""
	}
	return GoString((*m).name)
}

// A linkMap is the head of C's struct link_map.
type linkMap struct {
	_    uintptr // l_addr: what the loader adds to the file's addresses
	name unsafe.Pointer
}

// explain turns the loader's message about path into plain words.
func explain(path, words string) *loadError {
	if e := explainMusl(path, words); e != nil {
		return e
	}
	e := &loadError{kind: ErrNotLoadable, loader: strings.TrimPrefix(words, path+": ")}
	subject, rest, _ := strings.Cut(words, ": ")
	switch {
	case strings.HasPrefix(rest, "cannot open shared object file: No such file"):
		if subject == path {
			e.kind = ErrNotFound
		} else {
			e.plain = "needs " + subject + ", which was not found"
		}
	case strings.HasPrefix(rest, "cannot open shared object file: Permission denied"):
		e.plain = "permission denied"
	case strings.HasPrefix(rest, "wrong ELF class: ELFCLASS32"):
		e.plain = "a 32-bit library, but this process is 64-bit"
	case strings.HasPrefix(rest, "file too short"):
		e.plain = "truncated"
	case strings.HasPrefix(rest, "invalid ELF header"):
		e.plain = "not an ELF library"
	case strings.Contains(words, "undefined symbol: "):
		_, name, _ := strings.Cut(words, "undefined symbol: ")
		name, _, _ = strings.Cut(name, ",")
		e.plain = "needs function " + name + ", which none of the libraries it depends on has"
	case strings.Contains(words, "version `GLIBC_"):
		e.plain = "needs a newer C library than this system has"
	case words == "":
		e.plain = "refused without a reason"
	}
	return e
}
